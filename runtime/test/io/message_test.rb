# frozen_string_literal: true

require_relative "io_case"

# Datagrams, addresses, what travels beside the bytes, and options: real sockets only.
class MessageTest < IOCase
  # What stands for an address or a descriptor may do anything when it is asked.
  def test_an_address_that_frees_the_buffer_when_asked
    on_machine do |machine|
      receiver, sender = Array.new(2) { make_socket(:UNIX, :DGRAM) }
      path = Socket.sockaddr_un("\0ringspun-freed-#{Process.pid}")
      machine.bind(receiver, path)
      buffer = IO::Buffer.new(1000)
      address = Object.new
      address.define_singleton_method(:to_sockaddr) do
        buffer.free
        path
      end
      assert_raises(Ringspun::UsageError) { machine.sendmsg(sender, buffer, address) }
      assert_raises(IO::WaitReadable) { Socket.for_fd(receiver).tap { |io| io.autoclose = false }.recv_nonblock(10) }
    end
  end

  def test_an_address_that_closes_the_socket_when_asked
    on_machine do |machine|
      %i[sendmsg connect bind].each do |method|
        socket = UNIXSocket.pair.each { |io| keep(io) }.first
        address = Object.new
        address.define_singleton_method(:to_sockaddr) do
          socket.close
          Socket.sockaddr_un("\0nobody")
        end
        arguments = method == :sendmsg ? ["x", address] : [address]
        assert_raises(Ringspun::ClosedError) { machine.__send__(method, socket, *arguments) }
      end
    end
  end

  def test_descriptors_that_cannot_be_handed_over_are_closed
    on_machine do |machine|
      one, other = make_socketpair
      rights = [[Socket::SOL_SOCKET, Socket::SCM_RIGHTS, [0, 1, 2].pack("i*")]]
      parent = IO::Buffer.new(100)
      slice = parent.slice(0, 10)
      before = Dir.children("/proc/self/fd")
      strand = waiting(/recvmsg/) { machine.recvmsg(one, slice) }
      parent.free
      machine.sendmsg(other, "x", nil, 0, rights)
      assert_raises(Ringspun::UsageError) { strand.await }
      assert_equal before, Dir.children("/proc/self/fd")
    end
  end

  def test_datagrams_carry_their_sender_s_address
    on_machine do |machine|
      [["127.0.0.1", :INET], (["::1", :INET6] if ipv6?)].compact.each do |host, family|
        one, other = Array.new(2) { make_socket(family, :DGRAM) }
        [one, other].each { |socket| machine.bind(socket, Addrinfo.udp(host, 0)) }
        string = +""
        strand = waiting(/recvmsg/) { machine.recvmsg(one, string) }
        assert_equal 5, machine.sendmsg(other, "hello", address_of(one))
        bytes, address, flags, controls = strand.await
        assert_equal [5, "hello", 0, []], [bytes, string, flags, controls]
        assert_equal address_of(other), address
        machine.sendmsg(one, "back", address)
        assert_equal 4, machine.recv(other, string)
        assert_equal "back", string
      end
    end
  end

  def test_a_connected_datagram_socket
    on_machine do |machine|
      one, other = Array.new(2) { make_socket(:INET, :DGRAM) }
      machine.bind(one, Socket.sockaddr_in(0, "127.0.0.1"))
      machine.connect(other, Socket.for_fd(one).tap { |socket| socket.autoclose = false }.local_address)
      ["first", "", "third"].each { |text| assert_equal text.size, machine.send(other, text) }
      string = +"old"
      assert_equal [5, 0, 5], (Array.new(3) { machine.recv(one, string) })
      assert_equal "third", string
    end
  end

  def test_a_datagram_too_long_for_its_buffer_is_cut
    on_machine do |machine|
      one, other = make_socketpair(:UNIX, :DGRAM)
      4.times { machine.send(other, "0123456789") }
      string = +""
      bytes, _, flags, = machine.recvmsg(one, string, 4)
      assert_equal [4, "0123"], [bytes, string]
      assert_operator flags & Socket::MSG_TRUNC, :>, 0
      assert_equal 4, machine.recv(one, string, 4)
      assert_equal "0123", string

      # Asked for, the whole length is told; the String still holds what fitted.
      assert_equal 10, machine.recv(one, string, 4, Socket::MSG_TRUNC)
      assert_equal "0123", string
      buffer = IO::Buffer.new(4)
      assert_equal 10, machine.recvmsg(one, buffer, 4, Socket::MSG_TRUNC).first
      assert_equal "0123", buffer.get_string
      [4, 4000].each do |size|
        strand = waiting(/recv/) { machine.recv(one, string, size, Socket::MSG_TRUNC) }
        machine.send(other, "x" * 9000)
        assert_equal 9000, strand.await
        assert_equal "x" * size, string
      end
    end
  end

  def test_seqpacket_keeps_messages_apart
    on_machine do |machine|
      one, other = make_socketpair(:UNIX, :SEQPACKET)
      string = +""
      strand = waiting(/recv/) { machine.recv(one, string) }
      machine.send(other, "one")
      machine.send(other, "two")
      assert_equal [3, "one"], [strand.await, string]
      assert_equal [3, "two"], [machine.recv(one, string), string]
      close(other)
      assert_equal 0, machine.recv(one, string)
    end
  end

  def test_descriptors_travel_beside_the_bytes
    on_machine do |machine|
      one, other = make_socketpair
      pipes = Array.new(2) { make_pipe }
      rights = [[Socket::SOL_SOCKET, Socket::SCM_RIGHTS, pipes.map(&:last).pack("i*")]]
      strand = waiting(/recvmsg/) { machine.recvmsg(one, +"") }
      assert_equal 1, machine.sendmsg(other, "!", nil, 0, rights)
      _, _, flags, controls = strand.await
      assert_equal 0, flags
      assert_equal [Socket::SOL_SOCKET, Socket::SCM_RIGHTS], controls.first.first(2)
      received = keep(*controls.first.last.unpack("i*"))
      assert_equal 2, received.size
      received.zip(pipes) do |descriptor, (reader, _)|
        refute_includes pipes.flatten, descriptor
        assert_predicate IO.for_fd(descriptor, autoclose: false), :close_on_exec?
        machine.write(descriptor, "through")
        assert_equal "through", read_exactly(reader, 7)
      end
    end
  end

  def test_several_control_messages
    on_machine do |machine|
      one, other = make_socketpair
      machine.setsockopt(one, Socket::SOL_SOCKET, Socket::SO_PASSCRED, true)
      reader, = make_pipe
      credentials = [Process.pid, Process.euid, Process.egid].pack("iII")
      machine.sendmsg(other, "!", nil, 0, [[Socket::SOL_SOCKET, Socket::SCM_CREDENTIALS, credentials],
                                           [Socket::SOL_SOCKET, Socket::SCM_RIGHTS, [reader].pack("i")]])
      _, _, _, controls = machine.recvmsg(one, +"")
      by_type = controls.to_h { |_, type, bytes| [type, bytes] }
      assert_equal credentials, by_type.fetch(Socket::SCM_CREDENTIALS)
      keep(by_type.fetch(Socket::SCM_RIGHTS).unpack1("i"))
    end
  end

  def test_a_message_that_waits_for_room_owns_all_of_it
    on_machine do |machine|
      one, other = make_socketpair(:UNIX, :DGRAM)
      sent = 0
      filler = spin { loop { machine.send(other, "x" * 1000) && sent += 1 } }
      until_waits(filler, /send/)
      machine.terminate(filler)
      error_of { filler.join }
      reader, writer = make_pipe
      bytes = [writer].pack("i")
      controls = [[Socket::SOL_SOCKET, Socket::SCM_RIGHTS, bytes]]
      text = +"short"
      strand = waiting(/sendmsg/) { machine.sendmsg(other, text, nil, 0, controls) }
      text.clear
      bytes.replace("gone")
      controls.clear
      GC.start
      string = +""
      sent.times { machine.recv(one, string) }
      _, _, _, received = machine.recvmsg(one, string)
      assert_equal 5, strand.await
      assert_equal "short", string
      descriptor, = keep(received.first.last.unpack1("i"))
      machine.write(descriptor, "ok")
      assert_equal "ok", read_exactly(reader, 2)
    end
  end

  def test_urgent_bytes
    on_urgent_connection do |machine, client, peer|
      strand = waiting(/poll/) { machine.poll(peer, :priority) }
      machine.send(client, "calm")
      machine.poll(peer, :readable)
      assert_equal :parked, strand.state
      machine.send(client, "!", Socket::MSG_OOB)
      assert_equal IO::PRIORITY, strand.await
      string = +""
      machine.recv(peer, string, 1, Socket::MSG_OOB)
      assert_equal "!", string
      assert_equal "calm", read_exactly(peer, 4)
    end
  end

  # The kernel has the wait by then, and wakes it when they come.
  def test_urgent_bytes_that_come_later
    on_urgent_connection do |machine, client, peer|
      strand = waiting(/poll/) { machine.poll(peer, :priority) }
      machine.sleep(0.002)
      machine.send(client, "calm")
      machine.sleep(0.002)
      assert_equal :parked, strand.state
      machine.send(client, "!", Socket::MSG_OOB)
      assert_equal IO::PRIORITY, machine.timeout(5) { strand.await }
    end
  end

  # What is told is so, and not whatever the kernel was woken for.
  def test_bytes_that_are_not_urgent
    on_urgent_connection do |machine, client, peer|
      strand = waiting(/poll/) { machine.poll(peer, IO::READABLE | IO::PRIORITY) }
      machine.sleep(0.002)
      machine.send(client, "calm")
      assert_equal IO::READABLE, strand.await
    end
  end

  def test_dont_wait_does_not_wait
    on_machine do |machine|
      one, other = make_socketpair
      flag = Socket::MSG_DONTWAIT
      assert_raises(Errno::EAGAIN) { machine.recv(one, +"", 10, flag) }
      assert_raises(Errno::EAGAIN) { machine.recvmsg(one, +"", 10, flag) }
      machine.send(other, "abc", flag)
      string = +""
      assert_equal 3, machine.recv(one, string, 10, flag)
      assert_operator machine.send(other, "x" * LARGE, flag), :<, LARGE
      assert_raises(Errno::EAGAIN) { machine.send(other, "x", flag) }
      assert_raises(Errno::EAGAIN) { machine.sendmsg(other, "x", nil, flag) }
    end
  end

  def test_no_signal_ends_the_program_where_nobody_reads
    on_machine do |machine|
      one, other = make_socketpair
      close(one)
      assert_raises(Errno::EPIPE) { machine.send(other, "x") }
      assert_raises(Errno::EPIPE) { machine.sendmsg(other, "x") }
    end
  end

  def test_what_is_no_socket_is_told_so
    on_machine do |machine|
      reader, writer = make_pipe
      calls = [-> { machine.recv(reader, +"") }, -> { machine.send(writer, "x") }, -> { machine.recvmsg(reader, +"") },
               -> { machine.sendmsg(writer, "x") }, -> { machine.accept(reader) }, -> { machine.listen(reader) },
               -> { machine.shutdown(reader) }, -> { machine.connect(reader, Socket.sockaddr_un("x")) },
               -> { machine.bind(reader, Socket.sockaddr_un("x")) }, -> { machine.getsockopt(reader, 1, 1) },
               -> { machine.setsockopt(reader, 1, 1, 1) }]
      calls.each { |call| assert_raises(Errno::ENOTSOCK, &call) }
    end
  end

  def test_what_a_datagram_socket_cannot_do_is_told_so
    on_machine do |machine|
      socket = make_socket(:INET, :DGRAM)
      { listen: -> { machine.listen(socket) }, accept: -> { machine.accept(socket) },
        accept_each: -> { machine.accept_each(socket) { flunk } } }.each do |name, call|
        error = assert_raises(Ringspun::UnsupportedError, name.to_s, &call)
        assert_match(/\A#{name[/[a-z]+/]}: not supported on descriptor #{socket}\z/, error.message)
        assert_kind_of Ringspun::Error, error
      end
      assert_nothing_in_flight
    end
  end

  def test_options_are_integers_booleans_or_bytes
    on_machine do |machine|
      socket = make_socket(:INET, :STREAM)
      machine.setsockopt(socket, Socket::SOL_SOCKET, Socket::SO_REUSEADDR, true)
      assert_equal 1, machine.getsockopt(socket, Socket::SOL_SOCKET, Socket::SO_REUSEADDR)
      machine.setsockopt(socket, Socket::SOL_SOCKET, Socket::SO_REUSEADDR, false)
      assert_equal 0, machine.getsockopt(socket, Socket::SOL_SOCKET, Socket::SO_REUSEADDR)
      machine.setsockopt(socket, Socket::SOL_SOCKET, Socket::SO_RCVBUF, 20_000)
      assert_equal 40_000, machine.getsockopt(socket, Socket::SOL_SOCKET, Socket::SO_RCVBUF)
      machine.setsockopt(socket, Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      assert_equal 1, machine.getsockopt(socket, Socket::IPPROTO_TCP, Socket::TCP_NODELAY)
      linger = [1, 7].pack("ii")
      machine.setsockopt(socket, Socket::SOL_SOCKET, Socket::SO_LINGER, linger)
      assert_equal linger, machine.getsockopt(socket, Socket::SOL_SOCKET, Socket::SO_LINGER)
      assert_match(/\A[a-z]+\0*\z/, machine.getsockopt(socket, Socket::IPPROTO_TCP, Socket::TCP_CONGESTION))
      assert_raises(Errno::ENOPROTOOPT) { machine.setsockopt(socket, Socket::SOL_SOCKET, 9999, 1) }
    end
  end

  def test_a_broken_connection_is_told_to_the_reader
    on_machine do |machine|
      server = make_socket(:INET, :STREAM)
      machine.bind(server, Addrinfo.tcp("127.0.0.1", 0))
      machine.listen(server)
      client = make_socket(:INET, :STREAM)
      machine.connect(client, address_of(server))
      peer, = keep(machine.accept(server))
      strand = waiting(/recv/) { machine.recv(client, +"") }
      # With this a close sends a reset.
      machine.setsockopt(peer, Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
      close(peer)
      assert_raises(Errno::ECONNRESET) { strand.await }
    end
  end

  def test_what_the_machine_makes_does_not_block_and_is_closed_on_exec
    on_machine do |machine|
      server = make_socket(:UNIX, :STREAM)
      machine.bind(server, Socket.sockaddr_un("\0ringspun-made-#{Process.pid}"))
      machine.listen(server)
      client = make_socket(:UNIX, :STREAM)
      machine.connect(client, address_of(server))
      all = [server, client, *keep(machine.accept(server)), *make_socketpair, *make_socketpair(:UNIX, :DGRAM),
             make_socket(:INET, :DGRAM)]
      waiter = waiting(/accept/) { machine.accept(server) }
      machine.connect(make_socket(:UNIX, :STREAM), address_of(server))
      all.concat(keep(waiter.await))
      all.each do |descriptor|
        io = IO.for_fd(descriptor, autoclose: false)
        assert_predicate io, :nonblock?
        assert_predicate io, :close_on_exec?
      end
    end
  end

  def test_without_descriptors_left_the_caller_is_told_and_nothing_is_lost
    code = <<~'RUBY'
      require "ringspun"
      require "socket"
      Ringspun.run do |machine|
        server = machine.socket(:UNIX, :STREAM)
        address = Socket.sockaddr_un("\0ringspun-full-#{Process.pid}")
        machine.bind(server, address)
        machine.listen(server)
        client, another = machine.socket(:UNIX, :STREAM), machine.socket(:UNIX, :STREAM)
        told = []
        Process.setrlimit(:NOFILE, 64) # io_uring takes the limit with the accept
        strand = machine.spin { machine.accept(server) rescue told << $!.class }
        machine.yield until strand.waits_for
        taken = []
        begin
          loop { taken << machine.open("/dev/null") }
        rescue Errno::EMFILE
          told << :open
        end
        machine.connect(client, address)
        strand.join
        [-> { machine.pipe }, -> { machine.socket(:UNIX, :STREAM) }, -> { machine.socketpair }, -> { machine.accept(server) }]
          .each { |call| begin call.call; rescue Errno::EMFILE then told << :again end }
        machine.close(taken.pop)
        peer = machine.accept(server)
        machine.write(peer, "hello")
        machine.read(client, string = +"")
        p told, string
      end
    RUBY
    answer = ruby_child(code)
    assert_equal ["[:open, Errno::EMFILE, :again, :again, :again, :again]\n\"hello\"\n", ""], [answer.out, answer.err]
  end

  def test_sockets_by_number
    on_machine do |machine|
      socket = make_socket(Socket::AF_INET, Socket::SOCK_DGRAM, Socket::IPPROTO_UDP)
      assert_equal Socket::SOCK_DGRAM, machine.getsockopt(socket, Socket::SOL_SOCKET, Socket::SO_TYPE)
      assert_equal 2, make_socketpair("UNIX", "SEQPACKET", 0).size
      assert_raises(Errno::EAFNOSUPPORT) { machine.socket(200, 1) }
      assert_raises(Ringspun::UnsupportedError) { machine.socketpair(:INET, :STREAM) }
      one, = make_socketpair
      machine.shutdown(one, Socket::SHUT_RD)
      assert_equal 0, machine.read(one, +"")
      machine.shutdown(one, "WR")
      assert_raises(Errno::EPIPE) { machine.send(one, "x") }
    end
  end

  private

  def on_urgent_connection
    on_machine do |machine|
      server = make_socket(:INET, :STREAM)
      machine.bind(server, Addrinfo.tcp("127.0.0.1", 0))
      machine.listen(server)
      client = make_socket(:INET, :STREAM)
      machine.connect(client, address_of(server))
      yield machine, client, *keep(machine.accept(server))
    end
  end

  def address_of(socket) = Socket.for_fd(socket).tap { |object| object.autoclose = false }.getsockname

  def ipv6?
    socket = UDPSocket.new(:INET6)
    socket.bind("::1", 0)
    true
  rescue SystemCallError
    false
  ensure
    socket&.close
  end
end
