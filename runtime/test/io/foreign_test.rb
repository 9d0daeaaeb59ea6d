# frozen_string_literal: true

require_relative "io_case"
require "io/console"
require "pty"
require "tempfile"

# Descriptors that the machine did not make: Ruby's own IO objects, and such that block.
class ForeignTest < IOCase
  def test_ruby_s_pipes
    on_machine do
      assert_carries(*keep(*IO.pipe).reverse)
    end
  end

  def test_pipes_that_block
    on_machine do
      ends = keep(*IO.pipe).each { |io| io.nonblock = false }
      assert_carries(*ends.reverse)
      assert_equal [false, false], ends.map(&:nonblock?), "nobody has changed them"
    end
  end

  def test_sockets_that_block
    on_machine do
      ends = keep(*UNIXSocket.pair).each { |io| io.nonblock = false }
      assert_carries(*ends)
      assert_carries(*ends.reverse)
      assert_equal [false, false], ends.map(&:nonblock?)
    end
  end

  def test_the_numbers_of_ruby_s_objects
    on_machine do
      assert_carries(*keep(*IO.pipe).reverse.map(&:fileno))
      ends = keep(*Socket.pair(:UNIX, :STREAM)).each { |io| io.nonblock = false }
      assert_carries(*ends.map(&:fileno))
    end
  end

  def test_ruby_s_sockets_serve_and_connect
    on_machine do |machine|
      server, = keep(TCPServer.new("127.0.0.1", 0))
      [false, true].each do |nonblock|
        server.nonblock = nonblock
        acceptor = waiting(/accept/) { keep(machine.accept(server)).first }
        client, = keep(Socket.new(:INET, :STREAM))
        client.nonblock = nonblock
        machine.connect(client, server.local_address)
        peer = acceptor.await
        io = Socket.for_fd(peer).tap { |socket| socket.autoclose = false }
        assert_predicate io, :nonblock?, "what the machine makes does not block, whatever the listener does"
        assert_predicate io, :close_on_exec?
        bound(client, peer)
        assert_carries(client, peer, size: LARGE)
        assert_carries(peer, client, size: LARGE)
      end
    end
  end

  def test_fsync_writes_out_what_the_io_still_holds
    on_machine do |machine|
      Tempfile.create do |file|
        file.sync = false
        file.print("held")
        assert_equal 0, File.size(file.path)
        machine.fsync(file)
        assert_equal "held", File.read(file.path)
      end
    end
  end

  def test_a_blocking_socket_is_refused_as_well
    on_machine do |machine|
      client, = keep(Socket.new(:INET, :STREAM))
      client.nonblock = false
      address = TCPServer.open("127.0.0.1", 0, &:local_address)
      assert_raises(Errno::ECONNREFUSED) { machine.connect(client, address) }
    end
  end

  def test_a_blocking_socket_connects_to_a_path
    on_machine do |machine|
      address = Socket.sockaddr_un("\0ringspun-blocking-#{Process.pid}")
      server, client = keep(*Array.new(2) { Socket.new(:UNIX, :STREAM) })
      [server, client].each { |socket| socket.nonblock = false }
      machine.bind(server, address)
      machine.listen(server)
      machine.connect(client, address)
      peer, = keep(machine.accept(server))
      assert_carries(client, peer)
    end
  end

  def test_a_blocking_connect_given_up_lets_its_socket_be_closed
    on_machine do |machine|
      server, = keep(Socket.new(:INET, :STREAM))
      machine.bind(server, Addrinfo.tcp("127.0.0.1", 0))
      machine.listen(server, 0)
      clients = keep(*Array.new(4) { Socket.new(:INET, :STREAM) })
      clients.each { |client| client.nonblock = false }
      strands = clients.map { |client| spin { machine.connect(client, server.local_address) } }
      machine.sleep(0.01)
      hanging = strands.zip(clients).select { |strand, _| strand.alive? }
      refute_empty hanging
      hanging.each do |strand, client|
        machine.terminate(strand)
        assert_raises(Ringspun::TerminatedError) { strand.await }
        close(client)
      end
      assert_nothing_in_flight
    end
  end

  def test_anything_with_to_io
    on_machine do |machine|
      reader, writer = keep(*IO.pipe)
      wrapper = Struct.new(:to_io)
      machine.write(wrapper.new(writer), "through")
      string = +""
      machine.read(wrapper.new(reader), string)
      assert_equal "through", string
    end
  end

  def test_a_child_s_standard_descriptors
    on_machine do |machine|
      child, = keep(IO.popen(["cat"], "r+"))
      both = assert_raises(Ringspun::UsageError) { machine.poll(child, %i[readable writable]) }
      assert_match(/one of them at a time/, both.message)
      assert_equal IO::WRITABLE, machine.poll(child, :writable)
      bytes = sample(500_000)
      writing = spin do
        machine.write(child, bytes)
        child.close_write
      end
      assert_bytes bytes, read_to_end(child)
      writing.await
    end
  end

  # Standard input of a child whose parent gave it a pipe that blocks: the usual case.
  def test_standard_input_and_output
    code = <<~'RUBY'
      require "ringspun"
      Ringspun.run do |machine|
        reader = machine.running
        machine.spin do
          machine.yield until reader.waits_for == "read on descriptor 0"
          machine.write($stdout, "waiting\n")
        end
        line = +""
        count = machine.read($stdin, line)
        machine.write($stdout, "got #{line} #{count}\n")
        machine.write(1, "x" * 200_000)
        abort "no end" unless machine.read(0, line).zero?
        machine.write($stderr, "end")
      end
    RUBY
    input, output, errors = Array.new(3) { IO.pipe }
    [*input, *output, *errors].each { |io| io.nonblock = false }
    pid = Zygote.boot({ **ENV, "RUBYOPT" => nil }, "-e", code, in: input.first, out: output.last, err: errors.last)
    [input.first, output.last, errors.last].each(&:close)
    on_machine do |machine|
      assert_equal "waiting\n", read_exactly(output.first, 8)
      machine.write(input.last, "hello")
      assert_equal "got hello 5\n", read_exactly(output.first, 12)
      assert_equal "x" * 200_000, read_exactly(output.first, 200_000)
      machine.close(input.last)
      assert_equal "end", read_to_end(errors.first)
      assert_predicate machine.waitid(pid), :success?
    end
  ensure
    [*input, *output, *errors].each(&:close)
  end

  def test_a_terminal
    on_machine do |machine|
      master, slave = keep(*PTY.open)
      slave.raw!
      [true, false].each do |nonblock|
        [master, slave].each { |io| io.nonblock = nonblock }
        [[master, slave], [slave, master]].each do |from, to|
          strand = waiting(/read/) { read_exactly(to, 5) }
          machine.write(from, "line\n")
          assert_match(/\Aline\r?\n?/, strand.await)
          drain(master)
          drain(slave)
        end
      end
      strand = waiting(/read/) { machine.read(slave, +"") }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
    end
  end

  # A write that blocked would keep from running whoever could make room.
  def test_a_full_terminal
    on_machine do |machine|
      master, slave = keep(*PTY.open)
      [0, 1].each do |cooked|
        cooked.zero? ? slave.raw! : slave.cooked!
        text = "some text\n" * 20_000
        writing = waiting(/write/) { machine.write(slave, text) }
        read = read_exactly(master, text.bytesize + (cooked * 20_000))
        assert_equal text, read.delete("\r")
        assert_equal text.bytesize, writing.await
      end
      slave.raw!
      writing = waiting(/write/) { machine.write(master, "y" * 200_000) }
      assert_equal "y" * 200_000, read_exactly(slave, 200_000)
      assert_equal 200_000, writing.await
    end
  end

  def test_a_terminal_that_hangs_up
    on_machine do |machine|
      master, slave = keep(*PTY.open)
      strand = waiting(/read/) { machine.read(master, +"") }
      close(slave)
      assert_raises(Errno::EIO) { strand.await }
    end
  end

  def test_close_closes_ruby_s_object
    on_machine do |machine|
      reader, writer = IO.pipe
      strand = waiting(/read/) { machine.read(reader, +"") }
      assert_nil machine.close(reader)
      assert_predicate reader, :closed?
      assert_raises(Ringspun::ClosedError) { strand.await }
      machine.close(writer)
      error = assert_raises(Ringspun::ClosedError) { machine.close(writer) }
      assert_match(/IO.*is not open/, error.message)
    end
  end

  def test_close_of_a_child_s_object_waits_for_the_child_as_ruby_does
    on_machine do |machine|
      child = IO.popen(["true"])
      machine.close(child)
      assert_predicate Process.last_status, :success?
    end
  end

  def test_files_without_readiness_do_not_wait
    on_machine do |machine|
      File.open(__FILE__) do |io|
        assert_operator machine.poll(io, :readable) & IO::READABLE, :>, 0
        assert_equal "# frozen", read_exactly(io, 8)
        assert_operator read_exactly(io, 1_000_000).size, :>, 100
      end
    end
  end

  # Its own close, of which we hear nothing, leaves the number to the next.
  def test_what_is_left_of_a_write_never_goes_to_a_stranger
    on_machine do |machine|
      old, old_peer = UNIXSocket.pair
      keep(old_peer)
      strand = waiting(/write/) { machine.write(old, "x" * LARGE) }
      number = old.fileno
      old.close
      fresh, fresh_peer = keep(*UNIXSocket.pair)
      assert_equal number, fresh.fileno
      later = spin { machine.write(fresh, "y" * LARGE) }
      drainer = spin { read_to_end(old_peer) }
      assert_bytes "y" * LARGE, read_exactly(fresh_peer, LARGE)
      later.await
      assert_operator strand.await, :<, LARGE
      machine.terminate(drainer)
      error_of { drainer.join }
    end
  end

  def test_a_read_that_still_waits_takes_nothing_of_a_stranger
    on_machine do |machine|
      old, old_peer = UNIXSocket.pair
      keep(old_peer)
      strand = waiting(/read/) { machine.read(old, +"") }
      fresh, fresh_peer = keep(*put_in_place_of(old) { UNIXSocket.pair })
      later = waiting(/read/) { read_exactly(fresh, 3) }
      fresh_peer.write("abc")
      assert_equal "abc", later.await
      machine.terminate(strand)
      assert_includes [Ringspun::ClosedError, Ringspun::TerminatedError], error_of { strand.await }.class
    end
  end

  # Its peer writes when the number is somebody else's already.
  def test_what_only_waits_for_readiness_takes_nothing_of_a_stranger
    on_machine do |machine|
      old, old_peer = UNIXSocket.pair
      keep(old_peer, old.dup)
      old.nonblock = false
      strand = waiting(/read/) { machine.read(old, +"", 1) }
      fresh, fresh_peer = keep(*put_in_place_of(old) { UNIXSocket.pair })
      fresh_peer.write("abc")
      old_peer.write("xyz")
      assert_raises(Ringspun::ClosedError) { strand.await }
      assert_equal "abc", read_exactly(fresh, 3)
    end
  end

  private

  def put_in_place_of(old)
    number = old.fileno
    old.close
    yield.tap { |fresh,| assert_equal number, fresh.fileno }
  end

  # A pipe or a socket carries bytes in that direction, waits for them, and for room.
  def assert_carries(from, to, size: 400_000)
    strand = waiting(/read/) { read_exactly(to, 3) }
    @machine.write(from, "abc")
    assert_equal "abc", strand.await
    bytes = sample(size)
    strand = waiting(/write/) { @machine.write(from, bytes) }
    assert_bytes bytes, read_exactly(to, size)
    assert_equal size, strand.await
    strand = waiting(/writev/) { @machine.writev(from, ["", bytes, "end"]) }
    assert_bytes bytes + "end", read_exactly(to, size + 3)
    assert_equal size + 3, strand.await
    strand = waiting(/readv/) { @machine.readv(to, [+"12", IO::Buffer.new(3)]) }
    @machine.write(from, "vwxyz")
    assert_equal 5, strand.await
    assert_equal IO::WRITABLE, @machine.poll(from, :writable)
    strand = waiting(/poll/) { @machine.poll(to, :readable) }
    @machine.write(from, "!")
    assert_equal IO::READABLE, strand.await & IO::READABLE
    assert_equal "!", read_exactly(to, 1)
    assert_nothing_in_flight
  end

  def drain(io)
    string = +""
    loop { @machine.timeout(0.001) { @machine.read(io, string) } }
  rescue Ringspun::TimeoutError
    nil
  end
end
