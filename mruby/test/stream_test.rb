# frozen_string_literal: true

# Reading, writing and closing.
class StreamTest < Minitest::Test
  include Strands
  include Descriptors

  LARGE = "0123456789abcdef" * 100_000

  def test_bytes_go_through_a_pipe
    with_pipe do |reader, writer|
      in_scope do |scope|
        parts = scope.spin { (0...2).map { reader.read_partial } }
        machine.yield
        assert_equal 5, writer.write("first")
        wait(0.001)
        writer.write("second")
        assert_equal %w[first second], parts.await
      end
    end
  end

  def test_all_bytes_of_a_large_write
    with_pipe do |reader, writer|
      in_scope do |scope|
        written = scope.spin { writer.write(LARGE).tap { writer.close } }
        assert_same true, reader.read == LARGE
        assert_equal LARGE.bytesize, written.await
      end
    end
  end

  def test_large_writes_of_strands_do_not_mix
    with_socketpair do |reader, writer|
      in_scope do |scope|
        5.times { |number| scope.spin { writer.write(number.to_s * 300_000) } }
        machine.yield
        read = reader.read(1_500_000)
        parts = Array.new(5) { |part| read.byteslice(part * 300_000, 300_000) }
        assert_same true, parts.sort == Array.new(5) { |number| number.to_s * 300_000 }
      end
    end
  end

  def test_a_write_does_not_overtake_one_that_waits
    with_pipe do |reader, writer|
      in_scope do |scope|
        scope.spin { writer.write(LARGE) }
        machine.yield
        part = reader.read_partial(100_000) # makes room
        scope.spin { writer.write("behind") }
        machine.yield
        part += reader.read(LARGE.bytesize + 6 - part.bytesize)
        assert_same true, part == "#{LARGE}behind"
      end
    end
  end

  def test_what_is_written_may_change_in_the_meantime
    with_pipe do |reader, writer|
      bytes = "x" * 200_000
      in_scope do |scope|
        scope.spin { writer.write(bytes) }
        machine.yield
        bytes.replace("y" * 200_000)
        assert_same true, reader.read(200_000) == "x" * 200_000
      end
    end
  end

  def test_the_end
    with_pipe do |reader, writer|
      writer.write("last\nline")
      writer.close
      refute_predicate reader, :eof?
      assert_equal "last", reader.read_line
      assert_equal "line", reader.read_line
      assert_nil reader.read_line
      assert_nil reader.read(1)
      assert_nil reader.read_partial
      assert_equal "", reader.read
      assert_predicate reader, :eof?
    end
  end

  def test_the_end_among_the_bytes_leaves_them
    with_pipe do |reader, writer|
      writer.write("abc")
      writer.close
      error = assert_raises(Ringspun::EndOfStreamError) { reader.read(4) }
      assert_equal "read: the stream ended after 3 of 4 bytes", error.message
      assert_equal "abc", reader.read(3)
    end
  end

  def test_lines
    with_pipe do |reader, writer|
      assert_equal 4, writer.write_line("o", "ne")
      writer.write_line("two\r")
      assert_equal 1, writer.write_line
      writer << "three"
      writer.close
      lines = []
      reader.each_line { |line| lines << line }
      assert_equal ["one", "two", "", "three"], lines
    end
  end

  def test_a_line_has_a_limit
    with_pipe do |reader, writer|
      writer.write("12345\n")
      assert_raises(Ringspun::LimitError) { reader.read_line(limit: 4) }
      assert_equal "12345\n", reader.read_line(limit: 5, chomp: false)
      writer.write("12345")
      assert_raises(Ringspun::LimitError) { reader.read_line(limit: 4) }
      assert_equal "12345", reader.read(5)
    end
  end

  def test_a_read_that_is_cancelled_leaves_the_bytes
    with_pipe do |reader, writer|
      writer.write("first ")
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { reader.read(11) } }
      writer.write("later")
      assert_equal "first later", reader.read(11)
    end
  end

  def test_a_cancelled_write_has_written_a_part
    with_pipe do |reader, writer|
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { writer.write(LARGE) and wait(1) } }
      writer.close
      assert_operator reader.read.bytesize, :<, LARGE.bytesize
    end
  end

  def test_bytes_that_are_there_come_although_the_turn_has_ended
    with_pipe do |reader, writer|
      others = 0
      in_scope do |scope|
        scope.spin { 100.times { others += 1 and machine.yield } }
        100.times do |number|
          writer.write(number.to_s)
          assert_equal number.to_s, reader.read_partial
        end
        assert_operator others, :>, 1
      end
    end
  end

  def test_a_cancellation_after_bytes_that_are_there_loses_none
    with_pipe do |reader, writer|
      writer.write("x" * 5000) # more than a cancelled strand reads that never waits
      read = 0
      in_scope do |scope|
        scope.spin { loop { read += reader.read_partial(1).bytesize } }
        machine.yield
        scope.cancel
      end
      assert_operator read, :>, 0
      assert_equal 5000 - read, reader.read_partial.bytesize
    end
  end

  # The end of a turn lets others run, and raises nothing in a strand that unwinds.
  def test_what_a_cancelled_strand_can_do_at_once_is_done
    with_pipe do |reader, writer|
      done = 0
      in_scope do |scope|
        scope.spin do
          wait(60)
        ensure
          300.times { done += writer.write("x") }
        end
        machine.yield
        scope.cancel
      end
      assert_equal 300, done
      assert_equal "x" * 300, reader.read(300)
    end
  end

  def test_cancelled_waits_leave_nothing_behind
    leaving_none do
      with_pipe do |reader, writer|
        cancelled_in_wait { reader.read(1) }
        cancelled_in_wait { reader.await_readable }
        cancelled_in_wait { writer.write(LARGE) and wait(10) }
        cancelled_in_wait { writer.await_writable }
      end
    end
  end

  def test_a_close_ends_the_waits
    with_pipe do |reader, _|
      assert_kind_of Ringspun::ClosedError, error_of(-> { reader.read(1) }) { reader.close }
    end
    with_pipe do |reader, _|
      assert_kind_of Ringspun::ClosedError, error_of(-> { reader.await_readable }) { reader.close }
    end
    with_pipe do |_, writer|
      assert_kind_of Ringspun::ClosedError, error_of(-> { 2.times { writer.write(LARGE) } }) { writer.close }
    end
  end

  def test_many_wait_for_one_that_is_closed
    leaving_none do
      with_socketpair do |one, other|
        ended = 0
        in_scope do |scope|
          20.times do
            scope.spin do
              one.await_readable
            rescue Ringspun::ClosedError
              ended += 1
            end
          end
          3.times { machine.yield }
          2.times { scope.spin { one.close } }
        end
        assert_equal 20, ended
        assert_nil other.read_partial
      end
    end
  end

  def test_a_closed_one
    with_pipe do |reader, writer|
      reader.close
      reader.close
      assert_predicate reader, :closed?
      assert_equal "#<Ringspun::Stream (closed)>", reader.inspect
      [-> { reader.read(1) }, -> { reader.read }, -> { reader.read_line }, -> { reader.await_readable }, -> { reader.write("") },
       -> { reader.fsync }, -> { reader.fileno }, -> { reader.accept }].each { |use| assert_raises(Ringspun::ClosedError, &use) }
      error = assert_raises(Ringspun::SystemCallError) { writer.write("nobody reads") }
      assert_equal Errno::EPIPE, error.class
    end
  end

  def test_a_forgotten_one_is_closed
    leaving_none { 10.times { machine.pipe } }
  end

  def test_a_forgotten_one_of_a_simulation_counts_as_open
    run = Ringspun::Simulation.run do |simulated|
      10.times { simulated.pipe }
      GC.start
    end
    assert_equal 20, run.open_descriptors
  end

  def test_readiness_has_a_limit
    with_pipe do |reader, writer|
      assert_equal :late, reader.await_readable(within: 0.001, timeout_result: :late)
      assert_nil reader.await_readable(within: 0, timeout_result: nil)
      error = assert_raises(Ringspun::Evaluation::TimeoutError) { reader.await_readable(within: 0.001) }
      assert_equal "evaluation timed out after 0.001 second(s)", error.message
      assert_same true, writer.await_writable(within: 1)
      writer.write("there")
      assert_same true, reader.await_readable(within: 1)
      reader.read(1)
      assert_same true, reader.await_readable
    end
  end

  def test_a_wait_for_readiness_is_resumed
    with_pipe do |reader, writer|
      [:value, nil, false].each do |value|
        waiting = concurrently { reader.await_readable }
        machine.yield
        assert_equal :resumed, waiting.resume!(value)
        assert_same value, waiting.await_result
      end
      writer.write("x")
      assert_equal "x", reader.read(1)
    end
  end

  def test_a_socket_is_closed_for_writing_alone
    with_socketpair do |one, other|
      one.write("question")
      one.close_write
      assert_equal "question", other.read
      other.write("answer")
      assert_equal "answer", one.read_partial
    end
    with_pipe { |_, writer| assert_raises(Ringspun::UnsupportedError) { writer.close_write } }
  end

  def test_on_a_simulated_kernel
    Ringspun::Simulation.explore(100) do |simulated|
      reader, writer = simulated.pipe
      simulated.scope do |scope|
        3.times { |number| scope.spin { 3.times { writer.write_line(number.to_s * 1_000) } } }
        lines = (0...9).map { reader.read_line }
        assert_equal Array.new(9) { |line| (line / 3).to_s * 1_000 }, lines.sort
      end
      assert_kind_of Ringspun::ClosedError, error_of(-> { reader.read(1) }) { reader.close }
      writer.close
    end
  end

  def test_a_stream_of_another_machine
    with_pipe do |reader, _|
      Ringspun::Simulation.run { assert_usage_error("another machine") { reader.read(1) } }
      strange = Ringspun::Simulation.run { |simulated| simulated.pipe[0] }.value
      assert_predicate strange, :closed?
    end
  end

  def test_bad_arguments
    with_pipe do |reader, writer|
      assert_usage_error("read", "-1") { reader.read(-1) }
      assert_usage_error("read", "\"x\"") { reader.read("x") }
      assert_usage_error("number of bytes", "0") { reader.read_partial(0) }
      assert_usage_error("write", "String", ":x") { writer.write(:x) }
      assert_usage_error("write", "String", "nil") { writer.write("x", nil) }
      assert_usage_error("reading") { reader.write("x") }
      assert_usage_error("writing") { writer.read_partial }
      assert_raises(NoMethodError) { Ringspun::Stream.new }
      assert_raises(TypeError) { reader.dup.read(1) }
    end
  end

  def test_a_wait_where_none_may_be_begins_nothing
    with_pipe do |reader, writer|
      hash = Hash.new { |_, _| reader.read_partial }
      assert_usage_error("cannot wait inside") { hash[1] }
      writer.write("x")
      assert_equal "x", reader.read_partial
    end
  end
end
