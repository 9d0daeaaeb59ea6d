# frozen_string_literal: true

# Listening, accepting and connecting.
class SocketTest < Minitest::Test
  include Strands
  include Descriptors

  ECHO = proc { |stream| stream.each_line { |line| stream.write_line(line) } }

  def test_an_echo_server_with_a_hundred_clients_over_tcp
    leaving_none do
      server = Ringspun.listen_tcp("127.0.0.1", 0, &ECHO)
      assert_equal "127.0.0.1", server.address[0]
      hundred_clients(server) { Ringspun.connect_tcp("127.0.0.1", server.port) }
    end
  end

  def test_an_echo_server_with_a_hundred_clients_over_a_unix_socket
    with_path do |path|
      leaving_none do
        server = Ringspun.listen_unix(path, &ECHO)
        assert_equal [path, nil], server.address
        hundred_clients(server) { Ringspun.connect_unix(path) }
      end
      refute File.exist?(path)
    end
  end

  def test_a_large_message_in_both_directions
    server = Ringspun.listen_tcp("127.0.0.1", 0) { |stream| stream.write(stream.read) }
    bytes = "0123456789abcdef" * 100_000
    Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
      in_scope do |scope|
        scope.spin { stream.write(bytes) and stream.close_write }
        assert_same true, stream.read == bytes
      end
    end
    server.stop
  end

  def test_addresses
    with_listener do |listener, port|
      client = Ringspun.connect_tcp("127.0.0.1", port)
      server = listener.accept
      assert_equal client.local_address, server.remote_address
      assert_equal ["127.0.0.1", port], client.remote_address
      [client, server].each(&:close)
    end
    with_pipe { |reader, _| assert_raises(Ringspun::UnsupportedError) { reader.local_address } }
  end

  def test_a_name_is_looked_up
    assert_includes machine.resolve("localhost"), "127.0.0.1"
    assert_equal ["::1"], machine.resolve("::1")
    with_listener { |_, port| Ringspun.connect_tcp("localhost", port, &:close) }
  end

  def test_a_name_that_does_not_resolve
    error = assert_raises(Ringspun::SocketError) { Ringspun.connect_tcp("no-such-host.invalid", 80) }
    assert_includes error.message, "no-such-host.invalid"
  end

  def test_a_look_up_that_is_cancelled
    leaving_none do
      in_scope do |scope|
        scope.spin { machine.resolve("localhost") }
        machine.yield
        scope.cancel
      end
    end
    assert_includes machine.resolve("localhost"), "127.0.0.1"
  end

  def test_a_refused_connection
    port = with_listener { |_, free| free }
    leaving_none do
      error = assert_raises(Errno::ECONNREFUSED) { Ringspun.connect_tcp("127.0.0.1", port) }
      assert_equal "Connection refused - connect to 127.0.0.1:#{port}", error.message
      error = assert_raises(Errno::ENOENT) { Ringspun.connect_unix("/nonexistent/socket") }
      assert_includes error.message, "connect to /nonexistent/socket"
    end
  end

  def test_an_address_that_is_taken
    leaving_none do
      with_listener { |_, port| assert_raises(Errno::EADDRINUSE) { Ringspun.listen_tcp("127.0.0.1", port) } }
      with_path do |path|
        first = Ringspun.listen_unix(path)
        assert_raises(Errno::EADDRINUSE) { Ringspun.listen_unix(path) }
        first.close
        Ringspun.listen_unix(path).close # its file was left, and nobody listens
      end
    end
  end

  def test_a_connect_that_takes_too_long
    leaving_none do
      with_full_listener do |port|
        error = assert_raises(Ringspun::TimeoutError) { Ringspun.connect_tcp("127.0.0.1", port, connect_timeout: 0.01) }
        assert_equal "connect_tcp: no connection to 127.0.0.1:#{port} within 0.01 s", error.message
        cancelled_in_wait { Ringspun.connect_tcp("127.0.0.1", port) }
      end
    end
  end

  def test_a_cancelled_accept_leaves_the_connection_to_the_next
    leaving_none do
      with_listener do |listener, port|
        cancelled_in_wait { listener.accept }
        Ringspun.connect_tcp("127.0.0.1", port) { listener.accept.close }
      end
    end
  end

  def test_a_close_ends_an_accept
    with_listener { |listener, _| assert_kind_of Ringspun::ClosedError, error_of(-> { listener.accept }) { listener.close } }
  end

  def test_a_reset_connection
    with_listener do |listener, port|
      client = Ringspun.connect_tcp("127.0.0.1", port)
      server = listener.accept
      server.write("unread")
      client.await_readable
      client.close
      error = assert_raises(Ringspun::SystemCallError) { server.read_partial }
      assert_equal Errno::ECONNRESET, error.class
      server.close
    end
  end

  def test_an_error_in_one_connection_ends_that_one
    errors = []
    report = ->(error, stream) { errors << [error.message, stream.closed?] }
    server = Ringspun.listen_tcp("127.0.0.1", 0, on_error: report) { |stream| raise stream.read_line }
    %w[first second].each do |text|
      Ringspun.connect_tcp("127.0.0.1", server.port) { |stream| stream.write_line(text) and stream.read }
    end
    assert_equal [["first", false], ["second", false]], errors
    assert_equal 0, server.stop
  end

  # By what the other side does: it sends too much, too little, or is gone.
  def test_a_peer_that_is_to_blame_is_not_told
    assert_empty told_by_server { |stream| stream.read_line(limit: 1) }
    assert_empty told_by_server { |stream| stream.read(100) }
    assert_empty(told_by_server(reset: true) { |stream| stream.read(100) })
    assert_empty(told_by_server(reset: true) { |stream| loop { stream.write("x" * 10_000) } })
  end

  # By what the block does itself, or another peer than its own.
  def test_all_else_is_told
    [Ringspun::LimitError, Ringspun::EndOfStreamError, Ringspun::TimeoutError, Errno::ECONNRESET, Errno::EPIPE].each do |kind|
      assert_equal [kind], told_by_server { raise kind }, kind
    end
    assert_equal [Ringspun::TimeoutError], told_by_server { machine.timeout(0.001) { loop { machine.yield } } }
    assert_equal [Ringspun::LimitError], told_by_server { other { |near, far| far.write("long") and near.read_line(limit: 1) } }
    assert_equal [Ringspun::EndOfStreamError], told_by_server { other { |near, far| far.write("x") and far.close or near.read(2) } }
    assert_equal [Errno::EPIPE], told_by_server { other { |near, far| far.close or near.write("x") } }
  end

  def test_a_server_that_stops_cancels_what_takes_too_long
    leaving_none do
      server = Ringspun.listen_tcp("127.0.0.1", 0, &ECHO)
      client = Ringspun.connect_tcp("127.0.0.1", server.port)
      client.write_line("still here")
      client.read_line
      assert_equal 1, server.stop(within: 0.001)
      assert_nil client.read_partial
      client.close
    end
  end

  def test_a_server_ends_with_its_run
    leaving_none do
      assert_raises(ArgumentError) do
        Ringspun.run do
          Ringspun.listen_tcp("127.0.0.1", 0, &ECHO)
          machine.yield
          raise ArgumentError
        end
      end
    end
  end

  def test_on_a_simulated_kernel
    Ringspun::Simulation.explore(50) do |simulated|
      server = Ringspun.listen_unix("/socket", &ECHO)
      simulated.scope do |scope|
        5.times do |number|
          scope.spin do
            Ringspun.connect_unix("/socket", connect_timeout: nil) do |stream|
              stream.write_line(number.to_s)
              assert_equal number.to_s, stream.read_line
            end
          end
        end
      end
      server.stop
      assert_raises(Ringspun::UnsupportedError) { Ringspun.connect_tcp("localhost", 1) }
    end
  end

  def test_bad_arguments
    assert_usage_error("port", "nil") { Ringspun.connect_tcp("127.0.0.1", nil) }
    assert_usage_error("port", "65536") { Ringspun.connect_tcp("127.0.0.1", 65_536) }
    assert_usage_error("host", ":x") { Ringspun.connect_tcp(:x, 1) }
    assert_usage_error("host", "\"\"") { Ringspun.listen_tcp("", 1) }
    assert_usage_error("backlog", "-1") { Ringspun.listen_tcp("127.0.0.1", 0, backlog: -1) }
    assert_usage_error("path", "nil") { Ringspun.connect_unix(nil) }
    assert_usage_error("path", "107") { Ringspun.listen_unix("x" * 108) }
  end

  private

  # The classes of the errors of one connection, whose client sends something and goes.
  def told_by_server(reset: false, &block)
    errors = []
    server = Ringspun.listen_tcp("127.0.0.1", 0, on_error: ->(error, _) { errors << error.class }) do |stream|
      stream.write("unread")
      block.call(stream)
    end
    client = Ringspun.connect_tcp("127.0.0.1", server.port)
    client.write("some")
    reset ? client.await_readable : client.read(6)
    client.close
    server.stop(within: 60)
    errors
  end

  def other
    both = machine.socketpair
    yield(*both)
  ensure
    both.each(&:close)
  end

  def hundred_clients(server)
    in_scope do |scope|
      100.times do |number|
        scope.spin do
          stream = yield
          3.times do |round|
            stream.write_line("#{number} #{round}")
            assert_equal "#{number} #{round}", stream.read_line
          end
          stream.close
        end
      end
    end
    assert_equal 0, server.stop
    assert_equal 0, server.connections
  end

  def with_listener(backlog: 10)
    listener = Ringspun.listen_tcp("127.0.0.1", 0, backlog: backlog)
    yield listener, listener.local_address[1]
  ensure
    listener&.close
  end

  # One in whose queue there is no place.
  def with_full_listener
    with_listener(backlog: 0) do |_, port|
      clients = []
      begin
        loop { clients << Ringspun.connect_tcp("127.0.0.1", port, connect_timeout: 0.1) }
      rescue Ringspun::TimeoutError
        yield port
      ensure
        clients.each(&:close)
      end
    end
  end
end
