# frozen_string_literal: true

require_relative "over_tls"

# Stream's writing half: order, joining, back-pressure, errors.
module StreamWriteTests
  def test_what_is_written_in_a_tick_is_one_call
    on_machine do |machine|
      one, two = make_streams
      assert_equal 3, one.write("a", "bc")
      assert_equal 3, one.write_line("de")
      reader = machine.spin { two.read(6) }
      before = machine.metrics.values_at(:ops_inline, :ops_started).sum
      one.flush
      calls = machine.metrics.values_at(:ops_inline, :ops_started).sum - before
      assert_equal "abcde\n", reader.await
      assert_includes 1..3, calls # that of the reader, tried and waited for, included
    end
  end

  def test_writes_in_a_row
    on_machine do
      one, two = make_streams
      assert_same one, one << "a" << "bc"
      assert_equal "abc", two.read(3)
      assert_raises(Ringspun::UsageError) { one << :d }
    end
  end

  def test_it_leaves_when_the_others_have_had_their_turn
    on_machine do
      one, two = make_streams
      one.write("x")
      assert_equal "x", two.read(1)
    end
  end

  def test_writes_of_many_strands_stay_whole
    on_machine do
      one, two = make_streams(high_water: 1_000)
      writers = Array.new(10) { |i| spin { amount(100).times { one.write_line(i.to_s * 100) } } }
      spin do
        @machine.join(*writers)
        one.close_write
      end
      lines = two.each_line.to_a
      assert_equal Array.new(10) { |i| [i.to_s * 100, amount(100)] }.to_h, lines.tally
    end
  end

  def test_who_writes_more_than_the_high_water_mark_waits
    on_machine(faults: false) do
      one, two = make_streams(high_water: 10_000)
      bytes = sample(IOCase::LARGE)
      writer = waiting(/what was written to a Stream to leave/) { one.write(bytes) }
      assert_raises(Ringspun::TimeoutError) { one.flush(timeout: 0.01) }
      assert_raises(Ringspun::TimeoutError) { one.write("later", timeout: 0.01) }
      assert_bytes "#{bytes}later", two.read(IOCase::LARGE + 5)
      assert_equal IOCase::LARGE, writer.await
      one.flush
      assert_no_buffer
    end
  end

  def test_a_writer_that_is_cancelled_has_written
    on_machine(faults: false) do |machine|
      one, two = make_streams
      bytes = sample(IOCase::LARGE)
      writer = waiting { one.write(bytes) }
      machine.terminate(writer)
      assert_raises(Ringspun::TerminatedError) { writer.await }
      last = spin { one.write("end") }
      assert_bytes "#{bytes}end", two.read(IOCase::LARGE + 3)
      assert_equal 3, last.await
    end
  end

  def test_the_other_side_is_gone
    on_machine do
      one, other = make_stream
      close(other)
      one.write("x")
      assert_raises(Errno::EPIPE) { one.flush }
      assert_raises(Errno::EPIPE) { one.write("y") }
      assert_nil one.close # it has been told
    end
  end

  def test_close_tells_what_nobody_was_told
    on_machine do
      one, other = make_stream
      close(other)
      one.write("x")
      assert_raises(Errno::EPIPE) { one.close }
      assert_predicate one, :closed?
    end
  end

  def test_close_waits_until_everything_has_left
    on_machine(faults: false) do
      one, two = make_streams(high_water: IOCase::LARGE)
      bytes = sample(IOCase::LARGE)
      one.write(bytes)
      closer = waiting { one.close }
      assert_bytes bytes, two.read
      assert_nil closer.await
    end
  end

  def test_a_block_that_fails_does_not_wait_for_the_other_side
    on_machine(faults: false) do |machine|
      one, other = machine.socketpair
      keep(other)
      error = assert_raises(RuntimeError) do
        Ringspun::Stream.open(one, high_water: IOCase::LARGE) do |stream|
          stream.write(sample(IOCase::LARGE))
          raise "failed"
        end
      end
      assert_equal "failed", error.message
      assert_no_buffer
    end
  end

  def test_a_block_that_ends_has_written
    on_machine do
      one, other = make_socketpair
      @kept.delete(one)
      assert_equal(5, Ringspun::Stream.open(one) { |stream| break stream.write("hello") })
      assert_equal "hello", read_exactly(other, 5)
      assert_equal 0, @machine.recv(other, +"")
    end
  end

  def test_close_does_not_wait_for_ever
    on_machine(faults: false) do
      one, = make_streams(high_water: IOCase::LARGE)
      one.write(sample(IOCase::LARGE))
      assert_raises(Ringspun::TimeoutError) { one.close(timeout: 0.01) }
      assert_predicate one, :closed?
      assert_nothing_in_flight
      assert_no_buffer
    end
  end

  def test_one_direction_is_closed
    on_machine do
      one, two = make_streams
      one.write("last")
      assert_nil one.close_write
      assert_equal "last", two.read
      two.write_line("answer")
      assert_equal "answer", one.read_line
      assert_match(/closed for writing/, assert_raises(Ringspun::ClosedError) { one.write("x") }.message)
      assert_raises(Ringspun::ClosedError) { one.close_write }
    end
  end

  def test_it_is_closed_while_a_strand_writes
    on_machine(faults: false) do
      one, = make_streams
      writer = waiting { one.write(sample(IOCase::LARGE)) }
      assert_raises(Ringspun::TimeoutError) { one.close(timeout: 0.01) }
      assert_raises(Ringspun::ClosedError) { writer.await }
    end
  end

  # It is code of the program that makes a String of it.
  def test_what_is_no_string_yet_is_made_one_before_anything_else
    on_machine do
      one, two = make_streams
      calls = 0
      odd = Object.new
      odd.define_singleton_method(:to_str) { ((calls += 1) > 1 ? one.close : one.write("first")) && "odd" }
      assert_equal 4, one.write("a", odd)
      assert_equal ["firstaodd", 1], [two.read(9), calls]
    end
  end

  def test_nothing_is_written_to_one_that_is_being_closed
    on_machine(faults: false) do
      one, two = make_streams(high_water: IOCase::LARGE)
      one.write(sample(IOCase::LARGE))
      closer = waiting { one.close }
      assert_raises(Ringspun::ClosedError) { one.write("x") }
      assert_equal IOCase::LARGE, two.read.bytesize
      assert_nil closer.await
    end
  end

  def test_wrong_use
    on_machine do
      one, two = make_streams
      assert_raises(Ringspun::UsageError) { one.write("a", 1) }
      assert_raises(Ringspun::UsageError) { one.write_line(nil) }
      assert_raises(ArgumentError) { one.write("x", within: 1) }
      one.write_line
      one.write
      one.close_write
      assert_equal "\n", two.read
    end
  end
