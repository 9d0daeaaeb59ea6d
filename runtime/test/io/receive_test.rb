# frozen_string_literal: true

require "tempfile"

require_relative "io_case"

# read_each and recv_each: bytes as they come, in Strings of their own.
module ReceiveTests
  def test_what_comes_until_the_end
    on_machine do |machine|
      reader, writer = make_pipe
      chunks = []
      strand = waiting(/\Aread on descriptor #{reader}\z/) { machine.read_each(reader) { |bytes| chunks << bytes } }
      %w[one two three].each do |bytes|
        machine.write(writer, bytes)
        settle
      end
      close(writer)
      assert_nil strand.await
      assert_equal "onetwothree", chunks.join
      assert_equal [Encoding::BINARY], chunks.map(&:encoding).uniq
      refute chunks.any?(&:frozen?)
      assert_nothing_in_flight
    end
  end

  def test_sockets
    on_machine do |machine|
      one, other = make_socketpair
      expected = sample(100_000)
      received = +"".b
      strand = waiting(/recv on/) { machine.recv_each(one) { |bytes| received << bytes } }
      machine.send(other, expected)
      machine.shutdown(other, :WR)
      assert_nil strand.await
      assert_bytes expected, received
    end
  end

  # What the block does not get stays where it is.
  def test_a_break_loses_nothing
    on_machine do |machine|
      one, other = make_socketpair
      expected = sample(50_000)
      writer = spin { machine.send(other, expected) }
      head = machine.recv_each(one) { |bytes| break bytes }
      assert_bytes expected, head + read_exactly(one, expected.bytesize - head.bytesize)
      writer.join
    end
  end

  def test_the_block_may_wait_and_read
    on_machine do |machine|
      one, other = make_socketpair
      seen = []
      strand = spin do
        machine.recv_each(one) do |bytes|
          machine.sleep(0.001)
          seen << bytes + read_exactly(one, 4 - bytes.bytesize)
          break if seen.size == 3
        end
      end
      %w[abcd efgh ijkl].each do |bytes|
        machine.send(other, bytes)
        settle until seen.last == bytes
      end
      strand.join
      assert_equal %w[abcd efgh ijkl], seen
    end
  end

  # More than the machine has buffers, and each of them with more than fits into one.
  def test_many_at_once
    on_machine(faults: false) do |machine|
      pairs = Array.new(amount(100)) { make_socketpair }
      expected = pairs.map.with_index { |_, seed| sample(40_000, seed) }
      received = pairs.map { +"".b }
      readers = pairs.map.with_index do |(one, _), i|
        waiting(/recv/) { machine.recv_each(one) { |bytes| break if received[i].concat(bytes).bytesize == 40_000 } }
      end
      pairs.each_with_index { |(_, other), i| spin { machine.send(other, expected[i]) } }
      machine.join(*readers)
      expected.zip(received) { |sent, got| assert_bytes sent, got }
    end
  end

  # Buffers come back: far more goes through them than they hold, with waiting in between.
  def test_buffers_are_used_again
    on_machine(faults: false) do |machine|
      one, other = make_socketpair
      message = sample(10_000)
      count = 0
      strand = waiting(/recv/) do
        machine.recv_each(one) { |bytes| break if (count += bytes.bytesize) == 300 * message.bytesize }
      end
      300.times do |i|
        machine.send(other, message)
        settle until count == (i + 1) * message.bytesize
      end
      strand.join
    end
  end

  def test_two_readers_of_one_socket
    on_machine do |machine|
      one, other = make_socketpair
      received = []
      readers = Array.new(2) { waiting(/recv/) { machine.recv_each(one) { |bytes| received << bytes } } }
      machine.send(other, "abc")
      settle until received.join == "abc"
      machine.shutdown(other, :WR)
      assert_equal [nil, nil], await_all(readers)
    end
  end

  def test_a_cancellation
    on_machine do |machine|
      one, other = make_socketpair
      strand = waiting(/recv/) { machine.recv_each(one) { flunk "nothing came" } }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      machine.send(other, "later")
      assert_equal "later", read_exactly(one, 5)
      assert_nothing_in_flight
    end
  end

  def test_a_deadline
    on_machine do |machine|
      one, = make_socketpair
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { machine.recv_each(one) { flunk "nothing came" } } }
      assert_nothing_in_flight
    end
  end

  def test_the_descriptor_is_closed
    on_machine do |machine|
      one, = make_socketpair
      strand = waiting(/recv/) { machine.recv_each(one) { flunk "nothing came" } }
      close(one)
      assert_raises(Ringspun::ClosedError) { strand.await }
      assert_raises(Ringspun::ClosedError) { machine.recv_each(one) { flunk "nothing came" } }
    end
  end

  def test_the_block_closes_the_descriptor
    on_machine do |machine|
      one, other = make_socketpair
      machine.send(other, "x")
      assert_raises(Ringspun::ClosedError) { machine.recv_each(one) { close(one) } }
    end
  end

  def test_wrong_use
    on_machine do |machine|
      reader, writer = make_pipe
      assert_raises(Ringspun::UsageError) { machine.read_each(reader) }
      assert_raises(Ringspun::UsageError) { machine.read_each("reader") { flunk } }
      assert_raises(Ringspun::UsageError) { machine.read_each(writer) { flunk } }
    end
  end
