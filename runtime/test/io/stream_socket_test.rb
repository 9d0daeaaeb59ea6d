# frozen_string_literal: true

# stream io: ring

require_relative "io_case"

# Where a listening socket is found, by family.
module OverUnix
  def family = :UNIX

  def bind(listener)
    name = "socket-#{@names = @names.to_i + 1}"
    Socket.sockaddr_un(simulated? ? name : File.join(folder, name)).tap { |address| @machine.bind(listener, address) }
  end

  def address_of_nobody = Socket.sockaddr_un(simulated? ? "nobody" : File.join(folder, "nobody"))
  def nobody = Errno::ENOENT

  def teardown
    FileUtils.remove_entry(@folder) if @folder
    super
  end

  private

  def folder = @folder ||= Dir.mktmpdir
end

module OverInet
  def family = :INET
  def host = "127.0.0.1"

  def bind(listener)
    @names = @names.to_i + 1
    @machine.bind(listener, Socket.sockaddr_in(simulated? ? @names : 0, host))
    return Socket.sockaddr_in(@names, host) if simulated?

    Socket.for_fd(listener).tap { |socket| socket.autoclose = false }.getsockname
  end

  # A port that just was somebody's is nobody's now.
  def address_of_nobody
    listener = make_socket(family, :STREAM)
    bind(listener).tap { close(listener) }
  end

  def nobody = Errno::ECONNREFUSED
end

module OverInet6
  include OverInet

  def family = :INET6
  def host = "::1"
end

