# frozen_string_literal: true

require_relative "stream_case"

# Servers and clients: Ringspun.listen_tcp, listen_unix, connect_tcp, connect_unix.
class NetTest < StreamCase
  def echo(stream)
    stream.each_line { |line| stream.write_line(line) }
  end

  def ask(stream, line)
    stream.write_line(line)
    stream.read_line
  end

  def on_server(handler = method(:echo), **options)
    on_machine do |machine|
      server = Ringspun.listen_tcp("127.0.0.1", 0, **options, &handler)
      begin
        yield server, machine
      ensure
        server.stop(within: 1)
        assert_equal 0, server.connections
      end
    end
  end

  def connect(server, **, &) = Ringspun.connect_tcp("127.0.0.1", server.port, **, &)

  # --- the usual ---

  def test_many_clients_at_once
    on_server do |server, machine|
      clients = Array.new(amount(50)) { |i| machine.spin { connect(server) { |stream| ask(stream, "line #{i}") } } }
      assert_equal Array.new(clients.size) { |i| "line #{i}" }, machine.await(*clients)
    end
  end

  def test_a_unix_socket
    Dir.mktmpdir do |folder|
      path = "#{folder}/door"
      on_machine do
        server = Ringspun.listen_unix(path, mode: 0o600) { |stream| echo(stream) }
        assert_equal 0o600, File.stat(path).mode & 0o777
        assert_equal path, server.address.unix_path
        assert_equal("x", Ringspun.connect_unix(path) { |stream| ask(stream, "x") })
        assert_raises(Errno::EADDRINUSE) { Ringspun.listen_unix(path) { flunk } }
        server.stop
        refute_path_exists path
        assert_raises(Errno::ENOENT) { Ringspun.connect_unix(path) }
      end
    end
  end

  def test_a_file_that_an_ended_server_has_left_is_replaced
    Dir.mktmpdir do |folder|
      path = "#{folder}/door"
      UNIXServer.new(path).close
      on_machine do
        server = Ringspun.listen_unix(path) { |stream| echo(stream) }
        assert_equal("x", Ringspun.connect_unix(path) { |stream| ask(stream, "x") })
        File.unlink(path)
        File.write(path, "another's")
        server.stop
        assert_equal "another's", File.read(path)
        assert_raises(Errno::EADDRINUSE) { Ringspun.listen_unix(path) { flunk } }
      end
    end
  end

  def test_an_abstract_address_has_no_file
    on_machine do
      name = "\0ringspun-#{Process.pid}"
      server = Ringspun.listen_unix(name) { |stream| echo(stream) }
      assert_equal("x", Ringspun.connect_unix(name) { |stream| ask(stream, "x") })
      server.stop
      assert_raises(Errno::ECONNREFUSED) { Ringspun.connect_unix(name) }
    end
  end

  def test_several_servers_share_a_port
    on_machine do
      servers = [Ringspun.listen_tcp("127.0.0.1", 0, reuse_port: true) { |stream| echo(stream) }]
      servers << Ringspun.listen_tcp("127.0.0.1", servers[0].port, reuse_port: true) { |stream| echo(stream) }
      assert_equal("x", connect(servers[1]) { |stream| ask(stream, "x") })
      assert_raises(Errno::EADDRINUSE) { Ringspun.listen_tcp("127.0.0.1", servers[0].port) { flunk } }
      servers.each(&:stop)
    end
  end

  def test_wrong_use
    on_machine do
      assert_raises(Ringspun::UsageError) { Ringspun.listen_tcp("127.0.0.1", 0) }
      assert_raises(Ringspun::UsageError) { Ringspun.listen_unix("/nowhere") }
      assert_raises(Ringspun::UsageError) { Ringspun.listen_tcp(0) { flunk } }
      assert_raises(Errno::ENOENT) { Ringspun.listen_unix("/nowhere/door") { flunk } }
      assert_raises(ArgumentError) { Ringspun.listen_tcp("127.0.0.1", 0, max: 1) { flunk } }
      assert_raises(Ringspun::UsageError) { Ringspun.listen_tcp("127.0.0.1", 0, high_water: 0) { flunk } }
      assert_raises(SocketError) { Ringspun.connect_tcp("", "no such service") }
    end
  end

  def test_hosts_and_ports_that_are_none
    wide = "127.0.0.1".encode("UTF-16LE")
    hosts = [:localhost, 1.5, [], Object, -1, 2**32, "127.0.0.1\0", wide]
    ports = [:http, 1.5, [], Object.new, -1, 65_536, 2**70, "80\0", wide]
    places = hosts.map { |host| [host, 80] } + ports.map { |port| ["127.0.0.1", port] }
    on_machine do
      places.each do |place|
        said = place.inspect
        assert_raises(Ringspun::UsageError, said) { Ringspun.connect_tcp(*place) }
        assert_raises(Ringspun::UsageError, said) { Ringspun.listen_tcp(*place) { flunk } }
        assert_raises(Ringspun::UsageError, said) { Ringspun.datagram(*place) }
        assert_raises(Ringspun::UsageError, said) { Ringspun.datagram(connect: place) }
      end
      error = assert_raises(Ringspun::UsageError) { Ringspun.connect_tcp("127.0.0.1", 65_536) }
      assert_match(/connect_tcp: expected a port .*65536/, error.message)
    end
  end

  def test_permissions_that_are_none
    on_machine do
      ["0600", {}, -1, 0o10000, 2**70].each do |mode|
        path = File.join(Dir.tmpdir, "ringspun-#{Process.pid}-mode")
        assert_raises(Ringspun::UsageError, mode.inspect) { Ringspun.listen_unix(path, mode:) { flunk } }
        refute_path_exists path
      end
    end
  end

  # --- servers ---

  def test_more_than_the_most_wait_in_the_kernel
    on_server(max_connections: 2) do |server, machine|
      first = Array.new(2) { connect(server) }
      first.each { |stream| assert_equal "x", ask(stream, "x") }
      third = machine.spin { connect(server) { |stream| ask(stream, "third") } }
      10.times { machine.sleep(0.001) }
      assert_equal 2, server.connections
      assert_predicate third, :alive?
      first[0].close
      assert_equal "third", third.await
      first[1].close
    end
  end

  def test_who_sends_nothing_is_sent_away
    on_server(first_byte: 0.01) do |server|
      connect(server) { |stream| assert_nil stream.read_line }
    end
  end

  def test_a_server_that_speaks_first
    on_server(->(stream) { stream.write_line("220 ready") }, first_byte: nil) do |server|
      connect(server) { |stream| assert_equal ["220 ready", nil], [stream.read_line, stream.read_line] }
    end
  end

  def test_an_error_ends_its_connection_only
    told = []
    handler = ->(stream) { stream.read_line == "fail" ? raise("failed") : echo(stream) }
    on_server(handler, on_error: ->(error, stream) { told << [error.message, stream.class] }) do |server|
      connect(server) { |stream| assert_nil ask(stream, "fail") }
      connect(server) { |stream| assert_equal "x", ask(stream, "on\nx") }
    end
    assert_equal [["failed", Ringspun::Stream]], told
  end

  def test_an_error_that_nobody_is_told
    _, said = capture_io do
      on_server(->(_stream) { raise "failed" }) { |server| connect(server) { |stream| assert_nil ask(stream, "x") } }
    end
    assert_match(/ringspun: a connection failed: .*failed \(RuntimeError\)/m, said)
  end

  def test_an_error_that_the_run_is_told
    told = []
    _, said = capture_io do
      Ringspun.run(on_error: ->(error, strand) { told << [error.message, strand.class] }) do
        server = Ringspun.listen_tcp("127.0.0.1", 0) { raise "failed" }
        connect(server) { |stream| assert_nil ask(stream, "x") }
        server.stop
      end
    end
    assert_equal [[["failed", Ringspun::Strand]], ""], [told, said]
  end

  def test_a_peer_that_goes_away_is_no_news
    _, said = capture_io do
      on_server(->(stream) { stream.read(10) }) { |server| connect(server) { |stream| stream.write("x") } }
    end
    assert_empty said
  end

  # In a process of its own, whose limit is nobody else's.
  def test_descriptors_run_out
    answer = ruby_child(<<~RUBY)
      require "ringspun"
      require "stringio"
      $stderr = StringIO.new
      Ringspun.run do |machine|
        clients = Array.new(2) { machine.socket(:INET, :STREAM) }
        last = machine.socket(:INET, :STREAM).tap { |fd| machine.close(fd) }
        limits = Process.getrlimit(:NOFILE)
        # First: of an accept on io_uring the limit counts that was in force when the kernel got it.
        Process.setrlimit(:NOFILE, last + 1, limits[1])
        server = Ringspun.listen_tcp("127.0.0.1", 0) { |stream| stream.each_line { |line| stream.write_line(line) } }
        clients.each { |fd| machine.connect(fd, server.address) }
        machine.send(clients[0], "x\n")
        machine.sleep(0.001) until $stderr.string.include?("no connection is accepted")
        Process.setrlimit(:NOFILE, *limits)
        machine.recv(clients[0], answer = +"")
        puts answer
        clients.each { |fd| machine.close(fd) }
        server.stop
      end
      puts $stderr.string
    RUBY
    assert_match(/\Ax\nringspun: .*Too many open files.*; no connection is accepted for 0.01 s\n\z/, answer.out)
    assert_equal ["", true], [answer.err, answer.status.success?]
  end

  # The last connection waits with its server until there is a strand for it.
  def test_strands_run_out
    served = said = nil
    Thread.new do
      _, said = capture_io do
        Ringspun.run(strands_max: 5) do |machine|
          server = Ringspun.listen_tcp("127.0.0.1", 0) { |stream| echo(stream) }
          clients = Array.new(3) { connect(server).tap { |stream| stream.write_line("x") } }
          assert_equal %w[x x], clients.first(2).map(&:read_line)
          machine.sleep(0.001) until $stderr.string.include?("no connection is accepted")
          clients[0].close
          served = clients[2].read_line
          clients.last(2).each(&:close)
          server.stop
        end
      end
    end.join
    assert_equal "x", served
    assert_match(/\Aringspun: this machine runs at most 5 strands.*; no connection is accepted for 0.01 s\n\z/, said)
  end

  # As one for which there is no stack.
  def test_a_strand_that_never_begins_drops_its_connection
    on_server do |server, machine|
      ending = true
      machine.define_singleton_method(:spin) { |&block| super(&block).tap { |strand| strand.terminate if ending } }
      dropped = connect(server)
      machine.sleep(0.001) until server.connections == 1
      ending = false
      client = connect(server)
      assert_equal "served", ask(client, "served")
      assert_nil dropped.read_line
      assert_equal 1, server.connections
      [dropped, client].each(&:close)
    ensure
      machine.singleton_class.remove_method(:spin)
    end
  end

  # Three connections for which there is no stack, and one behind them.
  def lack_stacks(**)
    on_server(**) do |server, machine|
      lacks = 3
      machine.define_singleton_method(:spin) do |&block|
        (lacks -= 1).negative? ? super(&block) : super() { raise Ringspun::LimitError, "no stack for one more strand" }
      end
      dropped = Array.new(3) { |number| connect(server).tap { machine.sleep(0.001) until lacks == 2 - number } }
      client = connect(server)
      assert_equal "served", ask(client, "served")
      dropped.each { |stream| assert_nil stream.read_line }
      [*dropped, client].each(&:close)
    ensure
      machine.singleton_class.remove_method(:spin)
    end
  end

  # It is told, once, and others wait in the kernel meanwhile.
  def test_connections_for_which_there_is_no_stack
    _, said = capture_io { lack_stacks }
    assert_equal ["ringspun: no stack for one more strand; no connection is accepted for 0.01 s\n"],
                 said.lines.grep(/no connection/)
  end

  def test_as_many_as_there_may_be_for_which_there_is_no_stack
    _, said = capture_io { lack_stacks(max_connections: 1) }
    assert_includes said, "no connection is accepted"
  end

  def test_nobody_reads_that_there_is_no_stack
    reader, writer = IO.pipe
    reader.close
    before, $stderr = $stderr, writer
    lack_stacks
  ensure
    $stderr = before
    writer.close
  end

  def test_a_connection_stops_its_own_server
    stopped = nil
    server = nil
    handler = lambda do |stream|
      stream.write_line("bye") if stream.read_line == "stop"
      stopped = server.stop
      server.wait
    end
    on_machine do
      server = Ringspun.listen_tcp("127.0.0.1", 0, &handler)
      connect(server) do |stream|
        assert_equal "bye", ask(stream, "stop")
        assert_nil stream.read_line
      end
      assert_equal 0, stopped
      assert_equal 0, server.stop
    end
  end

  def test_a_connection_stops_its_own_server_and_cancels_the_others
    stopped = nil
    server = nil
    on_machine do
      server = Ringspun.listen_tcp("127.0.0.1", 0) do |stream|
        stream.read_line == "stop" ? stopped = server.stop(within: 0) : stream.read_line
      end
      connect(server) do |other|
        other.write_line("stay")
        connect(server) { |stream| assert_nil ask(stream, "stop") }
        other.read_line
      end
      assert_equal 1, stopped
    end
  end

  def test_stop_lets_connections_end
    on_server do |server, machine|
      stream = connect(server)
      assert_equal "x", ask(stream, "x")
      stopping = machine.spin { server.stop(within: nil) }
      until_waits(stopping, /Condition/)
      assert_predicate server, :stopping?
      assert_raises(Errno::ECONNREFUSED) { connect(server) }
      assert_equal "still", ask(stream, "still")
      stream.close
      assert_equal 0, stopping.await
      assert_nil server.wait
    end
  end

  def test_stop_serves_those_that_were_accepted_while_there_were_too_many
    gate = Ringspun::Queue.new
    handler = ->(stream) { stream.write_line(stream.read_line) if gate.pop }
    on_server(handler, max_connections: 1) do |server, machine|
      clients = Array.new(5) { |i| connect(server).tap { |stream| stream.write_line(i.to_s) } }
      machine.sleep(0.001) until gate.num_waiting == 1
      stopping = machine.spin { server.stop(within: nil) }
      until_waits(stopping, /Condition/)
      5.times { gate.push(true) }
      assert_equal %w[0 1 2 3 4], clients.map(&:read_line)
      assert_equal 0, stopping.await
      clients.each(&:close)
    end
  end

  # Stopped at every step of the strand that accepts.
  def test_stop_drops_nobody_on_a_socket_that_others_share
    on_machine do |machine|
      Socket.tcp_server_sockets("127.0.0.1", 0) do |(socket)|
        amount(20).times do |turns|
          clients = Array.new(40) { Fiber.blocking { Socket.tcp("127.0.0.1", socket.local_address.ip_port) } }
          first = shared_server(machine, socket)
          turns.times { machine.yield }
          first.stop(within: nil)
          second = shared_server(machine, socket)
          assert_equal ["served\n"], clients.map(&:gets).uniq
          clients.each(&:close)
          second.stop
        end
      end
    end
  end

  def shared_server(machine, socket)
    own = socket.dup.tap { |copy| copy.autoclose = false }.fileno
    listener = Ringspun.const_get(:Listener).shared(machine, own)
    Ringspun::Server.new(listener, first_byte: nil) { |stream| stream.write_line("served") }
  end

  def test_stop_cancels_those_that_do_not_end
    ended = []
    handler = lambda do |stream|
      echo(stream)
    ensure
      ended << stream
    end
    on_server(handler) do |server|
      streams = Array.new(3) { connect(server).tap { |stream| ask(stream, "x") } }
      assert_equal 3, server.stop(within: 0.01)
      assert_equal 3, ended.size
      streams.each { |stream| assert_nil stream.read_line }
      streams.each(&:close)
    end
  end

  # They came when it waited for connections, and would be reset now.
  def test_those_who_wait_in_a_shared_socket_when_it_stops
    on_machine do |machine|
      listening = TCPServer.new("127.0.0.1", 0).tap { |socket| socket.autoclose = false }
      listening.nonblock = true
      server = Ringspun::Server.new(Ringspun.const_get(:Listener).shared(machine, listening.fileno)) { |stream| echo(stream) }
      until_waits(server.instance_variable_get(:@strand))
      clients = Fiber.blocking { Array.new(3) { TCPSocket.new("127.0.0.1", server.port) } }
      clients.each do |client|
        client.write("x\n")
        client.close_write
      end
      assert_equal 0, server.stop
      assert_equal(["x\n"] * 3, clients.map(&:read))
      clients.each(&:close)
    end
  end

  # Which is no exception.
  def test_a_fiber_that_is_killed_as_it_begins_to_listen_leaves_nothing
    mode = Object.new
    def mode.to_int = Fiber.current.kill
    Dir.mktmpdir do |folder|
      on_machine do |machine|
        before = machine.strands
        fiber = Fiber.schedule { Ringspun.listen_tcp("127.0.0.1", 0) { flunk } }
        fiber.kill # it waits until its server has begun
        other = Fiber.schedule { Ringspun.listen_unix("#{folder}/door", mode:) { flunk } }
        3.times { machine.yield }
        assert_equal [before, false, false], [machine.strands, *[fiber, other].map(&:alive?)]
      end
    end
  end

  def test_a_run_that_is_cancelled_leaves_nothing
    assert_raises(RuntimeError) do
      Ringspun.run do |machine|
        server = Ringspun.listen_tcp("127.0.0.1", 0) { |stream| echo(stream) }
        connect(server) { |stream| ask(stream, "x") }
        fresh = machine.socket(:INET, :STREAM)
        machine.connect(fresh, server.address)
        machine.close(fresh)
        raise "cancelled"
      end
    end
  end

  # --- clients ---

  def test_nobody_listens
    on_machine do
      server = Ringspun.listen_tcp("127.0.0.1", 0) { flunk }
      port = server.port
      server.stop
      assert_raises(Errno::ECONNREFUSED) { Ringspun.connect_tcp("127.0.0.1", port) }
    end
  end

  def test_a_name
    on_server do |server|
      assert_equal("x", Ringspun.connect_tcp("localhost", server.port) { |stream| ask(stream, "x") })
    end
  end

  def test_it_takes_too_long
    on_machine do |machine|
      port = silent_port(machine)
      error = assert_raises(Ringspun::TimeoutError) { Ringspun.connect_tcp("127.0.0.1", port, connect_timeout: 0.02) }
      assert_equal "connect_tcp: no connection to 127.0.0.1:#{port} within 0.02 s", error.message
      assert_nothing_in_flight
    end
  end

  def test_an_address_that_refuses_costs_no_time
    on_server do |server, machine|
      refusing = Ringspun.listen_tcp("127.0.0.1", 0) { flunk }.tap(&:stop)
      descriptor = race(machine, [refusing.address, server.address], delay: 100)
      assert_equal server.port, peer_of(descriptor)
      machine.close(descriptor)
    end
  end

  def test_an_address_that_is_silent_costs_the_delay
    on_server do |server, machine|
      silent = Addrinfo.tcp("127.0.0.1", silent_port(machine))
      descriptor = race(machine, [silent, silent, server.address], delay: 0.01)
      assert_equal server.port, peer_of(descriptor)
      machine.close(descriptor)
    end
  end

  # One has won already, and the others have not ended yet. That no descriptor is left, the test's end looks at.
  def test_a_race_that_is_cancelled_when_it_is_won
    on_server do |server, machine|
      silent = Addrinfo.tcp("127.0.0.1", silent_port(machine))
      strand = spin do
        racing = eyeballs.new(machine, [silent, server.address], 0.01)
        racing.define_singleton_method(:race) { |scope| super(scope).tap { machine.terminate(strand) } }
        racing.connect
      end
      assert_raises(Ringspun::TerminatedError) { strand.await }
    end
  end

  def test_no_address_answers
    on_machine do |machine|
      refusing = Array.new(3) { Ringspun.listen_tcp("127.0.0.1", 0) { flunk }.tap(&:stop).address }
      assert_raises(Errno::ECONNREFUSED) { race(machine, refusing) }
    end
  end

  def test_families_take_turns
    six, four = %w[::1 ::2 ::3].map { |host| Addrinfo.tcp(host, 1) }, [Addrinfo.tcp("127.0.0.1", 1)]
    on_machine do |machine|
      order = ->(addresses) { eyeballs.new(machine, addresses, 1).instance_variable_get(:@addresses).map(&:ip_address) }
      assert_equal %w[::1 127.0.0.1 ::2 ::3], order[six + four]
      assert_equal %w[127.0.0.1 ::1 ::2 ::3], order[four + six]
      assert_equal %w[::1 ::2 ::3], order[six]
    end
  end

  private

  def eyeballs = Ringspun.const_get(:HappyEyeballs)
  def race(machine, addresses, delay: 10) = eyeballs.new(machine, addresses, delay).connect

  def peer_of(descriptor)
    Socket.for_fd(descriptor).tap { |socket| socket.autoclose = false }.remote_address.ip_port
  end

  # Of a listener whose queue is full: it answers nobody.
  def silent_port(machine)
    listener = make_socket(:INET, :STREAM)
    machine.bind(listener, Addrinfo.tcp("127.0.0.1", 0))
    machine.listen(listener, 0)
    address = Socket.for_fd(listener).tap { |socket| socket.autoclose = false }.local_address
    # What has a place is connected within the call. The others would hang, and one of them fills the queue for certain.
    3.times do
      socket = Socket.for_fd(make_socket(:INET, :STREAM)).tap { |each| each.autoclose = false }
      socket.connect_nonblock(address, exception: false)
    end
    address.ip_port
  end
end
