# frozen_string_literal: true

# The methods of mruby-io's IO.
class IOObjectsTest < Minitest::Test
  include Strands
  include Descriptors

  def test_readiness
    with_io_pipe do |reader, writer|
      assert_equal :late, reader.await_readable(within: 0.001, timeout_result: :late)
      assert_raises(Ringspun::Evaluation::TimeoutError) { reader.await_readable(within: 0.001) }
      assert_same true, writer.await_writable
      in_scope do |scope|
        ready = scope.spin { reader.await_readable }
        machine.yield
        writer.syswrite("x")
        assert_same true, ready.await
      end
      assert_equal "x", reader.sysread(1)
    end
  end

  def test_bytes
    with_io_pipe do |reader, writer|
      in_scope do |scope|
        read = scope.spin { reader.await_read(10) }
        machine.yield
        assert_equal 5, writer.await_written("bytes")
        assert_equal "bytes", read.await
      end
      writer.await_written("more")
      buffer = ""
      assert_same buffer, reader.await_read(10, buffer)
      assert_equal "more", buffer
    end
  end

  def test_evaluations
    with_io_pipe do |reader, writer|
      read = reader.concurrently_read(10)
      assert_equal 5, writer.concurrently_write("bytes").await_result
      assert_equal "bytes", read.await_result
      waiting = concurrently { reader.await_readable }
      machine.yield
      waiting.resume!(:resumed)
      assert_equal :resumed, waiting.await_result
    end
  end

  def test_the_end
    with_io_pipe do |reader, writer|
      writer.close
      assert_raises(EOFError) { reader.await_read(1) }
    end
  end

  def test_a_write_of_more_than_there_is_room_for
    with_io_pipe do |reader, writer|
      written = writer.await_written("x" * 1_000_000)
      assert_operator written, :<, 1_000_000
      count = 0
      count += reader.await_read(100_000).bytesize while count < written
      assert_equal written, count
      assert_same false, reader.await_readable(within: 0, timeout_result: false)
    end
  end

  def test_a_closed_one
    with_io_pipe do |reader, _|
      reader.close
      assert_raises(IOError) { reader.await_readable }
      assert_raises(IOError) { reader.await_read(1) }
    end
  end

  def test_cancelled_waits_leave_nothing_behind
    leaving_none do
      with_io_pipe do |reader, writer|
        cancelled_in_wait { reader.await_read(1) }
        cancelled_in_wait { reader.await_readable }
        writer.syswrite("x")
        assert_equal "x", reader.await_read(1)
      end
    end
  end

  def test_bad_arguments
    with_io_pipe do |reader, writer|
      assert_usage_error("number of bytes", "0") { reader.await_read(0) }
      assert_usage_error("String", "1") { writer.await_written(1) }
      assert_raises(ArgumentError) { reader.await_readable(limit: 1) }
    end
  end

  private

  def with_io_pipe
    ends = IO.pipe
    yield(*ends)
  ensure
    ends&.each { |one| one.close unless one.closed? }
  end
end
