# frozen_string_literal: true

require "monitor"

# Ruby's own classes, by the fiber scheduler.
class RandomWaits
  CALLS_OF.merge!(
    stock_sleep: -> { Kernel.sleep(limit) },
    stock_queue_pop: -> { @stock_queue.pop },
    stock_queue_push: -> { @stock_queue.push(1) },
    stock_sized_pop: -> { @stock_sized.pop },
    stock_sized_push: -> { @stock_sized.push(1) },
    stock_mutex: -> { @stock_mutex.synchronize { @machine.sleep(limit) } },
    stock_mutex_sleep: -> { @stock_mutex.synchronize { @stock_mutex.sleep(limit) } },
    stock_condition: -> { @stock_mutex.synchronize { @stock_condition.wait(@stock_mutex, limit) } },
    stock_signal: -> { @stock_condition.signal },
    monitor: -> { @monitor.synchronize { @monitor_condition.wait(limit) } },
    stock_select: -> { IO.select(nil, nil, nil, limit) },
    stock_io: -> { stock_io },
    stock_timeout: -> { Timeout.timeout(limit) { Kernel.sleep } },
    stock_timeout_of_queue: -> { Timeout.timeout(limit) { @stock_queue.pop } },
    pass: -> { Thread.pass },
    fiber_schedule: -> { Fiber.schedule { ending { Kernel.sleep(limit) } } },
    fiber_raise: -> { fiber_raise },
    enumerator: -> { Enumerator.new { |items| Kernel.sleep(limit).then { items << 1 } }.next },
    no_time: -> { unsupported { Thread::Queue.new.pop(timeout: limit) } },
    no_room_in_time: -> { unsupported { (Thread::SizedQueue.new(1) << 1).push(2, timeout: limit) } }
  )

  private

  def fiber_raise
    fiber = Fiber.schedule { ending { Kernel.sleep(limit) } }
    fiber.raise(Errno::EPERM) if fiber.alive?
  end

  # One that is ready: others are outside of the simulation.
  def stock_io
    reader, writer = IO.pipe
    writer << "x"
    reader.wait_readable
    IO.select([reader], [writer], nil, 0)
    reader.read(1)
  ensure
    reader.close
    writer.close
  end
end
