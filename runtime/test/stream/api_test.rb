# frozen_string_literal: true

require_relative "over_tls"
require "support/api_extension_build"

# What the C API does with streams, over whatever carries them.
module StreamApiTests
  include ApiExtensionBuild

  def test_what_has_come_is_looked_at_where_it_lies
    on_machine do
      stream, other = make_stream
      assert_equal "", api.stream_peek(stream)
      send_all(other, "hello")
      assert api.stream_more(stream, nil)
      assert_equal ["hello", "hello"], [api.stream_peek(stream), api.stream_peek(stream)]
      api.stream_drop(stream, 2)
      assert_equal "llo", api.stream_peek(stream)
      assert_equal "llo", stream.read(3)
    end
  end

  def test_more_waits_for_what_is_not_there_yet
    on_machine do
      stream, other = make_stream
      send_all(other, "ab")
      assert_equal "ab", stream.peek(2)
      strand = waiting(/recv/) { api.stream_more(stream, nil) }
      send_all(other, "cd")
      assert strand.await
      assert_equal "ab", api.stream_peek(stream)[0, 2]
      assert_equal "abcd", stream.read(4)
    end
  end

  def test_more_says_what_it_waits_for
    on_machine do |machine|
      stream, other = make_stream
      strand = waiting(/\Aan answer: é\z/) { [api.stream_more_for(stream, "an answer: é"), machine.sleep(3600)] }
      assert_equal Encoding::UTF_8, strand.waits_for.encoding
      send_all(other, "ab")
      machine.sleep(0.001) while strand.waits_for.to_s.include?("answer")
      machine.terminate(strand)
      error_of { strand.join }
      strand = waiting(/answer/) { api.stream_more_for(stream, "an answer") || flunk }
      machine.terminate(strand)
      error_of { strand.join }
      assert_equal "ab", stream.read(2)
    end
  end

  def test_more_after_the_end
    on_machine do
      stream, other = make_stream
      send_all(other, "rest")
      end_sending(other)
      nil while api.stream_more(stream, nil)
      assert_equal "rest", api.stream_peek(stream)
      refute api.stream_more(stream, nil)
    end
  end

  def test_more_until_a_deadline_and_a_cancellation_lose_nothing
    on_machine do |machine|
      stream, other = make_stream
      error = assert_raises(Ringspun::TimeoutError) { api.stream_more(stream, 0.001) }
      assert_match(/stream_more: the deadline/, error.message)
      strand = waiting { api.stream_more(stream, nil) }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.join }
      send_all(other, "x")
      assert api.stream_more(stream, nil)
      assert_equal "x", api.stream_peek(stream)
    end
  end

  def test_more_of_a_stream_that_is_closed_meanwhile
    on_machine do
      stream, = make_stream
      strand = waiting { api.stream_more(stream, nil) }
      stream.close
      assert_raises(Ringspun::ClosedError) { strand.join }
      assert_raises(Ringspun::ClosedError) { api.stream_more(stream, nil) }
      assert_raises(Ringspun::ClosedError) { api.stream_drop(stream, 0) }
      assert_raises(Ringspun::ClosedError) { api.stream_take(stream, 0) }
      assert_equal [false, 0, ""], [api.stream_put(stream, "x"), api.stream_unsent(stream), api.stream_peek(stream)]
    end
  end

  def test_a_second_reader_is_told_so
    on_machine do |machine|
      stream, = make_stream
      strand = waiting { api.stream_more(stream, nil) }
      assert_match(/another strand reads/, assert_raises(Ringspun::UsageError) { api.stream_more(stream, nil) }.message)
      machine.terminate(strand)
      error_of { strand.join }
    end
  end

  def test_a_block_is_taken_and_what_came_behind_stays
    on_machine do
      stream, other = make_stream
      send_all(other, "headbodytail")
      assert_equal "head", stream.read(4)
      stream.peek(8)
      assert_equal "body", api.stream_take(stream, 4)
      assert_equal "tail", api.stream_peek(stream)
      send_all(other, "!")
      assert_equal "tail!", stream.read(5)
      assert_equal "", api.stream_take(stream, 0)
      assert_raises(Ringspun::UsageError) { api.stream_take(stream, 1) }
      assert_raises(Ringspun::UsageError) { api.stream_drop(stream, 1) }
    end
  end

  def test_a_block_that_is_larger_than_those_of_the_pool
    on_machine do
      stream, other = make_stream
      bytes = sample(amount(100_000))
      sender = spin { send_all(other, bytes) }
      stream.peek(bytes.bytesize)
      sender.join
      half = bytes.bytesize / 2
      assert_equal bytes[0, half], api.stream_take(stream, half)
      assert_equal bytes[half..], stream.read(bytes.bytesize - half)
    end
  end

  def test_what_is_put_leaves_when_the_tick_ends
    on_machine do
      stream, other = make_streams
      assert_equal [true, true], %w[ab cd].map { |text| api.stream_put(stream, text) }
      assert_equal 4, api.stream_unsent(stream)
      stream.write("ef")
      assert_equal "abcdef", other.read(6)
      stream.flush
      assert_equal 0, api.stream_unsent(stream)
    end
  end

  def test_what_a_cancelled_strand_has_put_leaves_all_the_same
    on_machine do |machine|
      stream, other = make_streams
      strand = waiting { api.stream_put(stream, "kept") && machine.sleep }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.join }
      assert_equal "kept", other.read(4)
      stream.flush
    end
  end

  # --- in a forked child ---

  def test_what_had_come_is_there_in_a_child_and_in_the_parent
    on_machine do
      stream, other = make_stream
      send_all(other, "hello")
      assert_equal "hello", stream.peek(5)
      2.times do |turn|
        take = lambda do
          assert_equal "hello", api.stream_peek(stream)
          api.stream_drop(stream, 1)
          assert_equal ["ell", "o"], [api.stream_take(stream, 3), api.stream_peek(stream)]
        end
        turn.zero? ? assert_in_child(&take) : take.call
      end
    end
  end

  def test_a_child_may_wait_for_more_while_a_strand_of_the_parent_does
    on_machine do
      stream, other = make_stream
      strand = waiting { api.stream_more(stream, nil) }
      assert_in_child { assert_kind_of child_waits_in_vain, error_of { api.stream_more(stream, 0.001) } }
      send_all(other, "x")
      assert strand.await
      assert_equal "x", api.stream_peek(stream)
    end
  end

  # Each process sends what it has put itself.
  def test_what_was_put_before_the_fork_leaves_once
    on_machine do
      stream, other = make_streams
      assert api.stream_put(stream, "parent")
      assert_in_child do
        assert_equal 0, api.stream_unsent(stream)
        stream.flush
      end
      assert_equal 6, api.stream_unsent(stream)
      stream.flush
      stream.close_write
      assert_equal "parent", other.read
    end
  end

  def test_what_a_child_puts
    on_machine do
      stream, other = make_streams
      assert_in_child do
        put = api.stream_put(stream, "child")
        error = error_of { stream.flush }
        assert_equal child_puts, [put, error.class, api.stream_unsent(stream)]
        assert_equal "child", other.read(5) if simulated?
      end
      stream.close_write
      assert_equal told_by_child, other.read
    end
  end

  # What is gathered at the end of a tick leaves with it, and before anything else is waited for.
  def test_what_is_put_at_the_end_of_a_tick_leaves_with_it
    on_machine do
      stream, other = make_streams
      assert api.at_tick_end(0, stream, "late", 0, -1)
      assert_equal 0, api.stream_unsent(stream)
      assert_equal "late", other.read(4)
    end
  end

  def test_a_stream_that_has_failed_takes_nothing
    on_machine do
      stream, other = make_streams
      other.close
      error_of { 20.times { stream.write("x").then { stream.flush } } }
      refute api.stream_put(stream, "x")
    end
  end

  private

  # In a simulation no thread can wait for the child's end.
  def assert_in_child
    pid = fork do
      yield
      leave_child(true)
    rescue Exception => error
      warn error.full_message
      leave_child(false)
    end
    assert_predicate Fiber.blocking { Process.wait2(pid).last }, :success?
  end

  def child_waits_in_vain = Ringspun::TimeoutError
  def child_puts = [true, NilClass, 0]
  def told_by_child = "child"
end

class StreamApiTest < StreamCase
  include StreamApiTests
end

class TLSStreamApiTest < StreamCase
  include OverTLS
  include StreamApiTests

  private

  # Only the parent may use the session.
  def child_waits_in_vain = Ringspun::TLSSessionError
  def child_puts = [true, Ringspun::TLSSessionError, 0]
  def told_by_child = ""
end

class SimulatedStreamApiTest < StreamCase
  include Simulated
  include StreamApiTests

  private

  # A child has a world of its own.
  def told_by_child = ""
end
