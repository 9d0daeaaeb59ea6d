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
      Fiber.scheduler.io_close(writer)
      assert_raises(Ringspun::ClosedError) { Fiber.scheduler.io_close(writer) }
      assert_raises(Ringspun::UsageError) { Fiber.scheduler.io_close(-1) }
    end
    assert_nothing_in_flight
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

  # Ruby 3.4 hands this to another thread by itself; on 3.3 it simply runs.
  def test_deflating_much
    bytes = sample(amount(2_000_000))
    Ringspun.run do
      turns = 0
      # It leaves the other thread the time to work in.
      others = machine.spin { (turns += 1) && machine.sleep(0.0005) while turns }
      packed = Zlib::Deflate.deflate(bytes)
      went_on = turns
      assert_bytes bytes, Zlib::Inflate.inflate(packed)
      assert_operator went_on, :>, 0 if RUBY_VERSION.start_with?("3.4")
      machine.terminate(others)
      error_of { others.join }
    end
  end
end
