# frozen_string_literal: true

require_relative "io_case"

# Descriptors that travel: send_fd and recv_fd.
class RightsTest < IOCase
  def test_a_descriptor_travels
    on_machine do |machine|
      one, other = make_socketpair
      reader, writer = make_pipe
      assert_equal 1, machine.send_fd(one, reader)
      received = keep(machine.recv_fd(other)).first
      refute_equal reader, received
      machine.write(writer, "through")
      assert_equal "through", read_exactly(received, 7)
      assert_predicate IO.for_fd(received, autoclose: false), :close_on_exec?
    end
  end

  def test_it_waits_for_one
    on_machine do |machine|
      one, other = make_socketpair
      strand = waiting(/recvmsg/) { keep(machine.recv_fd(other)).first }
      machine.send_fd(one, $stdout)
      assert_operator strand.await, :>, 2
    end
  end

  def test_bytes_that_go_with_it
    on_machine do |machine|
      one, other = make_socketpair
      assert_equal 5, machine.send_fd(one, one, "bytes")
      keep(machine.recv_fd(other))
      assert_equal "ytes", read_exactly(other, 4)
    end
  end

  def test_the_end_of_the_stream
    on_machine do |machine|
      one, other = make_socketpair
      close(one)
      assert_nil machine.recv_fd(other)
      assert_raises(Errno::EPIPE) { machine.send_fd(other, 1) }
    end
  end

  def test_a_byte_without_a_descriptor
    on_machine do |machine|
      one, other = make_socketpair
      machine.send(one, "x")
      assert_match(/without a descriptor/, assert_raises(Ringspun::UsageError) { machine.recv_fd(other) }.message)
    end
  end

  def test_more_than_one_are_closed
    on_machine do |machine|
      one, other = make_socketpair
      before = Dir.children("/proc/self/fd").sort
      [2, 8, 20].each do |count|
        machine.sendmsg(one, "x", nil, 0, [[Socket::SOL_SOCKET, Socket::SCM_RIGHTS, ([0] * count).pack("i*")]])
        error = assert_raises(Ringspun::UsageError) { machine.recv_fd(other) }
        assert_match(/more than one/, error.message)
      end
      assert_equal before, Dir.children("/proc/self/fd").sort
    end
  end

  def test_no_number_is_free
    on_machine do |machine|
      one, other = make_socketpair
      machine.send_fd(one, 0)
      before = Process.getrlimit(:NOFILE)
      used = Dir.children("/proc/self/fd").map(&:to_i)
      filled = []
      begin
        Process.setrlimit(:NOFILE, used.max + 1, before.last)
        begin
          loop { filled << File.open(File::NULL) }
        rescue Errno::EMFILE
          nil
        end
        error = assert_raises(Ringspun::LimitError) { machine.recv_fd(other) }
        assert_match(/it is lost/, error.message)
      ensure
        Process.setrlimit(:NOFILE, *before)
        filled.each(&:close)
      end
    end
  end

  # Whichever of the two is first: it is received, or still there.
  def test_a_cancelled_one_loses_none
    on_machine do |machine|
      one, other = make_socketpair
      amount(50).times do |round|
        strand = waiting(/recvmsg/) { machine.recv_fd(other) }
        machine.send_fd(one, 0) if round.even?
        machine.terminate(strand)
        machine.send_fd(one, 0) if round.odd?
        received = error_of { strand.join } ? machine.recv_fd(other) : strand.await
        machine.close(received)
      end
    end
  end

  # Its number means something else when there is room at last.
  def test_what_is_sent_may_be_closed_while_it_waits
    on_machine do |machine|
      one, other = make_socketpair
      reader, writer = make_pipe
      sent = fill(one)
      strand = waiting(/sendmsg/) { machine.send_fd(one, reader) }
      close(reader)
      make_pipe
      received = spin { read_exactly(other, sent) && keep(machine.recv_fd(other)).first }
      strand.await
      machine.write(writer, "through")
      assert_equal "through", read_exactly(received.await, 7)
    end
  end

  def test_a_socket_that_carries_none
    on_machine do |machine|
      server, = keep(TCPServer.new("127.0.0.1", 0))
      client, = keep(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
      assert_match(/no Unix socket/, assert_raises(Ringspun::UsageError) { machine.send_fd(client, 0) }.message)
    end
  end

  def test_bad_input
    on_machine do |machine|
      one, = make_socketpair
      reader, = make_pipe
      assert_raises(Ringspun::UsageError) { machine.send_fd(one, 0, "") }
      assert_raises(Ringspun::UsageError) { machine.send_fd(one, "0") }
      assert_raises(Ringspun::UsageError) { machine.send_fd(one, 0, 1) }
      assert_raises(Ringspun::ClosedError) { machine.send_fd(one, 999_999) }
      assert_raises(Ringspun::ClosedError) { machine.recv_fd(999_999) }
      assert_raises(Errno::ENOTSOCK) { machine.recv_fd(reader) }
    end
  end
end

class SimulatedRightsTest < IOCase
  include Simulated

  def test_they_do_not_travel
    on_machine do |machine|
      one, other = make_socketpair
      assert_raises(Ringspun::UnsupportedError) { machine.send_fd(one, other) }
      assert_raises(Ringspun::UnsupportedError) { machine.recv_fd(other) }
    end
  end
end