end

class ReceiveTest < IOCase
  include ReceiveTests

  # However many have come before, and wherever a buffer of the machine's ends.
  def test_a_message_that_is_sent_whole_comes_whole
    on_machine do |machine|
      sockets = make_socketpair
      { recv_each: sockets, read_each: make_pipe }.each do |method, (from, to)|
        chunks = []
        reader = waiting { machine.public_send(method, from) { |bytes| chunks << bytes } }
        amount(2_000).times do |i|
          machine.write(to, message = "message number #{i}")
          machine.yield until chunks.any?
          assert_equal [message], chunks
          chunks.clear
        end
        machine.terminate(reader)
        error_of { reader.join }
      end
    end
  end

  # Each strand's message lies in a buffer of its own until the strand has had its turn.
  def test_more_messages_at_once_than_there_are_buffers
    on_machine do |machine|
      pairs = Array.new(200) { make_socketpair }
      3.times do |round|
        strands = pairs.map { |from, _| spin { machine.recv_each(from) { |bytes| break bytes } } }
        until_waits(strands.last)
        pairs.each_with_index { |(_, to), i| machine.send(to, "message #{i} of round #{round}") }
        assert_equal Array.new(200) { |i| "message #{i} of round #{round}" }, strands.map(&:await)
      end
    end
  end

  def test_a_file
    Tempfile.create("ringspun") do |file|
      file.write(expected = sample(200_000))
      file.flush
      file.rewind
      on_machine do |machine|
        received = +"".b
        assert_nil(machine.read_each(file) { |bytes| received << bytes })
        assert_bytes expected, received
      end
    end
  end

  # Others keep it blocking.
  def test_a_pipe_of_others
    on_machine do |machine|
      reader, writer = IO.pipe
      reader.nonblock = false
      received = []
      strand = waiting(/read/) { machine.read_each(reader) { |bytes| received << bytes } }
      writer << "abc"
      machine.sleep(0.001) until received == ["abc"]
      writer.close
      assert_nil strand.await
      assert_raises(Ringspun::ClosedError) { machine.read_each(reader.tap(&:close)) { flunk } }
    end
  end

  def test_a_socket_has_no_bytes_to_recv_from_a_pipe
    on_machine do |machine|
      assert_raises(Errno::ENOTSOCK) { machine.recv_each(make_pipe.first) { flunk } }
    end
  end
end

class SimulatedReceiveTest < IOCase
  include Simulated
  include ReceiveTests
end
