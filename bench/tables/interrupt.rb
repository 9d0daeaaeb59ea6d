# frozen_string_literal: true

# One after the other begins to wait for a pipe, is interrupted, and ends, while many others wait. `start` begins one with a block
# that answers whether it was interrupted; `interrupt` ends its wait by an IOError; `finish` gives the block's answer.
interrupt_each = lambda do |meter, count, start:, interrupt:, finish:, settle: -> {}|
  reader, = pipe = IO.pipe
  ended = 0
  meter.operations = count
  meter.measure do
    count.times do
      waiting = start.call do
        reader.wait_readable
        false
      rescue IOError
        true
      end
      settle.call
      interrupt.call(waiting)
      ended += 1 if finish.call(waiting)
    end
  end
  { ended: }
ensure
  pipe.each(&:close)
end

# A strand of the scheduler that has been set, and its fiber.
scheduled = Data.define(:task, :fiber)

Bench.table "interrupt" do
  title "Interrupt"
  about "A strand begins to wait for a pipe, is interrupted there as by IO#close of Ruby 4, and ends, while 30,000 others " \
        "wait. How many there are does not change the price."
  size strands: 30_000, interrupts: 20_000
  quick strands: 1_000, interrupts: 500
  warm_up strands: 100, interrupts: 100
  scale "strands", :strands, 10, 100, 1_000, 10_000, 30_000, most: { "threads" => 1_000, "async" => 1_000 }, interrupts: 5_000
  proof { |interrupts:, **| { ended: interrupts } }
  columns :real_ns, :cpu_ns, :rate
  against_peer :real_ns, :cpu_ns

  # Thread#raise. Fewer others, because 30,000 threads take a minute to start.
  contender "threads", size: { strands: 1_000, interrupts: 2_000 } do |meter, strands:, interrupts:|
    gate = Thread::Queue.new
    others = Array.new(strands) { Thread.new { gate.pop } }
    start = ->(&block) { Thread.new(&block).tap { |thread| Thread.pass until thread.stop? } }
    interrupt_each.call(meter, interrupts, start:, interrupt: ->(thread) { thread.raise(IOError) }, finish: :value.to_proc)
  ensure
    gate.close
    others.each(&:join)
  end

  # The hook of Async's scheduler. Fewer others, because with 30,000 it takes minutes.
  contender "async", requires: "async", size: { strands: 1_000, interrupts: 2_000 } do |meter, strands:, interrupts:|
    gate = Async::Condition.new
    Sync do |parent|
      others = Array.new(strands) { parent.async { gate.wait } }
      start = lambda do |&block|
        fiber = nil
        task = parent.async do
          fiber = Fiber.current
          block.call
        end
        scheduled.new(task, fiber)
      end
      interrupt = ->(one) { Fiber.scheduler.fiber_interrupt(one.fiber, IOError) }
      interrupt_each.call(meter, interrupts, start:, interrupt:, finish: ->(one) { one.task.wait })
    ensure
      gate.signal
      others.each(&:wait)
    end
  end

  # The hook of our scheduler.
  contender "ringspun fs", requires: "ringspun" do |meter, strands:, interrupts:|
    Ringspun.run do |machine|
      gate = Ringspun::Queue.new
      others = Array.new(strands) { machine.spin { gate.pop } }
      machine.yield
      fiber = nil
      start = lambda do |&block|
        machine.spin do
          fiber = Fiber.current
          block.call
        end
      end
      interrupt = ->(_) { Fiber.scheduler.fiber_interrupt(fiber, IOError) }
      interrupt_each.call(meter, interrupts, start:, interrupt:, finish: :await.to_proc, settle: machine.method(:yield))
    ensure
      gate&.close
      others&.each(&:await)
    end
  end

  # Machine#terminate: the strand itself is named, and not its fiber.
  contender "ringspun", requires: "ringspun" do |meter, strands:, interrupts:|
    Ringspun.run do |machine|
      gate = Ringspun::Queue.new
      others = Array.new(strands) { machine.spin { gate.pop } }
      machine.yield
      finish = lambda do |strand|
        strand.await
      rescue Ringspun::TerminatedError
        true
      end
      interrupt_each.call(meter, interrupts, start: machine.method(:spin), interrupt: machine.method(:terminate), finish:,
                                             settle: machine.method(:yield))
    ensure
      gate&.close
      others&.each(&:await)
    end
  end

  targets "cpu_ns <= 1.1 x ringspun epoll"
end
