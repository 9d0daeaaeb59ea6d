# frozen_string_literal: true

require_relative "stream_case"
require "support/certificate"
require "support/on_simulation"

# Connections of a server that wait for their next bytes without a strand: Server::Idle.
class IdleConnectionsTest < StreamCase
  Idle = Ringspun::Server::Idle

  def machine = Ringspun::Machine.current

  # A simulated network resets connections by itself alone.
  def reset(stream)
    simulated = machine.backend.name == :sim
    machine.setsockopt(stream.to_io, Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) unless simulated
    stream.close
  end

  # Answers a line, and waits for the next one without a strand.
  def server_of_lines(seconds: nil, **options, &wrong)
    go_on = lambda do |stream|
      line = stream.read_line(timeout: 0) or next
      wrong&.call(line)
      stream.write_line(line.upcase)
      wait_on(stream, seconds, &go_on)
    rescue Ringspun::TimeoutError
      stream.write_line("late")
    end
    Ringspun.listen_tcp("127.0.0.1", 0, first_byte: nil, **options) { |stream| wait_on(stream, seconds, &go_on) }
  end

  # One that counts those which are closed without a call.
  def wait_on(stream, seconds, &go_on)
    dropped = (@dropped ||= [])
    Idle.new(stream, seconds && (machine.now + seconds), &go_on).tap do |idle|
      idle.define_singleton_method(:dropped) { dropped << true }
    end
  end

  def on_server(**, &)
    @lost = []
    Ringspun.run do
      server = server_of_lines(on_error: ->(error, _) { @lost << error }, **)
      yield server
    ensure
      close_clients
      server&.stop(within: 0)
      assert_equal 0, server.connections if server
    end
    @lost
  end

  def connect(server, **) = Ringspun.connect_tcp("127.0.0.1", server.port, **).tap { |stream| (@clients ||= []) << stream }

  def close_clients = @clients&.each(&:close)

  def ask(stream, line)
    stream.write_line(line)
    stream.read_line
  end

  # @return [Integer] the strands that serve connections, of the server with that many
  def strands(server, connections)
    machine.yield until server.connections == connections
    4.times { machine.yield } # those that have answered come to wait
    machine.strands.count { |strand| strand.alive? && strand != machine.running }
  end

  def test_they_go_on_with_their_bytes_and_share_a_strand
    on_server do |server|
      none = strands(server, 0)
      clients = Array.new(20) { connect(server) }
      2.times do |time|
        clients.each_with_index { |client, at| assert_equal "#{time} LINE #{at}", ask(client, "#{time} line #{at}") }
        assert_equal none + 1, strands(server, clients.size)
      end
      clients.each(&:close)
      assert_equal none, strands(server, 0)
    end
    assert_empty @dropped
  end

  def test_a_client_that_closes_and_one_that_resets
    on_server do |server|
      clients = Array.new(2) { connect(server).tap { |client| assert_equal "A", ask(client, "a") } }
      clients[0].close
      reset(clients[1])
      machine.yield until server.connections.zero?
    end
    assert_equal [[], []], [@lost, @dropped]
  end

  def test_a_line_that_is_there_already
    on_server do |server|
      client = connect(server)
      client.write("one\ntwo\nthree\n")
      assert_equal %w[ONE TWO THREE], Array.new(3) { client.read_line }
    end
  end

  def test_the_first_and_the_last_deadline
    on_server(seconds: 0.05) do |server| # must pass
      clients = Array.new(3) { connect(server) }
      assert_equal %w[late late late], clients.map(&:read_line)
      assert_equal [nil, nil, nil], clients.map(&:read_line)
      machine.yield until server.connections.zero?
    end
    assert_empty @dropped
  end

  def test_a_stop_that_has_no_patience_closes_them
    on_server do |server|
      clients = Array.new(3) { connect(server).tap { |client| ask(client, "a") } }
      strands(server, 3)
      assert_equal 3, server.stop(within: 0)
      assert_equal [nil, nil, nil], clients.map(&:read_line)
    end
    assert_equal 3, @dropped.size
  end

  def test_a_strand_that_waits_for_a_server_whose_idle_connections_are_closed
    on_server do |server|
      Array.new(3) { connect(server).tap { |client| ask(client, "a") } }
      strands(server, 3)
      waits = machine.spin { server.wait }
      4.times { machine.yield }
      assert_equal 3, server.stop(within: 0)
      4.times { machine.yield }
      refute_predicate waits, :alive?
    ensure
      waits.terminate
    end
  end

  # As one of HTTP does.
  def test_a_stop_with_some_seconds_for_them
    on_server(seconds: 3600, on_stop: -> { 0.05 }) do |server| # must pass
      clients = Array.new(3) { connect(server).tap { |client| ask(client, "a") } }
      strands(server, 3)
      assert_equal 0, server.stop(within: 60)
      assert_equal %w[late late late], clients.map(&:read_line)
    end
    assert_empty @dropped
  end

  def test_a_byte_in_the_seconds_of_a_stop
    on_server(on_stop: -> { 3600 }) do |server|
      client = connect(server).tap { |stream| ask(stream, "a") }
      strands(server, 1)
      stop = machine.spin { server.stop(within: nil) }
      machine.yield until server.stopping?
      assert_equal "B", ask(client, "b")
      client.close
      assert_equal 0, stop.await
    end
  end

  def test_they_count_among_the_connections
    on_server(max_connections: 2) do |server|
      clients = Array.new(3) { connect(server) }
      clients.each { |client| client.write_line("a") }
      assert_equal %w[A A], clients.first(2).map(&:read_line)
      strands(server, 2)
      clients[0].close
      assert_equal "A", clients[2].read_line
      assert_equal 2, server.connections
    end
  end

  def test_an_error_ends_one_of_them
    errors = []
    Ringspun.run do
      server = server_of_lines(on_error: ->(error, _) { errors << error.message }) { |line| raise "wrong" if line == "b" }
      clients = Array.new(2) { connect(server).tap { |client| ask(client, "a") } }
      assert_nil ask(clients[0], "b")
      assert_equal "C", ask(clients[1], "c")
    ensure
      server.stop(within: 0)
      close_clients
    end
    assert_equal [["wrong"], 1], [errors, @dropped.size]
  end

  # The strand that waits for all of them, and makes theirs, was that of the first.
  def test_what_one_keeps_for_its_strand_is_seen_by_no_other
    seen = []
    Ringspun.run do
      Fiber[:of_server] = "server"
      server = server_of_lines { |line| (seen << [Fiber[:of_server], Fiber[:line]]) && (Fiber[:of_server] = Fiber[:line] = line) }
      Fiber[:of_server] = "later"
      clients = Array.new(3) { connect(server).tap { |client| assert_equal "A", ask(client, "a") } }
      clients.each { |client| assert_equal "B", ask(client, "b") }
    ensure
      close_clients
      server.stop(within: 0)
    end
    assert_equal [["server", nil]] * 6, seen
  end

  # Has the server take none, or fail to.
  def taking_none(server, &add)
    server.instance_variable_get(:@idle).define_singleton_method(:add, &add)
  end

  def test_one_with_no_place_that_is_reset_is_dropped
    on_server do |server|
      taking_none(server) { |_idle| false }
      clients = Array.new(2) { connect(server) }
      clients.each { |client| assert_equal "A", ask(client, "a") }
      reset(clients[0])
      machine.yield until server.connections == 1
      assert_equal "B", ask(clients[1], "b")
    end
    assert_equal [[], 1], [@lost, @dropped.size]
  end

  def test_one_that_cannot_be_taken_is_dropped
    on_server do |server|
      taking_none(server) { |_idle| raise Ringspun::LimitError, "no memory" }
      assert_nil connect(server).read_line
    end
    assert_equal [["no memory"], 1], [@lost.map(&:message), @dropped.size]
  end

  # As long as there is none, the machine says so.
  def without_a_strand_for_the_next(server)
    client = connect(server).tap { |stream| ask(stream, "a") }
    strands(server, 1)
    lacks = true
    machine.define_singleton_method(:spin) { |&block| lacks ? raise(Ringspun::LimitError, "no strand") : super(&block) }
    client.write_line("b")
    machine.sleep(0.001) until $stderr.string.include?("no connection is accepted")
    yield client, -> { lacks = false }
  ensure
    machine.singleton_class.remove_method(:spin)
  end

  def test_the_one_that_waits_for_a_strand_is_counted_and_has_it
    capture_io do
      on_server do |server|
        without_a_strand_for_the_next(server) do |client, give|
          assert_equal 1, server.connections
          give.call
          assert_equal ["B", []], [client.read_line, @dropped]
        end
      end
    end
  end

  def test_a_stop_closes_the_one_that_waits_for_a_strand
    capture_io do
      on_server do |server|
        without_a_strand_for_the_next(server) do |client,|
          assert_equal [1, 0], [server.stop(within: 0), server.connections]
          assert_raises(Errno::ECONNRESET) { client.read_line } # it has not been read
        end
      end
    end
    assert_equal 1, @dropped.size
  end

  def test_a_run_that_is_cancelled
    assert_raises(RuntimeError) do
      Ringspun.run do
        server = server_of_lines
        3.times { assert_equal "A", ask(connect(server), "a") }
        strands(server, 3)
        raise "the program"
      ensure
        close_clients
      end
    end
    assert_operator @dropped.size, :<=, 3
  end

  def test_the_inspector_names_them
    on_server do |server|
      Array.new(12) { connect(server).tap { |client| ask(client, "a") } }
      strands(server, 12)
      shown = Array.new(10, "a connection").join(", ")
      assert_includes Ringspun.inspect_tree, "\"idle: #{shown} and 2 more\">: waits for any of its idle streams"
    end
  end

  def test_what_is_collected_meanwhile
    on_server do |server|
      clients = Array.new(5) { connect(server).tap { |client| ask(client, "a") } }
      strands(server, 5)
      GC.start
      GC.compact
      clients.each { |client| assert_equal "B", ask(client, "b") }
    end
  end

  def test_with_tls
    return if machine.backend.name == :sim

    on_server(tls: Certificate.server_context) do |server|
      none = strands(server, 0)
      clients = Array.new(3) { connect(server, tls: Certificate.client_context) }
      2.times { |time| clients.each { |client| assert_equal "LINE #{time}", ask(client, "line #{time}") } }
      assert_equal none + 1, strands(server, 3)
      clients.each(&:close)
    end
  end
end

# The same on a simulated machine.
class SimulatedIdleConnectionsTest < IdleConnectionsTest
  include OnSimulation

  def faults = false
end
