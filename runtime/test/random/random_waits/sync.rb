# frozen_string_literal: true

# Queues, channels, locks, and the choice between them.
class RandomWaits
  CALLS_OF.merge!(
    queue_pop: -> { @queue.pop(timeout: limit) },
    queue_push: -> { @queue.push(1) },
    queue_close: -> { closing(Ringspun::Queue.new) { |queue| queue.pop(timeout: limit) } },
    sized_pop: -> { @sized.pop(timeout: limit) },
    sized_push: -> { @sized.push(1, timeout: limit) },
    sized_close: -> { closing(Ringspun::SizedQueue.new(1)) { |queue| 2.times { queue.push(1, timeout: limit) } } },
    mutex: -> { @mutex.synchronize { @machine.sleep(limit) } },
    mutex_lock: -> { @mutex.owned? || @mutex.lock(timeout: limit).unlock },
    semaphore: -> { @semaphore.acquire(timeout: limit).then { @machine.sleep(limit) }.then { @semaphore.release } },
    semaphore_hold: -> { @semaphore.hold { @machine.sleep(limit) } },
    condition: -> { @condition.wait(timeout: limit) },
    condition_of_mutex: -> { @mutex.owned? || @mutex.synchronize { @condition.wait(@mutex, timeout: limit) } },
    signal: -> { @condition.broadcast },
    barrier: -> { @barrier.wait(timeout: limit) },
    channel_push: -> { @channel.push(1, timeout: limit) },
    channel_pop: -> { @channel.pop(timeout: limit) },
    channel_each: -> { @channel.each { break } },
    channel_close: -> { closing(Ringspun::Channel.new(1)) { |channel| channel.each { nil } } },
    channel_close_under_push: -> { closing(Ringspun::Channel.new(1)) { |channel| 2.times { channel.push(1, timeout: limit) } } },
    selector: -> { selected },
    selector_of_others: -> { selected_of_others },
    select: -> { Ringspun.select(@queue, @sized, @channel, @pipe[0], timeout: limit) },
    select_by_block: -> { select_by_block }
  )

  private

  # The block waits for it, and is still there when it is closed.
  def closing(queue)
    waiter = @machine.spin { ending { yield queue } }
    @machine.sleep(limit)
  ensure
    queue.close
    @machine.scope(shield: true) { waiter.join }
  end

  def selected
    selector = Ringspun::Selector.new
    selector.pop(@queue)
    selector.push(@sized, 1)
    selector.readable(@pair[1])
    selector.acquire(@semaphore)
    selector.after(limit)
    2.times { @semaphore.release if selector.wait == @semaphore }
  ensure
    selector.close
  end

  def select_by_block
    Ringspun.select(timeout: limit) { |on| on.writable(@pair[0]).readable(@stream).push(@channel, 3).after(limit) }
  end

  def selected_of_others
    selector = Ringspun::Selector.new
    selector.writable(@pair[0]).readable(@pipe[0]).pop(@channel).push(@queue, 1)
    selector.result(Ringspun::ConcurrentProc.new { @machine.sleep(limit) }.call_detached)
    selector.after(limit)
    3.times { selector.wait(timeout: limit) }
  ensure
    selector.close
  end
end
