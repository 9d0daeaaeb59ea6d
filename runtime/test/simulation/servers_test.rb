# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/strands"

# Servers and clients of guide 3, on simulated machines: with nothing that disturbs, and with faults.
class SimulatedServersTest < Minitest::Test
  include AnyBackend
  include Strands

  def each_seed(&block)
    results = [Ringspun::Simulation.run(faults: false, &block)]
    results += Array.new(12) { |seed| Ringspun::Simulation.run(seed:, &block) }
    results.each { |result| assert_equal 0, result.open_descriptors, "seed #{result.seed}" }
  end

  SHOUT = ->(stream) { stream.each_line { |line| stream.write_line(line.upcase) } }

  def ask(stream, line = "hello")
    stream.write_line(line)
    stream.read_line
  end

  def test_a_port_of_the_machines_choice
    each_seed do
      servers = Array.new(3) { Ringspun.listen_tcp("127.0.0.1", 0, &SHOUT) }
      assert_equal servers.size, servers.map(&:port).uniq.size
      servers.each do |server|
        assert_equal "#<Addrinfo: 127.0.0.1:#{server.port} TCP>", server.address.inspect
        assert_operator server.port, :>, 1023
        Ringspun.connect_tcp("127.0.0.1", server.port) { |stream| assert_equal "HELLO", ask(stream) }
        assert_equal 0, server.stop
      end
    end
  end

  def test_many_connections_at_once
    each_seed do |machine|
      server = Ringspun.listen_tcp("127.0.0.1", 4000, max_connections: 3, &SHOUT)
      answers = Array.new(10) do |number|
        machine.spin { Ringspun.connect_tcp("127.0.0.1", 4000) { |stream| ask(stream, "client #{number}") } }
      end
      assert_equal Array.new(10) { |number| "CLIENT #{number}" }, answers.map(&:await)
      server.stop
      assert_raises(Errno::ECONNREFUSED) { Ringspun.connect_tcp("127.0.0.1", 4000) }
    end
  end

  def test_every_host_and_every_family
    each_seed do
      { "0.0.0.0" => "127.0.0.1", "::" => "::1", "::1" => "::1" }.each do |host, reached|
        server = Ringspun.listen_tcp(host, 0, &SHOUT)
        Ringspun.connect_tcp(reached, server.port) { |stream| assert_equal "HELLO", ask(stream) }
        assert_raises(Errno::EADDRINUSE) { Ringspun.listen_tcp(host, server.port, &SHOUT) }
        server.stop
        Ringspun.listen_tcp(host, server.port, &SHOUT).stop
      end
    end
  end

  def test_a_unix_socket
    each_seed do
      2.times do
        server = Ringspun.listen_unix("/no/such/folder/socket", mode: 0o600, &SHOUT)
        assert_equal "/no/such/folder/socket", server.address.unix_path
        Ringspun.connect_unix("/no/such/folder/socket") { |stream| assert_equal "HELLO", ask(stream) }
        assert_raises(Errno::EADDRINUSE) { Ringspun.listen_unix("/no/such/folder/socket", &SHOUT) }
        server.stop
      end
      assert_raises(Errno::ENOENT) { Ringspun.connect_unix("/no/such/folder/socket") }
    end
  end

  def test_its_limits_are_virtual
    each_seed do |machine|
      server = Ringspun.listen_tcp("127.0.0.1", 0, first_byte: 3600, &SHOUT)
      Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
        began = machine.now
        assert_nil stream.read_line
        assert_in_delta 3600, machine.now - began, 1
      end
      silent = Ringspun.connect_tcp("127.0.0.1", server.port)
      machine.sleep(1) until server.connections == 1
      began = machine.now
      assert_equal 1, server.stop(within: 600)
      assert_in_delta 600, machine.now - began, 1
      silent.close
    end
  end

  def test_one_seed_is_one_run
    hashes = Array.new(2) do
      Ringspun::Simulation.run(seed: 7) do
        server = Ringspun.listen_tcp("127.0.0.1", 0, &SHOUT)
        Ringspun.connect_tcp("127.0.0.1", server.port) { |stream| 5.times { ask(stream) } }
        server.stop
      end.trace_hash
    end
    assert_equal 1, hashes.uniq.size
  end

  # Guide 3's accept and accept_each, with a machine's own calls.
  def test_connections_taken_by_hand
    each_seed do |machine|
      listener = machine.socket(:INET, :STREAM)
      machine.bind(listener, Addrinfo.tcp("127.0.0.1", 4001))
      machine.listen(listener)
      strand = machine.spin do
        machine.accept_each(listener) { |connection| Ringspun::Stream.open(connection, &SHOUT) }
      end
      Ringspun.connect_tcp("127.0.0.1", 4001) { |stream| assert_equal "HELLO", ask(stream) }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.join }
      machine.close(listener)
    end
  end
end
