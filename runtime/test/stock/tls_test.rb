# frozen_string_literal: true

require "test_helper"
require "support/certificate"
require "support/stock"

# OpenSSL's sockets, both ends in one run.
class StockTLSTest < Minitest::Test
  include Stock

  # Yields a client and a server that have shaken hands.
  def tls_pair
    one, other = UNIXSocket.pair
    server = OpenSSL::SSL::SSLSocket.new(one, Certificate.server_context)
    client = OpenSSL::SSL::SSLSocket.new(other, Certificate.client_context)
    [server, client].each { |socket| socket.sync_close = true }
    client.hostname = "localhost"
    accepting = parked { server.accept }
    client.connect
    accepting.await
    yield client, server
  ensure
    [client, server].each(&:close)
  end

  def test_a_line_there_and_one_back
    Ringspun.run do
      tls_pair do |client, server|
        request = parked { server.gets }
        client.puts("request")
        assert_equal "request\n", request.await
        answer = parked { client.gets }
        server.puts("answer")
        assert_equal "answer\n", answer.await
        assert_equal "/CN=localhost", client.peer_cert.subject.to_s
      end
    end
  end

  def test_both_directions_at_once
    bytes = Random.new(4).bytes(1_000_000)
    Ringspun.run do
      tls_pair do |*both|
        writing = both.map { |socket| parked { socket.write(bytes) } }
        both.map { |socket| machine.spin { socket.read(bytes.bytesize) } }.each { |strand| assert_same_bytes bytes, strand.await }
        assert_equal [bytes.bytesize] * 2, machine.await(*writing)
      end
    end
  end

  def test_a_handshake_with_a_stranger
    Ringspun.run do
      one, other = UNIXSocket.pair
      server = OpenSSL::SSL::SSLSocket.new(one, Certificate.server_context)
      accepting = parked { error_of { server.accept } }
      strict = OpenSSL::SSL::SSLContext.new.tap { |context| context.set_params(cert_store: OpenSSL::X509::Store.new) }
      error = error_of { OpenSSL::SSL::SSLSocket.new(other, strict).connect }
      assert_match(/certificate verify failed/, error.message)
      assert_kind_of OpenSSL::SSL::SSLError, accepting.await
      [one, other].each(&:close)
    end
  end

  def test_a_server_and_many_clients
    Ringspun.run do
      tcp = TCPServer.new("127.0.0.1", 0)
      server = OpenSSL::SSL::SSLServer.new(tcp, Certificate.server_context)
      serving = parked do
        Array.new(10) { server.accept }.each { |connection| connection.write(connection.gets.upcase) && connection.close }
      end
      answers = Array.new(10) do |i|
        machine.spin do
          socket = OpenSSL::SSL::SSLSocket.open("127.0.0.1", tcp.addr[1], context: Certificate.client_context)
          socket.sync_close = true
          socket.hostname = "localhost"
          socket.connect
          socket.puts("client #{i}")
          socket.gets.tap { socket.close }
        end
      end
      assert_equal(Array.new(10) { |i| "CLIENT #{i}\n" }, machine.await(*answers))
      serving.join
      server.close
    end
  end
end