module StreamSocketTests
  # [listener, its address]
  def listen(...)
    listener = make_socket(family, :STREAM)
    address = bind(listener)
    @machine.listen(listener, ...)
    [listener, address]
  end

  # Two ends of one connection.
  def make_connection
    listener, address = listen
    client = make_socket(family, :STREAM)
    acceptor = spin { @machine.accept(listener) }
    @machine.connect(client, address)
    ends = [client, *keep(acceptor.await)]
    close(listener)
    bound(*ends)
  end

  def test_both_ends_of_a_connection_talk
    on_machine do |machine|
      listener, address = listen
      server = waiting(/accept/) do
        peer = keep(machine.accept(listener)).first
        machine.write(peer, read_exactly(peer, 4).upcase)
      end
      client = make_socket(family, :STREAM)
      assert_nil machine.connect(client, address)
      assert_equal 4, machine.send(client, "ping")
      assert_equal "PING", read_exactly(client, 4)
      server.await
      assert_nothing_in_flight
    end
  end

  def test_a_connection_that_waits_is_accepted_at_once
    on_machine do |machine|
      listener, address = listen
      client = make_socket(family, :STREAM)
      machine.connect(client, address)
      peer, = keep(machine.accept(listener))
      machine.write(peer, "x")
      assert_equal "x", read_exactly(client, 1)
    end
  end

  def test_acceptors_are_served_in_order
    on_machine(faults: false) do |machine|
      listener, address = listen
      served = []
      acceptors = Array.new(4) { |i| waiting(/accept/) { keep(machine.accept(listener)).tap { served << i } } }
      4.times do |i|
        machine.connect(make_socket(family, :STREAM), address)
        acceptors[i].await
      end
      assert_equal [0, 1, 2, 3], served
    end
  end

  def test_connecting_to_nobody_is_refused
    on_machine do |machine|
      address = address_of_nobody
      assert_raises(nobody) { machine.connect(make_socket(family, :STREAM), address) }
    end
  end

  def test_recv_takes_what_is_there
    on_machine do |machine|
      one, other = make_connection
      string = +"old"
      strand = waiting(/recv/) { machine.recv(one, string, 100) }
      machine.send(other, "hello")
      bytes = strand.await
      assert_includes 1..5, bytes
      assert_equal "hello"[0, bytes], string
    end
  end

  def test_recv_with_peek_takes_nothing
    on_machine do |machine|
      one, other = make_connection
      machine.send(other, "abc")
      machine.poll(one, :readable)
      string = +""
      bytes = machine.recv(one, string, 10, Socket::MSG_PEEK)
      assert_moved 3, bytes
      assert_equal "abc"[0, bytes], string
      assert_equal "abc", read_exactly(one, 3)
    end
  end

  def test_recv_and_send_take_io_buffers
    on_machine do |machine|
      one, other = make_connection
      bytes = sample(simulated? ? 300_000 : IOCase::LARGE)
      source = IO::Buffer.for(bytes)
      target = IO::Buffer.new(50_000)
      sender = waiting(/send/) { machine.send(other, source).tap { machine.shutdown(other, :WR) } }
      received = +"".b
      while (count = machine.recv(one, target)).positive?
        received << target.get_string(0, count)
      end
      assert_bytes bytes, received
      assert_equal bytes.bytesize, sender.await
    end
  end

  def test_recvmsg_and_sendmsg_carry_a_stream_as_well
    on_machine do |machine|
      one, other = make_connection
      string = +""
      strand = waiting(/recvmsg/) { machine.recvmsg(one, string, 100) }
      assert_moved 5, sent = machine.sendmsg(other, "hello")
      bytes, _address, flags, controls = strand.await
      assert_includes 1..sent, bytes
      assert_equal "hello"[0, bytes], string
      assert_equal 0, flags & ~Socket::MSG_EOR
      assert_empty controls
    end
  end

  def test_sends_larger_than_the_buffers_go_out_whole
    on_machine do |machine|
      one, other = make_connection
      bytes = sample(simulated? ? 300_000 : IOCase::LARGE)
      sender = waiting(/send/) { machine.send(one, bytes).tap { machine.shutdown(one, :WR) } }
      assert_bytes bytes, read_to_end(other)
      assert_equal bytes.bytesize, sender.await
    end
  end

  def test_reading_and_writing_one_socket_do_not_disturb_each_other
    on_machine do |machine|
      ends = make_connection
      size = simulated? ? 300_000 : IOCase::LARGE
      there, back = sample(size, 1), sample(size, 2)
      senders = ends.zip([there, back]).map do |socket, bytes|
        waiting(/write/) { machine.write(socket, bytes).tap { machine.shutdown(socket, :WR) } }
      end
      readers = ends.map { |socket| spin { read_to_end(socket) } }
      received = await_all(readers)
      assert_bytes back, received.first
      assert_bytes there, received.last
      assert_equal [size, size], await_all(senders)
    end
  end

  def test_a_shut_direction_ends_and_the_other_goes_on
    on_machine do |machine|
      one, other = make_connection
      machine.send(one, "last words")
      assert_nil machine.shutdown(one, :WR)
      assert_equal "last words", read_to_end(other)
      assert_raises(Errno::EPIPE) { machine.send(one, "more") }
      machine.send(other, "answer")
      assert_equal "answer", read_exactly(one, 6)
    end
  end

  def test_shutting_the_reading_side_ends_a_read_that_waits
    on_machine do |machine|
      one, = make_connection
      strand = waiting(/read/) { machine.read(one, +"") }
      machine.shutdown(one, :RD)
      assert_equal 0, strand.await
    end
  end

  def test_shutting_both_sides_is_the_default
    on_machine do |machine|
      one, other = make_connection
      machine.shutdown(one)
      assert_equal 0, machine.read(one, +"")
      assert_raises(Errno::EPIPE) { machine.send(one, "x") }
      assert_equal 0, machine.read(other, +"")
    end
  end

  def test_a_peer_that_closes_is_the_end
    on_machine do |machine|
      one, other = make_connection
      machine.send(other, "bye")
      close(other)
      assert_equal "bye", read_to_end(one)
    end
  end

  def test_a_peer_that_closes_with_unread_bytes_resets_the_connection
    on_machine do |machine|
      one, other = make_connection
      machine.send(one, "never read")
      machine.poll(other, :readable)
      close(other)
      assert_raises(Errno::ECONNRESET) { machine.read(one, +"") }
    end
  end

  def test_a_closed_socket_tells_its_reader_and_its_writer_and_its_peer
    on_machine do |machine|
      one, other = make_connection
      strands = [waiting(/read/) { machine.read(one, +"") }, waiting(/recv/) { machine.recv(one, +"") },
                 waiting(/recvmsg/) { machine.recvmsg(one, +"") }, waiting(/poll/) { machine.poll(one, :readable) },
                 waiting(/write/) { machine.write(one, "x" * IOCase::LARGE) }]
      close(one)
      strands[..3].each { |strand| assert_raises(Ringspun::ClosedError) { strand.await } }
      assert_operator strands[4].await, :<, IOCase::LARGE, "it says how much went out"
      assert_nothing_in_flight
      assert_operator read_to_end(other).bytesize, :>, 0
    end
  end

  def test_a_closed_listener_tells_its_acceptors
    on_machine do |machine|
      listener, = listen
      strands = Array.new(3) { waiting(/accept/) { machine.accept(listener) } }
      close(listener)
      strands.each { |strand| assert_raises(Ringspun::ClosedError) { strand.await } }
    end
  end

  def test_accept_each_yields_until_the_block_breaks
    on_machine do |machine|
      listener, address = listen
      seen = 0
      server = waiting(/accept/) do
        machine.accept_each(listener) do |peer|
          machine.write(peer, (seen += 1).to_s)
          machine.close(peer)
          break :enough if seen == 3
        end
      end
      said = Array.new(3) do
        client = make_socket(family, :STREAM)
        machine.connect(client, address)
        read_to_end(client)
      end
      assert_equal %w[1 2 3], said
      assert_equal :enough, server.await
    end
  end

  # Who has come later gets connections as well, and so does a plain accept.
  def test_two_accept_each_and_an_accept_share_a_listener
    on_machine do |machine|
      listener, address = listen
      seen = Hash.new(0)
      servers = %i[one other].map do |name|
        waiting(/accept/) do
          machine.accept_each(listener) do |peer|
            seen[name] += 1
            machine.close(peer)
          end
        end
      end
      single = waiting(/accept/) { machine.accept(listener) }
      9.times do |before|
        machine.connect(make_socket(family, :STREAM), address)
        machine.sleep(0.001) until seen.values.sum + (single.alive? ? 0 : 1) > before
      end
      assert_equal [8, false], [seen.values.sum, single.alive?]
      assert_operator seen.values_at(:one, :other).min, :>=, 2, seen
      keep(single.await)
      servers.each { |server| machine.terminate(server) }
    end
  end

  def test_accept_each_goes_on_after_its_block_has_waited
    on_machine do |machine|
      listener, address = listen
      reader, writer = make_pipe
      served = []
      server = waiting(/accept/) do
        machine.accept_each(listener) do |peer|
          machine.read(reader, turn = +"", 1)
          machine.write(peer, turn)
          machine.close(peer)
          break if served.push(turn).size == 5
        end
      end
      clients = Array.new(5) { make_socket(family, :STREAM).tap { |client| machine.connect(client, address) } }
      settle
      machine.write(writer, "abcde")
      server.join
      assert_equal %w[a b c d e], served
      assert_equal served, clients.map { |client| read_to_end(client) }.sort
    end
  end

  def test_accept_each_ends_when_its_listener_is_closed_by_its_block
    on_machine do |machine|
      listener, address = listen
      server = waiting(/accept/) do
        machine.accept_each(listener) do |peer|
          machine.close(peer)
          close(listener)
        end
      end
      machine.connect(make_socket(family, :STREAM), address)
      assert_raises(Ringspun::ClosedError) { server.await }
    end
  end

  def test_poll_tells_of_a_connection_and_of_room
    on_machine do |machine|
      listener, address = listen
      strand = waiting(/poll/) { machine.poll(listener, :readable) }
      client = make_socket(family, :STREAM)
      machine.connect(client, address)
      assert_equal IO::READABLE, strand.await
      assert_equal IO::WRITABLE, machine.poll(client, %i[readable writable])
    end
  end

  def test_options_tell_what_a_socket_is
    on_machine do |machine|
      listener, = listen
      assert_equal Socket::SOCK_STREAM, machine.getsockopt(listener, Socket::SOL_SOCKET, Socket::SO_TYPE)
      assert_equal 1, machine.getsockopt(listener, Socket::SOL_SOCKET, Socket::SO_ACCEPTCONN)
      assert_equal 0, machine.getsockopt(listener, Socket::SOL_SOCKET, Socket::SO_ERROR)
      assert_nil machine.setsockopt(listener, Socket::SOL_SOCKET, Socket::SO_KEEPALIVE, true)
    end
  end

  def test_a_server_of_many_clients
    on_machine do |machine|
      listener, address = listen
      machine.scope do |scope|
        server = scope.spin do
          machine.accept_each(listener) do |peer|
            scope.spin do
              machine.write(peer, read_exactly(peer, 8).reverse)
            ensure
              machine.close(peer)
            end
          end
        end
        clients = Array.new(amount(50)) do |i|
          scope.spin do
            client = machine.socket(family, :STREAM)
            machine.connect(client, address)
            machine.write(client, format("%08d", i))
            read_to_end(client)
          ensure
            machine.close(client)
          end
        end
        assert_equal Array.new(amount(50)) { |i| format("%08d", i).reverse }, await_all(clients)
        machine.terminate(server)
      end
    end
  end

  def test_a_taken_address_is_in_use
    on_machine do |machine|
      _, address = listen
      assert_raises(Errno::EADDRINUSE) { machine.bind(make_socket(family, :STREAM), address) }
    end
  end
