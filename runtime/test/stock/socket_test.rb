# frozen_string_literal: true

require "test_helper"
require "support/stock"
require "tmpdir"

# Ruby's own sockets.
class StockSocketTest < Minitest::Test
  include Stock

  def test_tcp_by_name
    Ringspun.run do
      Socket.tcp_server_sockets("localhost", 0) do |listeners|
        port = listeners.first.local_address.ip_port
        accepting = parked { listeners.first.accept.first }
        Socket.tcp("localhost", port, connect_timeout: 30) do |client|
          server = accepting.await
          line = parked { client.gets }
          server.puts("hello")
          assert_equal "hello\n", line.await
          server.close
          assert_nil client.gets
        end
      end
    end
    # Ruby 3.4 looks up both families in threads of their own, and goes on with the first answer.
    yield_until("the other look-up has ended, and with it the C library's socket") { descriptors_left.empty? }
  end

  def test_tcp_server_and_many_clients
    Ringspun.run do
      server = TCPServer.new("127.0.0.1", 0)
      serving = parked do
        Array.new(30) { server.accept }.each { |connection| connection.write(connection.gets.upcase) && connection.close }
      end
      answers = Array.new(30) do |i|
        machine.spin do
          client = TCPSocket.new("127.0.0.1", server.addr[1])
          client.puts("client #{i}")
          client.read.tap { client.close }
        end
      end
      assert_equal(Array.new(30) { |i| "CLIENT #{i}\n" }, machine.await(*answers))
      serving.join
      server.close
    end
  end

  def test_a_connection_that_nobody_accepts
    Ringspun.run do
      with_full_listener do |port|
        waiting = parked { error_of { Socket.tcp("127.0.0.1", port, connect_timeout: 0.05) } }
        assert_kind_of Errno::ETIMEDOUT, waiting.await
      end
    end
  end

  def test_unix_sockets
    Dir.mktmpdir do |folder|
      path = File.join(folder, "socket")
      Ringspun.run do
        UNIXServer.open(path) do |server|
          accepting = parked { server.accept }
          UNIXSocket.open(path) do |client|
            connection = accepting.await
            read = parked { connection.read }
            client.write("bytes" * 100_000)
            client.close_write
            assert_same_bytes "bytes" * 100_000, read.await
            connection.close
          end
        end
      end
    end
  end

  def test_a_socket_sent_through_a_socket
    Ringspun.run do
      one, other = UNIXSocket.pair
      reader, writer = IO.pipe
      until_parked(receiving = machine.spin { other.wait_readable && other.recv_io })
      one.send_io(writer)
      received = receiving.await
      line = parked { reader.gets }
      received.tap { |io| io.sync = true }.puts("through the copy")
      assert_equal "through the copy\n", line.await
      [one, other, reader, writer, received].each(&:close)
    end
  end

  def test_udp
    Ringspun.run do
      one, other = Array.new(2) { UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) } }
      received = parked { one.recvmsg.first }
      other.send("datagram", 0, "127.0.0.1", one.addr[1])
      assert_equal "datagram", received.await
      [one, other].each(&:close)
    end
  end

  def test_the_methods_that_do_not_wait_and_say_so
    Ringspun.run do
      one, other = UNIXSocket.pair
      assert_equal :wait_readable, one.recv_nonblock(1, exception: false)
      ready = parked { one.wait_readable }
      other.sendmsg("x")
      assert_same one, ready.await
      assert_equal "x", one.recv_nonblock(10)
      [one, other].each(&:close)
    end
  end
end
