# frozen_string_literal: true

require "http_helper"
require "support/certificate"
require "support/on_simulation"

# Connections that wait for their next request, which have no strand after a second, by a clock that jumps.
class HTTPIdleTest < Minitest::Test
  include OnServer
  include OnSimulation

  HELLO = ->(_env) { [200, { "content-type" => "text/plain" }, ["hello\n"]] }
  def faults = false

  def machine = Ringspun::Machine.current

  def ask(client, path = "/")
    client.get(path)
    client.answer
  end

  # @return [Integer] strands beside the one that asks
  def strands = machine.strands.count { |strand| strand != machine.running }

  def test_many_share_a_strand_and_go_on
    serving(HELLO) do |connect|
      none = strands
      clients = Array.new(30) { connect.call }
      3.times do
        clients.each { |client| assert_equal "hello\n", ask(client).body }
        machine.sleep(2)
        assert_equal none + 1, strands
      end
    end
  end

  # Each wait has the whole time, and no more.
  def test_the_time_of_a_wait
    serving(HELLO) do |connect|
      client = connect.call
      [28, 0.5, 63, 3, 63].each do |seconds|
        machine.sleep(seconds)
        assert_equal 200, ask(client).status
      end
      began = machine.now
      assert_predicate client, :ended?
      assert_equal 65, (machine.now - began).round
    end
  end

  def test_a_head_in_pieces
    serving(HELLO) do |connect|
      client = connect.call
      ask(client)
      machine.sleep(20)
      client.send("G")
      machine.sleep(5)
      client.send("ET / HTTP/1.1\r\nhost: a\r\n")
      machine.sleep(4)
      client.send("\r\n")
      assert_equal 200, client.answer.status
      machine.sleep(20)
      client.send("G")
      assert_equal 408, client.answer.status
    end
  end

  def test_several_requests_at_once
    serving(->(env) { [200, {}, [env["PATH_INFO"]]] }) do |connect|
      client = connect.call
      machine.sleep(3)
      client.send((1..40).map { |number| "GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n" }.join)
      assert_equal((1..40).map { |number| "/#{number}" }, Array.new(40) { client.answer.body })
    end
  end

  # --- a server that stops ---

  # @yieldparam client [Client] one that is idle
  def stopping(idle: 3, **)
    serving(HELLO, **) do |connect, server|
      client = connect.call
      ask(client)
      machine.sleep(idle)
      stop = machine.spin { server.stop(within: 100) }
      machine.sleep(0.1) # must pass
      yield client
      assert_equal 0, stop.await
    end
  end

  [0.5, 3].each do |idle|
    define_method(:"test_a_byte_within_the_grace_after_#{idle.to_s.tr(".", "_")}_s") do
      stopping(idle:) do |client|
        machine.sleep(4)
        answer = ask(client)
        assert_equal [200, "close"], [answer.status, answer["connection"]]
        assert_predicate client, :ended?
      end
    end

    define_method(:"test_no_byte_within_the_grace_after_#{idle.to_s.tr(".", "_")}_s") do
      stopping(idle:) do |client|
        began = machine.now
        assert_predicate client, :ended?
        assert_equal 5, (machine.now - began).round
      end
    end

    define_method(:"test_a_stop_without_a_limit_for_them_after_#{idle.to_s.tr(".", "_")}_s") do
      stopping(idle:, limits: { leaving: nil }) do |client|
        machine.sleep(40)
        assert_equal [200, "close"], ask(client).then { |answer| [answer.status, answer["connection"]] }
      end
    end
  end

  def test_a_stop_that_waits_for_nobody
    serving(HELLO, limits: { leaving: nil }) do |connect, server|
      clients = Array.new(3) { connect.call.tap { |client| ask(client) } }
      machine.sleep(3)
      assert_equal 3, server.stop(within: 0)
      clients.each { |client| assert_predicate client, :ended? }
    end
  end

  # --- what is seen of them ---

  def test_the_inspector
    serving(HELLO) do |connect|
      Array.new(3) { connect.call.tap { |client| ask(client) } }
      machine.sleep(3)
      shown = Array.new(3, "connection of 127.0.0.1").join(", ")
      assert_includes Ringspun.inspect_tree, "\"idle: #{shown}\">: waits for any of its idle streams"
    end
  end

  def test_metrics
    metrics = Ringspun::HTTP::Metrics.new
    counted = -> { metrics.text.scan(/^ringspun_http_connections(?:_total)? (\d+)$/).flatten.map(&:to_i) }
    serving(HELLO, metrics:, limits: { leaving: nil }) do |connect, server|
      clients = Array.new(4) { connect.call.tap { |client| ask(client) } }
      machine.sleep(3)
      assert_equal [4, 4], counted.call
      assert_equal 200, ask(clients[0]).status
      clients[1].close
      clients[2].close
      machine.sleep(3)
      assert_equal [4, 2], counted.call
      machine.sleep(70)
      assert_equal [4, 0], counted.call
      ask(connect.call)
      machine.sleep(3)
      server.stop(within: 0)
      assert_equal [5, 0], counted.call
    end
  end

  # What has not left is nothing to wait for without a strand.
  def test_a_client_that_reads_slowly
    much = "x" * 240_000
    serving(->(_env) { [200, {}, [much]] }) do |connect|
      client = connect.call
      client.get("/")
      machine.sleep(50)
      assert_equal much, client.answer.body
      machine.sleep(10)
      assert_equal 200, ask(client).status
    end
  end

  # --- a crowd ---

  # So many wait with a strand each, and the next ones without, at once.
  def test_a_crowd
    serving(HELLO) do |connect|
      clients = Array.new(1100) { connect.call }
      none = strands
      clients.each { |client| assert_equal 200, ask(client).status }
      assert_operator strands - none, :<=, 1030
      clients.last(10).each { |client| assert_equal 200, ask(client).status }
    end
  end
end

# On a kernel.
class HTTPIdleOnKernelTest < Minitest::Test
  include OnServer

  def machine = Ringspun::Machine.current

  # Until a connection has given up its strand.
  def settle(client = "127.0.0.1")
    machine.sleep(0.05) until Ringspun.inspect_tree.include?("idle: connection of #{client}") # must pass
  end

  # What TLS sends beside is no byte of a request.
  def test_with_tls
    app = ->(env) { [200, {}, [env["rack.url_scheme"]]] }
    serving(app, tls: Certificate.server_context) do |_, server|
      stream = Ringspun.connect_tcp("127.0.0.1", server.port, tls: Certificate.client_context)
      (@clients ||= []) << stream
      client = OnServer::Client.new(stream)
      2.times do
        client.get("/")
        assert_equal "https", client.answer.body
        settle
      end
    end
  end

  def test_a_reset_and_what_a_proxy_has_told
    serving(->(env) { [200, {}, [env["REMOTE_ADDR"]]] }, proxy_protocol: "127.0.0.1") do |connect, server|
      client = connect.call
      client.send("PROXY TCP4 10.1.2.3 10.4.5.6 1000 80\r\n")
      2.times do
        settle("10.1.2.3")
        client.get("/")
        assert_equal "10.1.2.3", client.answer.body
      end
      settle("10.1.2.3")
      client.reset
      machine.yield until server.connections.zero?
    end
  end
end
