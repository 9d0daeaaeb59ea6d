# frozen_string_literal: true

require_relative "hook_case"

# What is asked not to wait does not, whatever the machine believes; and what may wait only so long.
class SchedulerUnwaitingTest < HookCase
  each_stream do |name, on|
    define_method("test_read_nonblock#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        others = 0
        machine.spin { others += 1 }
        3.times do
          assert_equal :wait_readable, reader.read_nonblock(10, exception: false)
          assert_raises(IO::EAGAINWaitReadable) { reader.read_nonblock(10) }
          writer.write("abc")
          reader.wait_readable
          assert_equal "ab", reader.read_nonblock(2)
          assert_equal "c", reader.read_nonblock(10)
        end
        writer.close
        reader.wait_readable
        assert_nil reader.read_nonblock(10, exception: false)
        assert_raises(EOFError) { reader.read_nonblock(10) }
      end
    end

    define_method("test_write_nonblock#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        assert_equal 5, writer.write_nonblock("Hello")
        fill(writer)
        assert_equal :wait_writable, writer.write_nonblock("x", exception: false)
        assert_raises(IO::EAGAINWaitWritable) { writer.write_nonblock("x") }
        assert_equal "Hello", reader.read(5)
      end
    end

    define_method("test_a_timeout_of_reads#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        reader.timeout = 0.001
        [-> { reader.gets }, -> { reader.readpartial(1) }, -> { reader.read(1) }, -> { reader.read },
         -> { reader.sysread(1) }].each { |call| assert_raises(IO::TimeoutError, &call) }
        reader.timeout = 60
        strand = waiting { reader.gets }
        writer.puts("in time")
        assert_equal "in time\n", strand.await
      end
      assert_nothing_in_flight
    end

    define_method("test_a_timeout_of_writes#{on}") do
      Ringspun.run do
        _, writer = stream(name)
        writer.timeout = 0.001
        assert_raises(IO::TimeoutError) { writer.write("x" * LARGE * 3) }
        writer.timeout = nil
        strand = waiting { writer.write("x" * LARGE * 3) }
        machine.terminate(strand)
        assert_ends_with(Ringspun::TerminatedError, strand)
      end
      assert_nothing_in_flight
    end
  end

  def test_nobody_else_runs_in_a_call_that_does_not_wait
    Ringspun.run do
      reader, = pair
      others = 0
      machine.spin { others += 1 }
      reader.read_nonblock(1, exception: false)
      assert_equal 0, others
    end
  end

  def test_a_timeout_of_waits
    Ringspun.run do
      reader, writer = pipe
      reader.timeout = 0.001
      assert_nil reader.wait_readable
      fill(writer)
      writer.timeout = 0.001
      assert_nil writer.wait_writable
      assert_raises(ArgumentError) { reader.wait_readable(-1) }
    end
    assert_nothing_in_flight
  end

  def test_others_run_while_a_timeout_is_on
    Ringspun.run do
      reader, = pair
      reader.timeout = 60
      strand = waiting { reader.gets }
      machine.terminate(strand)
      assert_ends_with(Ringspun::TerminatedError, strand)
    end
    assert_equal 0, machine.metrics[:timers]
  end

  def test_timeout_timeout_around_a_read
    require "timeout"
    Ringspun.run do
      reader, writer = pair
      assert_raises(Timeout::Error) { Timeout.timeout(0.001) { reader.read(20) } }
      writer.write("later")
      assert_equal "later", reader.read(5), "what came after the timeout is there"
    end
  end
end