end

# Of Unix sockets: full ones stay full, and a full backlog is told by EAGAIN and by nothing else.
module UnixSocketTests
  def test_pollers_of_one_socket_wake_for_what_they_asked
    on_machine do |machine|
      one, other = make_connection
      filled = fill(one)
      reading = waiting(/poll/) { machine.poll(one, :readable) }
      writing = waiting(/poll/) { machine.poll(one, :writable) }
      read_exactly(other, filled)
      assert_equal IO::WRITABLE, writing.await
      assert_equal :parked, reading.state
      machine.send(other, "x")
      assert_equal IO::READABLE, reading.await
    end
  end

  def test_connecting_waits_for_a_place_in_the_backlog
    on_machine do |machine|
      listener, address = listen(1)
      2.times { machine.connect(make_socket(family, :STREAM), address) }
      client = make_socket(family, :STREAM)
      strand = waiting { machine.connect(client, address) }
      3.times { keep(machine.accept(listener)) }
      assert_nil strand.await
    end
  end

  def test_connecting_to_a_full_backlog_can_be_given_up
    on_machine do |machine|
      listener, address = listen(0)
      machine.connect(make_socket(family, :STREAM), address)
      client = make_socket(family, :STREAM)
      strand = waiting { machine.connect(client, address) }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      keep(machine.accept(listener))
      machine.connect(client, address)
      keep(machine.accept(listener))
      assert_nothing_in_flight
    end
  end
end

class UnixStreamSocketTest < IOCase
  include OverUnix
  include StreamSocketTests
  include UnixSocketTests
end

class InetStreamSocketTest < IOCase
  include OverInet
  include StreamSocketTests
end

class SimulatedUnixStreamSocketTest < IOCase
  include Simulated
  include OverUnix
  include StreamSocketTests
  include UnixSocketTests
end

class SimulatedInetStreamSocketTest < IOCase
  include Simulated
  include OverInet
  include StreamSocketTests
end

class SimulatedInet6StreamSocketTest < IOCase
  include Simulated
  include OverInet6
  include StreamSocketTests
end

class Inet6StreamSocketTest < IOCase
  include OverInet6

  # A host without IPv6 has nothing to test here.
  def self.available?
    TCPServer.open("::1", 0).close
    true
  rescue SystemCallError
    false
  end

  if available?
    include StreamSocketTests
  else
    def test_ipv6 = skip("no IPv6 on this host")
  end
end