end

class StreamWriteTest < StreamCase
  include StreamWriteTests

  # Where others always have something to add.
  def test_a_flush_waits_for_what_was_there_before_it
    on_machine do
      one, two = make_streams(high_water: LARGE)
      others = Array.new(2) { spin { one.write("x" * 1_000_000) while true } }
      reader = spin { two.read(5_000) while true }
      flusher = waiting(/to leave/) { one.flush }
      assert_same one, flusher.await
      [*others, reader].each { |strand| @machine.terminate(strand) }
    end
  end

  def test_only_a_socket_is_closed_in_one_direction
    on_machine do
      _, writer = make_pipe
      stream = Ringspun::Stream.new(writer)
      assert_raises(Ringspun::UnsupportedError) { stream.close_write }
    end
  end

  def test_what_is_written_last_leaves_before_the_machine_closes
    reader, writer = IO.pipe
    Ringspun.run { Ringspun::Stream.new(writer).write("last words") }
    Ringspun::Machine.current.close
    writer.close
    assert_equal "last words", reader.read
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_machine_that_closes_gives_up_on_a_side_that_does_not_read
    reader, writer = IO.pipe
    error = error_of do
      Thread.new do
        Ringspun::Stream.new(writer, high_water: IOCase::LARGE).write("x" * IOCase::LARGE)
        Ringspun::Machine.current.close
      end.join
    end
    assert_nil error
  ensure
    [reader, writer].each(&:close)
  end

  # A forked child has a copy of them, and must not send it as well.
  def test_bytes_on_their_way_are_the_parents
    on_machine do
      one, two = make_streams
      one.write("once")
      pid = fork do
        one.write("child")
        one.flush
        exit!(0)
      end
      Process.wait(pid)
      one.write("\n")
      assert_equal ["child", "once"], two.read_line.scan(/once|child/).sort
    end
  end

  def test_a_stream_that_nobody_holds_sends_what_was_written
    on_machine do
      one, two = make_socketpair
      Ringspun::Stream.new(one).write("x" * 1_000)
      GC.start
      assert_equal 1_000, read_exactly(two, 1_000).bytesize
    end
  end

  # In a process of its own: when what such a thread has left is collected is not for a test to say.
  def test_a_thread_that_ends_in_the_middle
    answer = ruby_child(<<~RUBY)
      require "ringspun"
      require "socket"
      ends = Array.new(20) { UNIXSocket.pair }
      ends.each do |one, _|
        Thread.new do
          Ringspun::Stream.new(one, high_water: 9_000_000).write("x" * 3_000_000)
          Ringspun::Machine.current.sleep(0.001) # an op has the rest of them now
        end.join
      end
      3.times { GC.start }
      print ends[0][1].readpartial(1)
    RUBY
    assert_equal ["x", "", true], [answer.out, answer.err, answer.status.success?]
  end

  def test_another_thread
    on_machine do
      one, = make_streams
      error = Thread.new { error_of { one.write("x") } }.value
      assert_kind_of Ringspun::WrongThreadError, error
    end
  end
end

class SimulatedStreamWriteTest < StreamCase
  include StreamWriteTests
  include Simulated
end

class TLSStreamWriteTest < StreamCase
  include StreamWriteTests
  include OverTLS
end
