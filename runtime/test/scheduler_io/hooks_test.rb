# frozen_string_literal: true

require_relative "hook_case"
require "zlib"

# Hooks that newer Rubies call, called by hand.
class SchedulerHooksTest < HookCase
  def test_io_close
    Ringspun.run do |machine|
      reader, writer = machine.pipe
      strand = waiting { machine.read(reader, +"") }
      assert_same true, Fiber.scheduler.io_close(reader)
      assert_ends_with(Ringspun::ClosedError, strand)
      assert_raises(Errno::EPIPE) { machine.write(writer, "x") }
      assert_same true, Fiber.scheduler.io_close(writer)
      assert_same false, Fiber.scheduler.io_close(writer)
      assert_raises(Ringspun::UsageError) { Fiber.scheduler.io_close(-1) }
    end
    assert_nothing_in_flight
  end

  # From 3.4 on CRuby offers each close as work for another thread.
  def test_a_close_is_done_by_its_own_thread
    Ringspun.run do
      lent = []
      pair = UNIXSocket.pair
      TracePoint.new(:call) { |trace| lent << trace.method_id if trace.method_id == :lend }.enable { pair.each(&:close) }
      assert_empty lent
    end
  end

  def test_io_close_ends_the_waits_of_stock_objects
    Ringspun.run do
      reader, = pipe
      object = IO.for_fd(IO.sysopen("/proc/self/fd/#{reader.fileno}", IO::RDONLY | IO::NONBLOCK), autoclose: false)
      strands = [waiting { object.readpartial(10) }, waiting { object.wait_readable }]
      Fiber.scheduler.io_close(object.fileno)
      strands.each { |strand| refute_nil error_of { strand.join } }
    end
    assert_nothing_in_flight
  end

  # Ruby 4 takes it for no limit, and older ones for an error before they ask.
  def test_io_select_without_end
    Ringspun.run do
      reader, writer = pipe
      strand = waiting { Fiber.scheduler.io_select([reader], nil, nil, Float::INFINITY) }
      writer << "x"
      assert_equal [[reader], [], []], strand.await
      assert_raises(ArgumentError, RangeError) { Fiber.scheduler.io_select([reader], nil, nil, -Float::INFINITY) }
    end
  end

  def test_fiber_interrupt
    Ringspun.run do
      reader, = pipe
      fiber = nil
      strand = waiting do
        fiber = Fiber.current
        reader.gets
      end
      error = IOError.new("stream closed in another strand")
      assert_same true, Fiber.scheduler.fiber_interrupt(fiber, error)
      assert_same error, error_of { strand.join }
      refute Fiber.scheduler.fiber_interrupt(fiber, error)
      refute Fiber.scheduler.fiber_interrupt(Fiber.new {}, error)
    end
    assert_nothing_in_flight
  end

  # It is for the hook in which the fiber is, and not for what the fiber waits for afterwards. (A hook may let others
  # run though it need not wait, and is ended there.)
  def test_fiber_interrupt_that_comes_too_late
    Ringspun.run do
      reader, writer = pipe
      writer << "ab"
      assert_same true, Fiber.scheduler.fiber_interrupt(Fiber.current, IOError.new("closed"))
      assert_includes ["a", IOError], ended_in_hook { reader.readpartial(1) }
      sleep(0.001)
      assert_same true, Fiber.scheduler.fiber_interrupt(Fiber.current, IOError.new("closed"))
      assert_includes [IO::READABLE, IOError], ended_in_hook { Fiber.scheduler.io_wait(reader, IO::READABLE, 0) }
      sleep(0.001)
    end
  end

  def ended_in_hook
    yield
  rescue IOError => error
    error.class
  end

  def test_fiber_interrupt_from_a_thread_that_comes_too_late
    Ringspun.run do
      reader, writer = pipe
      writer << "ab"
      scheduler, fiber = Fiber.scheduler, Fiber.current
      thread = Thread.new { scheduler.fiber_interrupt(fiber, IOError.new("closed")) }
      Thread.pass while thread.alive? # not by a wait, at which it would arrive
      assert_includes ["a", IOError], ended_in_hook { reader.readpartial(1) }
      3.times { sleep(0.001) }
    end
  end

  # The collector may move whatever nothing pins.
  def test_fiber_interrupt_by_what_is_moved
    Ringspun.run do
      reader, writer = pipe
      writer << "ab"
      Fiber.scheduler.fiber_interrupt(Fiber.current, IOError.new("closed"))
      GC.verify_compaction_references(toward: :empty, expand_heap: true)
      assert_includes ["a", IOError], ended_in_hook { reader.readpartial(1) }
      sleep(0.001)
    end
  end

  # When it is in a hook and does not wait there yet, its wait is what ends.
  def test_fiber_interrupt_before_the_wait
    Ringspun.run do
      reader, = pipe
      Fiber.scheduler.fiber_interrupt(Fiber.current, error = IOError.new("closed"))
      Fiber.scheduler.fiber_interrupt(Fiber.current, IOError.new("again"))
      assert_same error, error_of { reader.wait_readable }
      sleep(0.001)
    end
  end

  # Ruby's own for this is frozen, and the same for all.
  def test_fiber_interrupt_by_a_frozen_exception
    Ringspun.run do
      reader, = pipe
      fibers = []
      strands = Array.new(2) { waiting { fibers << Fiber.current && reader.wait_readable } }
      error = IOError.new("stream closed in another thread").freeze
      fibers.each { |fiber| Fiber.scheduler.fiber_interrupt(fiber, error) }
      strands.each { |strand| assert_ends_with(IOError, strand, /closed in another thread/) }
    end
  end

  # What Ruby 4.1 gives in place of the fiber: it stands for one call, and where that is over it does nothing.
  Call = Struct.new(:fiber, :ended) do
    def alive? = !ended && fiber.alive?
    def raise(...) = alive? ? fiber.raise(...) : nil
  end

  # A strand that waits in the block, and what stands for its call.
  def in_call
    call = nil
    strand = waiting do
      call = Call.new(Fiber.current)
      yield
    ensure
      call.ended = true
    end
    [strand, call]
  end

  def test_fiber_interrupt_by_what_stands_for_a_call
    Ringspun.run do
      reader, = pipe
      [-> { reader.gets }, -> { reader.wait_readable }, -> { Enumerator.new { reader.sysread(1) }.next }].each do |wait|
        strand, call = in_call(&wait)
        error = IOError.new("closed")
        assert_same true, Fiber.scheduler.fiber_interrupt(call, error)
        refute call.ended, "it is not switched to at once"
        assert_same error, error_of { strand.join }
        assert_same true, Fiber.scheduler.fiber_interrupt(call, error)
        machine.yield
      end
    end
    assert_nothing_in_flight
  end

  def test_fiber_interrupt_by_what_stands_for_a_call_from_a_thread
    Ringspun.run do
      reader, = pipe
      scheduler = Fiber.scheduler
      strand, call = in_call { reader.gets }
      assert_same true, Thread.new { scheduler.fiber_interrupt(call, IOError.new("from afar")) }.value
      assert_ends_with(IOError, strand, /from afar/)
    end
    assert_nothing_in_flight
  end

  # It may have its bytes by then, and not have gone on with them. (Ruby raises the rest of it when the hook returns.)
  def test_fiber_interrupt_by_what_stands_for_a_call_that_comes_too_late
    Ringspun.run do
      reader, writer = pipe
      scheduler, call = Fiber.scheduler
      strand = waiting do
        call = Call.new(Fiber.current)
        ended = ended_in_hook { reader.readpartial(1) }
        call.ended = true
        3.times { sleep(0.001) }
        ended
      end
      thread = Thread.new { writer << "a" && scheduler.fiber_interrupt(call, IOError.new("closed")) }
      Thread.pass while thread.alive? # not by a wait: both arrive with the next one
      assert_includes ["a", IOError], strand.await
    end
  end

  # There is no place for a strand that does it, until another has ended.
  def test_fiber_interrupt_by_what_stands_for_a_call_when_all_strands_are_taken
    on_thread do
      Ringspun::Machine.new(strands_max: 4) # the root and the run have one each
      Ringspun.run do
        reader, = pipe
        strand, call = in_call { reader.gets }
        other = waiting { Thread::Queue.new.pop }
        Fiber.scheduler.fiber_interrupt(call, IOError.new("closed"))
        settle
        assert_equal :parked, strand.state
        machine.terminate(other)
        assert_ends_with(IOError, strand)
        assert_ends_with(Ringspun::TerminatedError, other)
      end
    end
  end

  # As IO#close of an IO that another strand is closing: its number belongs to that one.
  def test_io_close_of_what_another_is_closing
    Ringspun.run do |machine|
      reader, writer = machine.pipe
      gone = waiting { machine.read(reader, +"") }
      answers = []
      closers = Array.new(2) { machine.spin { answers << Fiber.scheduler.io_close(reader) } }
      closers.each(&:await)
      assert_ends_with(Ringspun::ClosedError, gone)
      assert_includes [[true, true], [true, false]], answers
      machine.close(writer)
    end
  end

  # Of a descriptor that is gone whatever is raised: Ruby's own IO has lost it before it asks.
  def test_io_close_in_a_cancelled_strand
    Ringspun.run do
      reader, = pipe
      strand = parked do
        sleep
      ensure
        reader.autoclose = false
        Fiber.scheduler.io_close(reader.fileno)
      end
      machine.terminate(strand)
      assert_ends_with(Ringspun::TerminatedError, strand)
      assert_raises(Errno::EBADF) { IO.for_fd(reader.fileno, autoclose: false) }
    end
  end

  def test_fiber_interrupt_from_a_thread
    Ringspun.run do
      reader, = pipe
      fiber = nil
      strand = waiting do
        fiber = Fiber.current
        reader.gets
      end
      scheduler = Fiber.scheduler
      Thread.new { scheduler.fiber_interrupt(fiber, IOError.new("from afar")) }.join
      assert_ends_with(IOError, strand, /from afar/)
    end
  end

  def test_yield
    Ringspun.run do
      order = []
      machine.spin { 2.times { order << :other && Fiber.scheduler.yield } }
      2.times { order << :one && Fiber.scheduler.yield }
      assert_equal %i[one other one other], order
      assert_nil Fiber.scheduler.yield
    end
  end

  def test_blocking_operation_wait
    Ringspun.run do
      gate = Thread::Queue.new
      thread = nil
      strand = waiting do
        Fiber.scheduler.blocking_operation_wait(lambda {
          thread = Thread.current
          gate.pop
        })
      end
      gate << :go
      assert_nil strand.await
      refute_same Thread.current, thread
      assert_raises(Failure) { Fiber.scheduler.blocking_operation_wait(-> { raise Failure }) }
    end
  end

  # A thread that is idle is so for the first of them only.
  def test_offloaded_work_that_waits_for_other_offloaded_work
    Ringspun.run do
      gate = Thread::Queue.new
      Ringspun.offload { :a_thread_that_is_idle_then }
      strands = [-> { gate.pop }, -> { gate << :go }].map { |work| machine.spin { Ringspun.offload(&work) } }
      assert_equal [:go, gate], strands.map(&:await)
    end
  end

  def test_offloading_in_a_signal_handler
    assert_child("done\n", <<~'RUBY')
      trap(:USR1) { Ringspun.offload { sleep 0.001; puts "done" } }
      Ringspun.run { Process.kill(:USR1, $$) }
    RUBY
  end

  # As IO.copy_stream of Ruby 3.4 does, whose work is offloaded.
  def test_io_wait_from_another_thread
    Ringspun.run do
      reader, writer = pipe
      scheduler = Fiber.scheduler
      scheduler.io_wait(writer, IO::WRITABLE, 0)
      thread = Thread.new { scheduler.io_wait(reader, IO::READABLE, nil) }
      Thread.pass until thread.status == "sleep"
      writer.write("x")
      assert_equal IO::READABLE, thread.value
    end
  end

  # Ruby hands this to another thread by itself where it knows of work that may be handed over; elsewhere it simply runs.
  def test_deflating_much
    bytes = sample(amount(2_000_000))
    Ringspun.run do
      turns = 0
      # It leaves the other thread the time to work in.
      others = machine.spin { (turns += 1) && machine.sleep(0.0005) while turns }
      packed = Zlib::Deflate.deflate(bytes)
      went_on = turns
      assert_bytes bytes, Zlib::Inflate.inflate(packed)
      assert_operator went_on, :>, 0 if offloads_by_itself?
      machine.terminate(others)
      error_of { others.join }
    end
  end
end
