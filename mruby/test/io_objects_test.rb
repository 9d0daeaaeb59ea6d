# frozen_string_literal: true

# The methods of mruby-io's IO.
class IOObjectsTest < Minitest::Test
  include Evaluations
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

  def test_close_ends_the_waits_of_strands_by_an_io_error
    with_io_pipe do |reader, writer|
      waits = [begun_wait { reader.await_readable }, begun_wait { reader.await_read(1) }]
      assert_nil reader.close
      assert_predicate reader, :closed?
      assert_closed(*waits)
      assert_raises(IOError) { reader.close }
      writer.close
    end
  end

  def test_close_of_a_socket
    server = TCPServer.new("127.0.0.1", 0)
    wait = begun_wait { server.await_readable }
    server.close
    assert_closed wait
  end

  def test_close_ends_waits_for_room
    with_io_pipe do |_, writer|
      nil while writer.await_writable(within: 0, timeout_result: false) && writer.await_written("x" * 100_000)
      waits = [begun_wait { writer.await_writable }, begun_wait { writer.await_written("y") }]
      writer.close
      assert_closed(*waits)
    end
  end

  def test_a_number_that_is_used_again
    with_io_pipe do |reader, _|
      wait = begun_wait { reader.await_readable }
      number = reader.fileno
      reader.close
      with_io_pipe do |other, writer|
        assert_equal number, other.fileno
        read = begun_wait { other.await_read(1) }
        assert_closed wait
        writer.syswrite("x")
        assert_equal "x", read.await_result
      end
    end
  end

  def test_who_waited_may_close_as_well
    with_io_pipe do |reader, _|
      waits = Array.new(3) do
        begun_wait do
          reader.await_read(1)
        ensure
          reader.close unless reader.closed?
        end
      end
      reader.close
      assert_closed(*waits)
      with_io_pipe do |other, writer|
        writer.syswrite("x")
        assert_equal "x", other.await_read(1)
      end
    end
  end

  def test_strands_that_close_at_once
    with_io_pipe do |reader, _|
      wait = begun_wait { reader.await_readable }
      in_scope { |scope| 3.times { scope.spin { reader.close unless reader.closed? } } }
      assert_predicate reader, :closed?
      assert_closed wait
    end
  end

  def test_a_strand_that_is_cancelled_while_it_closes
    with_io_pipe do |reader, _|
      wait = begun_wait { reader.await_readable }
      in_scope do |scope|
        scope.spin { reader.close }
        scope.spin { scope.cancel }
      end
      assert_predicate reader, :closed?
      assert_closed wait
    end
  end

  # A wait for the ends of ops would have to leave it.
  def test_close_inside_a_function_in_c
    with_io_pipe do |reader, writer|
      wait = begun_wait { reader.await_readable }
      pages = Hash.new { reader.close }
      assert_usage_error("cannot wait inside") { pages[0] }
      refute_predicate reader, :closed?
      writer.syswrite("x")
      assert_same true, wait.await_result
      assert_nil pages[0]
      assert_predicate reader, :closed?
    end
  end

  def test_in_a_simulation
    with_io_pipe do |reader, writer|
      wait = begun_wait { reader.await_readable }
      Ringspun::Simulation.run(faults: false) do
        assert_usage_error("a simulated machine") { reader.await_readable }
        assert_usage_error("a simulated machine") { writer.await_written("x") }
        assert_usage_error("the machine outside") { reader.close }
        mine, other = machine.pipe
        simulated = begun_wait { mine.read_partial }
        writer.close
        other.write("x")
        assert_equal "x", simulated.await_result
      end
      assert_same true, wait.await_result
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

  # A run of that block which waits by now.
  def begun_wait(&block)
    run = concurrently(&block)
    machine.yield
    refute_predicate run, :concluded?
    run
  end

  def assert_closed(*runs)
    runs.each { |run| assert_includes assert_raises(IOError) { run.await_result }.message, "closed in another strand" }
  end

  def with_io_pipe
    ends = IO.pipe
    yield(*ends)
  ensure
    ends&.each { |one| one.close unless one.closed? }
  end
end
