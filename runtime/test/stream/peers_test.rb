# frozen_string_literal: true

require_relative "stream_case"

# Peers that send without end, all at once, or go away in the middle.
class StreamPeersTest < StreamCase
  BLOCK = 1 << 20

  # What waits for more than has come.
  READERS = { read_line: [], read_until: ["|"], read: [9], peek: [9], skip: [9], eof?: [], read_partial: [] }.freeze

  def test_a_gigabyte_without_a_newline
    blocks = amount(1_024)
    on_machine do
      stream, other = make_stream
      sender = spin do
        block = "x" * BLOCK
        blocks.times { send_all(other, block) }
        send_all(other, "|after\n")
      end
      assert_raises(Ringspun::LimitError) { stream.read_line }
      before = resident_bytes
      stream.skip(blocks * BLOCK)
      assert_operator resident_bytes - before, :<, 16 * BLOCK
      assert_equal "", stream.read_until("|")
      assert_equal "after", stream.read_line
      sender.join
    end
  end

  def test_a_connection_is_reset
    READERS.each do |call, arguments|
      on_machine do
        stream, other = tcp_stream
        reader = waiting(/recv/) { stream.public_send(call, *arguments) }
        reset(other)
        assert_raises(Errno::ECONNRESET, call.to_s) { reader.await }
      end
    end
  end

  def test_a_connection_is_reset_and_what_came_before_is_still_there
    READERS.slice(:read_line, :read_until, :read, :peek).each do |call, arguments|
      on_machine do
        stream, other = tcp_stream
        other.write("part")
        assert_equal "part", stream.peek(4)
        reader = waiting(/recv/) { stream.public_send(call, *arguments) }
        reset(other)
        assert_raises(Errno::ECONNRESET, call.to_s) { reader.await }
        assert_equal "part", stream.read_partial, call.to_s
      end
    end
  end

  def test_a_connection_is_reset_before_what_was_written_has_left
    on_machine do
      stream, other = tcp_stream(high_water: 2 * LARGE)
      until_full = sample(2 * LARGE)
      stream.write(until_full)
      writer = waiting { stream.flush }
      reset(other)
      assert_raises(Errno::ECONNRESET, Errno::EPIPE) { writer.await }
      assert_raises(Errno::ECONNRESET, Errno::EPIPE) { stream.write("more") }
    end
  end

  def test_the_other_side_has_said_all_and_still_listens
    on_machine do
      stream, other = make_stream
      send_all(other, "question\n")
      end_sending(other)
      assert_equal "question", stream.read_line
      assert_predicate stream, :eof?
      answer = sample(LARGE)
      reader = spin { read_exactly(other, LARGE) }
      stream.write(answer)
      stream.close_write
      assert_equal answer, reader.await
    end
  end

  # More than the machine has receive buffers for. Those who come too late wait a little longer, or get memory of their own.
  def test_all_send_at_once
    size = 16_384
    on_machine do
      pairs = Array.new(amount(300)) { make_stream }
      readers = pairs.map { |stream, _| waiting(/recv/) { stream.read(size) } }
      pairs.each_with_index { |(_, other), index| send_all(other, sample(size, index)) }
      readers.each_with_index { |reader, index| assert_equal sample(size, index), reader.await }
      assert_no_buffer
    end
  end

  private

  def resident_bytes = File.read("/proc/self/statm").split[1].to_i * 4_096

  # A stream, and the socket of the other side.
  def tcp_stream(**)
    server = TCPServer.new("127.0.0.1", 0)
    other = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
    keep(other)
    [keep_stream(Ringspun::Stream.new(server.accept, **)), other]
  ensure
    server&.close
  end

  def reset(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    close(socket)
  end
end
