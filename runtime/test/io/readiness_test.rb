# frozen_string_literal: true

require_relative "io_case"

# Where "ready" does not mean that the operation would get on, and where a descriptor is not what its number was.
class ReadinessTest < IOCase
  MSG_ERRQUEUE = 0x2000
  IP_RECVERR = 11

  # Of others' descriptors the backend is told at once.
  def test_system_calls_are_counted_up_to_the_call
    on_machine do |machine|
      reader, writer = IO.pipe
      settle
      before = machine.metrics[:system_calls]
      strand = machine.spin { machine.poll(reader, :readable) }
      machine.yield
      assert_operator machine.metrics[:system_calls], :>, before
      writer.write("x")
      strand.await
      [reader, writer].each(&:close)
    end
  end

  def test_a_datagram_to_a_full_receiver_waits_and_does_not_spin
    on_machine do |machine|
      receiver = make_socket(:UNIX, :DGRAM)
      machine.bind(receiver, path = Socket.sockaddr_un("\0ringspun-datagrams-#{Process.pid}"))
      sender = make_socket(:UNIX, :DGRAM)
      sent = 0
      strand = waiting(/sendmsg/) { 1000.times { |i| (sent += 1) && machine.sendmsg(sender, i.to_s, path) } }
      refute_spins { machine.sleep(0.02) }
      assert_operator sent, :<, 1000
      received = Array.new(1000) { String.new.tap { |bytes| machine.recv(receiver, bytes) }.to_i }
      assert_equal (0...1000).to_a, received
      strand.await
      assert_nothing_in_flight
    end
  end

  def test_a_datagram_to_a_full_receiver_can_be_cancelled_and_closed
    on_machine do |machine|
      receiver = make_socket(:UNIX, :DGRAM)
      machine.bind(receiver, path = Socket.sockaddr_un("\0ringspun-datagrams-#{Process.pid}"))
      strands = Array.new(2) do
        sender = make_socket(:UNIX, :DGRAM)
        [waiting(/sendmsg/) { loop { machine.sendmsg(sender, "x", path) } }, sender]
      end
      machine.sleep(0.003)
      machine.terminate(strands.first.first)
      assert_raises(Ringspun::TerminatedError) { strands.first.first.await }
      close(strands.last.last)
      assert_raises(Ringspun::ClosedError) { strands.last.first.await }
      assert_nothing_in_flight
    end
  end

  def test_who_waits_for_errors_keeps_nobody_from_the_data
    on_machine do |machine|
      socket, other = keep(UDPSocket.new, UDPSocket.new)
      socket.bind("127.0.0.1", 0)
      machine.setsockopt(socket, Socket::IPPROTO_IP, IP_RECVERR, true)
      errors = waiting(/recvmsg/) { machine.recvmsg(socket, +"", 100, MSG_ERRQUEUE) }
      data = waiting(/recv /) { String.new.tap { |bytes| machine.recv(socket, bytes) } }
      machine.sendmsg(other, "data", socket.local_address)
      assert_equal "data", data.await
      machine.sendmsg(other, "more", socket.local_address)
      refute_spins { machine.sleep(0.005) }
      nobody = UDPSocket.open { |gone| gone.bind("127.0.0.1", 0) && gone.local_address }
      machine.sendmsg(socket, "lost", nobody)
      bytes, _, flags, controls = errors.await
      assert_equal 4, bytes
      assert_equal MSG_ERRQUEUE, flags & MSG_ERRQUEUE
      assert_equal [[Socket::IPPROTO_IP, IP_RECVERR]], controls.map { |level, type, _| [level, type] }
    end
  end

  def test_accept_of_what_is_no_socket
    on_machine do |machine|
      [make_pipe.first, keep(*IO.pipe).first].each do |reader|
        assert_raises(Errno::ENOTSOCK) { machine.accept(reader) }
      end
      assert_raises(Errno::EINVAL) { machine.accept(make_socketpair.first) }
      assert_raises(Errno::EINVAL) { machine.accept(keep(*UNIXSocket.pair).first) }
    end
  end

  def test_a_blocking_pipe_in_the_place_of_our_socket
    on_machine do |machine|
      reader, writer = in_the_place_of(*machine.socketpair) { IO.pipe.each { |io| io.nonblock = false } }
      reading = waiting(/read/) { read_exactly(reader, 5) }
      machine.write(writer, "hello")
      assert_equal "hello", reading.await
      bytes = sample(200_000)
      writing = waiting(/write/) { machine.writev(writer, [bytes, "end"]) }
      assert_bytes bytes + "end", read_exactly(reader, 200_003)
      assert_equal 200_003, writing.await
    end
  end

  def test_a_blocking_listener_in_the_place_of_ours
    on_machine do |machine|
      address = Socket.sockaddr_un("\0ringspun-in-place-#{Process.pid}")
      number, = in_the_place_of(machine.socket(:UNIX, :STREAM)) do
        server = Socket.new(:UNIX, :STREAM)
        server.nonblock = false
        server.bind(address)
        server.listen(1)
        [server]
      end
      accepting = waiting(/accept/) { keep(machine.accept(number)) }
      machine.connect(make_socket(:UNIX, :STREAM), address)
      accepting.await
    end
  end

  # A blocking one, in which the call itself would wait, and our own.
  def test_a_connect_that_nobody_answers_ends_with_its_socket
    on_machine do |machine|
      [Addrinfo.tcp("127.0.0.1", 0), Addrinfo.unix("\0ringspun-full-#{Process.pid}")].each do |address|
        server, = keep(Socket.new(address.afamily, :STREAM))
        machine.bind(server, address)
        machine.listen(server, 0)
        clients = Array.new(8) { |i| keep(Socket.new(address.afamily, :STREAM).tap { |io| io.nonblock = i.odd? }).first }
        strands = clients.map { |client| spin { machine.connect(client, server.local_address) } }
        machine.sleep(0.005)
        hanging = strands.zip(clients).select { |strand, _| strand.alive? }
        assert_equal [false, true], hanging.map { |_, client| client.nonblock? }.uniq.sort_by(&:to_s)
        refute_spins { machine.sleep(0.005) }
        hanging.each do |strand, client|
          close(client)
          assert_raises(Ringspun::ClosedError) { strand.await }
        end
        (strands - hanging.map(&:first)).each { |strand| assert_nil strand.await }
        assert_equal 0, machine.metrics[:ops_in_flight]
      end
    end
  end

  private

  # Whatever is tried again is so once a millisecond; what spins sleeps thousands of times.
  def refute_spins
    start, before = now_ms, sleeps
    yield
    assert_operator sleeps - before, :<, (4 * (now_ms - start)) + 20
  end

  def sleeps = @machine.metrics.values_at(:busy_polls, :sleeps).sum

  def now_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)

  # What the block gives gets these numbers of ours, and the machine is not told.
  def in_the_place_of(*numbers)
    keep(*numbers)
    numbers.zip(yield) do |number, io|
      IO.for_fd(number, autoclose: false).reopen(io)
      io.close
    end
    numbers
  end
end
