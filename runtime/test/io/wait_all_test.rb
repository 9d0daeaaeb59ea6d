# frozen_string_literal: true

require "support/seccomp"
require_relative "io_case"

# MSG_WAITALL: all bytes, the end, an error or a cancellation, and what came by then is handed over; the same on every backend.
module WaitAll
  ALL = Socket::MSG_WAITALL

  def receive(socket, length, buffer = +"", flags = ALL)
    bytes = @machine.recv(socket, buffer, length, flags)
    [bytes, buffer]
  end

  def test_all_that_is_there_already
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123456")
      assert_equal [4, "1234"], receive(one, 4)
      assert_equal [2, "56"], receive(one, 2)
    end
  end

  def test_bytes_that_come_one_by_one
    on_machine do
      one, other = make_socketpair
      strand = waiting { receive(one, 6) }
      "12345".each_char do |byte|
        @machine.send(other, byte)
        settle
        settle
        assert_predicate strand, :alive?
      end
      @machine.send(other, "6")
      assert_equal [6, "123456"], strand.await
    end
  end

  def test_some_are_there_and_the_rest_comes_later
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123")
      strand = waiting { receive(one, 6) }
      @machine.send(other, "4567")
      assert_equal [6, "123456"], strand.await
      assert_equal [1, "7"], receive(one, 1)
    end
  end

  def test_more_than_a_socket_holds
    on_machine do
      one, other = make_socketpair
      bytes = Random.new(1).bytes(amount(IOCase::LARGE))
      strand = waiting { receive(one, bytes.bytesize) }
      @machine.send(other, bytes)
      count, got = strand.await
      assert_equal bytes.bytesize, count
      assert bytes == got.b, "other bytes" # without printing them
    end
  end

  def test_the_end_before_all
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123")
      strand = waiting { receive(one, 6) }
      @machine.shutdown(other, :WR)
      assert_equal [3, "123"], strand.await
      assert_equal [0, ""], receive(one, 6)
    end
  end

  def test_cancelled_after_some
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123")
      got = nil
      strand = waiting do
        got = receive(one, 6)
        @machine.sleep(3600)
      end
      @machine.terminate(strand)
      assert_kind_of Ringspun::TerminatedError, error_of { strand.await }
      assert_equal [3, "123"], got
      @machine.send(other, "456")
      assert_equal [3, "456"], receive(one, 3)
    end
  end

  def test_the_time_is_up_after_some
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123")
      got = nil
      assert_raises(Ringspun::TimeoutError) { @machine.timeout(0.1) { (got = receive(one, 6)) && @machine.sleep(3600) } }
      assert_equal [3, "123"], got
      @machine.send(other, "456")
      assert_equal [3, "456"], receive(one, 3)
    end
  end

  def test_closed_after_some
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123")
      strand = waiting { receive(one, 6) }
      close(one)
      assert_equal [3, "123"], strand.await
    end
  end

  def test_into_a_slice
    on_machine do
      one, other = make_socketpair
      buffer = IO::Buffer.new(10)
      @machine.send(other, "123")
      strand = waiting { @machine.recv(one, buffer.slice(2, 6), 6, ALL) }
      @machine.send(other, "456")
      assert_equal 6, strand.await
      assert_equal "\0\000123456\0\0", buffer.get_string
    end
  end

  def test_messages_with_what_comes_beside_them
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123")
      strand = waiting do
        bytes, = @machine.recvmsg(one, buffer = +"", 6, ALL)
        [bytes, buffer]
      end
      @machine.send(other, "456")
      assert_equal [6, "123456"], strand.await
    end
  end

  def test_with_a_look_ahead
    on_machine do
      one, = make_socketpair
      error = assert_raises(Ringspun::UnsupportedError) { receive(one, 6, +"", ALL | Socket::MSG_PEEK) }
      assert_match(/peek/, error.message)
    end
  end
end

