# frozen_string_literal: true

require_relative "io_case"

# Ringspun.datagram: UDP and Unix sockets of messages.
class DatagramTest < IOCase
  def test_there_and_back
    on_datagrams do |one, other|
      assert_equal 5, other.send("hello", one.address)
      bytes, from = one.recv
      assert_equal ["hello", Encoding::BINARY], [bytes, bytes.encoding]
      assert_equal other.address.ip_unpack, from.ip_unpack
      one.send("back", from)
      assert_equal "back", other.recv.first
    end
  end

  def test_it_waits_for_one
    on_datagrams do |one, other|
      strands = Array.new(3) { waiting(/recvmsg/) { one.recv.first } }
      %w[a b c].each { |text| other.send(text, "127.0.0.1", one.port) }
      assert_equal %w[a b c], await_all(strands).sort
    end
  end

  def test_an_empty_one_and_the_longest
    on_datagrams do |one, other|
      ["", sample(60_000), "x"].each { |bytes| other.send(bytes, one.address) }
      assert_equal ["", 60_000, "x"], [one.recv.first, one.recv.first.size, one.recv.first]
      assert_raises(Errno::EMSGSIZE) { other.send("x" * 70_000, one.address) }
    end
  end

  def test_a_name_is_looked_up
    on_datagrams do |one, other|
      other.send("x", "localhost", one.port)
      assert_equal "x", one.recv.first
      assert_raises(SocketError) { other.send("x", "name.invalid", 1) }
      assert_raises(Ringspun::UsageError) { other.send("x", "127.0.0.1") }
    end
  end

  def test_connected
    on_datagrams do |one, other|
      connected = datagram(connect: ["127.0.0.1", one.port])
      other.send("not heard", connected.address)
      connected.send("x")
      _, from = one.recv
      one.send("y", from)
      assert_equal "y", connected.recv.first
      assert_raises(Errno::EDESTADDRREQ) { other.send("nowhere") }
    end
  end

  def test_nobody_is_there
    on_datagrams do |one, _|
      connected = datagram(connect: one.address)
      one.close
      connected.send("x")
      assert_raises(Errno::ECONNREFUSED) { connected.recv }
      strand = waiting(/recvmsg/) { connected.recv }
      connected.send("x")
      assert_raises(Errno::ECONNREFUSED) { strand.await }
    end
  end

  def test_one_that_is_too_long_is_told
    on_datagrams do |one, other|
      other.send("0123456789", one.address)
      error = assert_raises(Ringspun::LimitError) { one.recv(4) }
      assert_match(/of 10 bytes is longer than 4/, error.message)
      strand = waiting(/recvmsg/) { one.recv(4) }
      other.send("01234", one.address)
      assert_raises(Ringspun::LimitError) { strand.await }
      other.send("0123", one.address)
      assert_equal "0123", one.recv(4).first
    end
  end

  def test_times
    on_datagrams do |one, other|
      error = assert_raises(Ringspun::TimeoutError) { one.recv(timeout: 0.01) }
      assert_match(/no datagram within 0.01 s/, error.message)
      one.timeout = 0.01
      assert_raises(Ringspun::TimeoutError) { one.recv }
      other.send("later", one.address)
      assert_equal "later", one.recv(timeout: 0).first
      [Float::NAN, "1"].each { |seconds| assert_raises(Ringspun::UsageError) { one.timeout = seconds } }
    end
  end

  def test_one_after_the_other
    on_datagrams do |one, other|
      3.times { |number| other.send(number.to_s, one.address) }
      seen = []
      one.each do |bytes, from|
        seen << [bytes, from.ip_port]
        one.close if seen.size == 3
      end
      assert_equal %w[0 1 2].map { |bytes| [bytes, other.port] }, seen
      other.send("x", other.address)
      assert_equal "x", other.each.first.first
    end
  end

  def test_where_an_io_is_wanted
    on_datagrams do |one, other|
      io = one.to_io
      assert_same io, one.to_io
      refute_predicate io, :autoclose?
      strand = waiting { IO.select([one], nil, nil, 60) }
      other.send("hello", one.address)
      assert_equal [[one], [], []], strand.await
      assert_equal 5, @machine.recv(one, +"")
      io.close
      refute_predicate one.to_io, :closed?
      shown = one.to_io
      one.close
      assert_predicate shown, :closed?
      assert_raises(Ringspun::UsageError) { one.to_io }
    end
  end

  def test_closed_meanwhile
    on_datagrams do |one, _|
      strand = waiting(/recvmsg/) { one.recv }
      one.close
      assert_raises(Ringspun::ClosedError) { strand.await }
      [-> { one.recv }, -> { one.send("x") }, -> { one.port }].each { |call| assert_raises(Ringspun::ClosedError, &call) }
      assert_nil one.close
      assert_match(/closed/, one.inspect)
    end
  end

  def test_a_cancelled_one_has_taken_nothing
    on_datagrams do |one, other|
      amount(30).times do |round|
        strand = waiting(/recvmsg/) { one.recv.first }
        other.send(round.to_s, one.address)
        @machine.terminate(strand)
        assert_equal round.to_s, error_of { strand.join } ? one.recv.first : strand.await
      end
    end
  end

  def test_options
    on_datagrams do |one, _|
      assert_raises(Errno::EADDRINUSE) { datagram("127.0.0.1", one.port) }
      shared = datagram("127.0.0.1", reuse_port: true)
      assert_equal shared.port, datagram("127.0.0.1", shared.port, reuse_port: true).port
      assert_raises(Errno::EACCES) { one.send("x", "127.255.255.255", 9) }
      wide = datagram("127.0.0.1", broadcast: true)
      assert_equal 1, @machine.getsockopt(wide.to_io, Socket::SOL_SOCKET, Socket::SO_BROADCAST)
    end
  end

  def test_with_a_block
    on_machine do
      assert_operator Ringspun.datagram("127.0.0.1", &:port), :>, 0
      assert_raises(Ringspun::UsageError) { Ringspun.datagram }
      [["127.0.0.1"], "127.0.0.1", 5].each { |peer| assert_raises(Ringspun::UsageError) { Ringspun.datagram(connect: peer) } }
    end
  end

  def test_a_child_that_closes_it_leaves_the_file_to_its_parent
    on_machine do
      Dir.mktmpdir do |folder|
        Ringspun.datagram_unix(path = File.join(folder, "socket")) do |socket|
          _, status = Process.wait2(fork { socket.close && exit!(1) or exit!(0) })
          assert_predicate status, :success?
          assert_path_exists path
        end
        refute_path_exists path
      end
    end
  end

  def test_unix
    on_machine do
      Dir.mktmpdir do |folder|
        path = File.join(folder, "socket")
        Ringspun.datagram_unix(path) do |one|
          assert_raises(Errno::EADDRINUSE) { Ringspun.datagram_unix(path) }
          Ringspun.datagram_unix("#{path}-2", connect: path) do |other|
            other.send("x" * 100_000)
            bytes, from = one.recv(200_000)
            assert_equal [100_000, "#{path}-2"], [bytes.size, from.unix_path]
            one.send("back", "#{path}-2")
            assert_equal "back", other.recv.first
          end
          Ringspun.datagram_unix(connect: path) { |nameless| nameless.send("y") }
          assert_equal ["y", nil], one.recv
          Ringspun.datagram_unix(connect: Pathname(path)) { |nameless| nameless.send("z", Pathname(path)) }
          assert_equal "z", one.recv.first
        end
        assert_empty Dir.children(folder)
        assert_raises(Errno::ENOENT) { Ringspun.datagram_unix(connect: path) }
      end
    end
  end

  def test_paths_and_addresses_that_are_none
    on_machine do
      Ringspun.datagram_unix("\0ringspun-#{Process.pid}") do |abstract|
        [5, "a" * 200].each do |path|
          [-> { Ringspun.datagram_unix(path) }, -> { Ringspun.datagram_unix(connect: path) },
           -> { abstract.send("x", path) }].each do |call|
            assert_match(/path of a Unix socket/, assert_raises(Ringspun::UsageError, &call).message)
          end
        end
      end
      assert_match(/a port \(Integer/, assert_raises(Ringspun::UsageError) { Ringspun.datagram("127.0.0.1", :none) }.message)
    end
  end

  private

  def on_datagrams
    on_machine do
      @datagrams = []
      yield datagram("127.0.0.1"), datagram("127.0.0.1")
    ensure
      @datagrams.each(&:close)
    end
  end

  def datagram(...) = Ringspun.datagram(...).tap { |socket| @datagrams << socket }
end

class SimulatedDatagramTest < IOCase
  include Simulated

  def test_there_are_none
    on_machine(faults: false) { assert_raises(Errno::EPROTONOSUPPORT) { Ringspun.datagram_unix(connect: "nobody") } }
  end
end
