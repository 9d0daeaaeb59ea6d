# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/stock"

# Its files are not written for -w.
begin
  verbose, $VERBOSE = $VERBOSE, nil
  require "ringspun/async"
  require "async/http"
  require "async/http/internet/instance"
ensure
  $VERBOSE = verbose
end

# async-http in a run, by the bridge to the gem async: its client with servers of other makes, its server with other clients, and
# both with each other.
class StockAsyncHTTPTest < Minitest::Test
  include Stock

  def url(port, path) = "http://127.0.0.1:#{port}#{path}"

  # The body, with its connection given back.
  def body_of(response)
    response.read
  ensure
    response.close
  end

  # Counts its connections.
  class Server < Async::HTTP::Server
    attr_reader :connections

    def accept(...)
      @connections = connections.to_i + 1
      super
    end
  end

  # Yields its port, and the server.
  def async_server(app, protocol: Async::HTTP::Protocol::HTTP1)
    listener = TCPServer.new("127.0.0.1", 0)
    server = Server.new(app, IO::Endpoint::BoundEndpoint.new(nil, [listener]), protocol:, scheme: "http")
    serving = Async(transient: true) { server.run }
    yield listener.addr[1], server
  ensure
    serving&.stop
    listener.close
  end

  def ok(body) = Protocol::HTTP::Response[200, {}, [body]]

  { webrick: WEBRICK, puma: PUMA }.each do |name, code|
    define_method("test_two_requests_that_need_each_other_to_#{name}") do
      server_process(code) do |port|
        Ringspun.run do
          asking = Array.new(2) { machine.spin { Sync { Async::HTTP::Internet.get(url(port, "/meet"), &:read) } } }
          assert_equal %w[met met], machine.await(*asking)
        ensure
          Sync { Async::HTTP::Internet.instance.close }
        end
      end
    end

    define_method("test_a_hundred_requests_at_once_to_#{name}") do
      server_process(code) do |port|
        bodies = Ringspun.run do
          Sync do |task|
            client = Async::HTTP::Client.new(Async::HTTP::Endpoint.parse(url(port, "/")), limit: 8)
            asking = Array.new(100) { |i| task.async { body_of(client.get("/#{i}")) } }
            asking.map(&:wait)
          ensure
            client&.close
          end
        end
        assert_equal Array.new(100) { |i| "you asked for /#{i}" }, bodies
      end
    end
  end

  def test_its_own_server_with_a_hundred_at_once
    together = Ringspun::Barrier.new(100)
    app = ->(request) { together.wait.then { ok("you asked for #{request.path}") } }
    Ringspun.run do
      Sync do |task|
        async_server(app) do |port, server|
          client = Async::HTTP::Client.new(Async::HTTP::Endpoint.parse(url(port, "/")))
          2.times do
            bodies = Array.new(100) { |i| task.async { body_of(client.get("/#{i}")) } }.map(&:wait)
            assert_equal Array.new(100) { |i| "you asked for /#{i}" }, bodies
          end
          assert_equal 100, server.connections # kept for the second time
        ensure
          client&.close
        end
      end
    end
  end

  def test_keep_alive
    Ringspun.run do
      Sync do
        async_server(->(request) { ok(request.path) }) do |port, server|
          client = Async::HTTP::Client.new(Async::HTTP::Endpoint.parse(url(port, "/")))
          assert_equal(Array.new(20) { |i| "/#{i}" }, Array.new(20) { |i| body_of(client.get("/#{i}")) })
          assert_equal 1, server.connections
        ensure
          client&.close
        end
      end
    end
  end

  def test_http2
    together = Ringspun::Barrier.new(50)
    protocol = Async::HTTP::Protocol::HTTP2
    Ringspun.run do
      Sync do |task|
        async_server(->(request) { together.wait.then { ok(request.path) } }, protocol:) do |port, server|
          client = Async::HTTP::Client.new(Async::HTTP::Endpoint.parse(url(port, "/"), protocol:), protocol:)
          asking = Array.new(50) { |i| task.async { body_of(client.get("/#{i}")) } }
          assert_equal(Array.new(50) { |i| "/#{i}" }, asking.map(&:wait))
          assert_equal 1, server.connections
        ensure
          client&.close
        end
      end
    end
  end

  def test_a_large_body_both_ways
    bytes = Random.new(7).bytes(2_000_000)
    Ringspun.run do
      Sync do
        async_server(->(request) { ok(request.read) }) do |port|
          client = Async::HTTP::Client.new(Async::HTTP::Endpoint.parse(url(port, "/")))
          assert_same_bytes bytes, body_of(client.post("/", [], [bytes]))
        ensure
          client&.close
        end
      end
    end
  end

  def test_its_server_with_net_http_in_strands
    together = Ringspun::Barrier.new(10)
    Ringspun.run do
      Sync do
        async_server(->(request) { together.wait.then { ok(request.path) } }) do |port|
          asking = Array.new(10) { |i| machine.spin { Net::HTTP.get(URI(url(port, "/#{i}"))) } }
          assert_equal Array.new(10) { |i| "/#{i}" }, machine.await(*asking)
        end
      end
    end
  end

  def test_a_deadline_of_ours_around_a_request
    asked = Thread::Queue.new
    Ringspun.run do
      Sync do
        async_server(->(_request) { asked.push(1) && sleep }) do |port|
          limit = 0.02
          # On a busy computer a request takes longer to come than a short limit.
          while asked.empty?
            limit *= 2
            assert_raises(Ringspun::TimeoutError) do
              machine.timeout(limit) { Sync { Async::HTTP::Internet.get(url(port, "/")) } }
            end
          end
        ensure
          Async::HTTP::Internet.instance.close
        end
      end
    end
  end

  def test_a_server_that_is_not_there
    port = TCPServer.open("127.0.0.1", 0) { |listener| listener.addr[1] }
    Ringspun.run { assert_raises(Errno::ECONNREFUSED) { Sync { Async::HTTP::Internet.get(url(port, "/")) } } }
  end
end
