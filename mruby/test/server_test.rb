# frozen_string_literal: true

# Servers whose connections fail in their callbacks, end them, or never begin.
class ServerTest < Minitest::Test
  def serve(**options, &block) = Ringspun.listen_tcp("127.0.0.1", 0, **options, &block)

  # What one connection is answered.
  def ask(server, line = "hi")
    Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
      stream.write_line(line)
      stream.read_line
    end
  end

  def test_an_error_of_on_error_concerns_its_connection_alone
    Ringspun.run do
      told = []
      failing = proc do |error, _|
        told << error.message
        raise "in on_error"
      end
      server = serve(on_error: failing) do |stream|
        line = stream.read_line
        raise ArgumentError, line if line == "bad"

        stream.write_line(line)
      end
      assert_nil ask(server, "bad")
      assert_equal "good", ask(server, "good")
      assert_equal 0, server.stop
      assert_equal ["bad"], told
    end
  end

  def test_a_connection_stops_its_own_server
    Ringspun.run do
      server = nil
      server = serve do |stream|
        stream.read_line
        stream.write_line("cancelled #{server.stop(within: 60)}")
      end
      assert_equal "cancelled 0", ask(server)
      assert_nil server.wait
      assert_equal 0, server.connections
    end
  end

  def test_a_connection_that_stops_its_server_waits_for_the_others_and_cancels_them
    Ringspun.run do
      server = nil
      server = serve do |stream|
        wait(3600) if stream.read_line == "long"
        stream.write_line("cancelled #{server.stop(within: 0)}")
      end
      long = concurrently { ask(server, "long") }
      wait(0) until server.connections == 1
      assert_equal "cancelled 1", ask(server)
      assert_nil long.await_result
      assert_nil server.wait
    end
  end

  def test_a_connection_that_is_cancelled_before_it_begins_is_closed
    Ringspun.run do
      server = serve { |stream| stream.write_line("begun") }
      clients = Array.new(3) { concurrently { Ringspun.connect_tcp("127.0.0.1", server.port) { |stream| stream.read_line } } }
      wait(0) until server.connections > 0
      server.stop(within: 0)
      assert_equal 0, server.connections
      clients.each { |client| client.await_result { |answer| answer } }
    end
  end

  def test_where_it_listens_is_known_when_it_has_stopped
    Ringspun.run do
      server = serve { nil }
      address = server.address
      server.stop
      assert_equal address, server.address
      assert_equal address[1], server.port
    end
  end

  def test_wrong_places_are_named_with_their_method
    Ringspun.run do
      error = assert_raises(Ringspun::UsageError) { Ringspun.listen_tcp(8080) { nil } }
      assert_equal 'listen_tcp: takes a host and a port, as in listen_tcp("127.0.0.1", 8080)', error.message
      error = assert_raises(Ringspun::UsageError) { Ringspun.listen_tcp("127.0.0.1", 65_536) { nil } }
      assert_equal "listen_tcp: expected a port, an Integer from 0 to 65535, got 65536", error.message
      error = assert_raises(Ringspun::UsageError) { Ringspun.connect_tcp("127.0.0.1", "http") }
      assert_equal 'connect_tcp: expected a port, an Integer from 0 to 65535, got "http"', error.message
    end
  end
end