class WaitAllTest < IOCase
  include WaitAll

  RESET_AT_CLOSE = [1, 0].pack("ii")

  # A connection, and the peer that can break it.
  def make_connection
    TCPServer.open("127.0.0.1", 0) do |server|
      peer = TCPSocket.new("127.0.0.1", server.addr[1])
      peer.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, RESET_AT_CLOSE)
      keep(server.accept, peer)
    end
  end

  RECEIVERS = {
    recv: ->(test, socket, buffer) { test.receive(socket, 6, buffer).first },
    recvmsg: ->(test, socket, buffer) { test.machine.recvmsg(socket, buffer, 6, ALL).first },
    io_buffer: ->(_, socket, buffer) { IO::Buffer.new(6).then { |into| into.read(socket, 6).tap { |got| buffer << into.get_string(0, got) } } }
  }.freeze

  attr_reader :machine

  RECEIVERS.each do |name, receiver|
    define_method(:"test_an_error_after_some_by_#{name}_is_told_by_the_next_call") do
      on_machine do
        socket, peer = make_connection
        strand = waiting { [receiver.call(self, socket, buffer = +""), buffer] }
        peer.write("123")
        close(peer)
        assert_equal [3, "123"], strand.await
        assert_raises(Errno::ECONNRESET) { @machine.recv(socket, +"", 6) }
        assert_equal 0, @machine.recv(socket, +"", 6)
      end
    end
  end

  def test_an_error_that_a_wait_would_be_told_is_not_lost
    on_machine do
      socket, peer = make_connection
      strand = waiting { receive(socket, 6) }
      peer.write("123")
      close(peer)
      strand.await
      assert_raises(Errno::ECONNRESET) { socket.readpartial(6) }
      assert_raises(EOFError) { socket.readpartial(6) }
    end
  end

  # The number means another socket then.
  def test_an_error_is_not_told_to_the_next_socket_of_that_number
    on_machine do
      socket, peer = make_connection
      strand = waiting { receive(socket, 6) }
      peer.write("123")
      close(peer)
      strand.await
      number = @kept.delete(socket).then { socket.fileno.tap { socket.close } }
      pair = keep(*UNIXSocket.pair) until pair&.any? { |one| one.fileno == number }
      other, peer = pair.sort_by { |one| one.fileno == number ? 0 : 1 }
      @machine.send(peer, "123456")
      assert_equal [6, "123456"], receive(other, 6)
    end
  end

  def test_of_a_message_it_has_no_meaning
    on_machine do
      one, other = make_socketpair(:UNIX, :DGRAM)
      @machine.send(other, "123")
      assert_equal [3, "123"], receive(one, 6)
    end
  end

  def test_who_may_not_wait_gets_what_is_there
    on_machine do
      one, other = make_socketpair
      @machine.send(other, "123")
      assert_equal [3, "123"], receive(one, 6, +"", ALL | Socket::MSG_DONTWAIT)
    end
  end

  # Nobody asks the kernel: here it would refuse.
  def test_one_of_the_machine_s_own_is_known
    refused = Thread.new do
      Seccomp.refuse(:getsockopt, Errno::EPERM)
      Ringspun.run do |machine|
        one, other = machine.socketpair(:UNIX, :STREAM)
        strand = machine.spin { machine.recv(one, +"", 6, ALL) }
        machine.send(other, "123")
        machine.sleep(0)
        machine.send(other, "456")
        strand.await.tap { [one, other].each { |descriptor| machine.close(descriptor) } }
      end
    end
    assert_equal 6, refused.value
  end

  # Made by others, so that nothing is known of it.
  def test_a_stock_socket
    on_machine do
      one, other = UNIXSocket.pair
      strand = waiting { receive(one, 6) }
      other.write("123")
      settle
      other.write("456")
      assert_equal [6, "123456"], strand.await
      [one, other].each(&:close)
    end
  end
end

class SimulatedWaitAllTest < IOCase
  include Simulated
  include WaitAll
end
