# frozen_string_literal: true

require_relative "io_case"

# A strand whose ops all succeed at once gives way before one of them now and then. What the others change then is no matter of
# that op: it is on the descriptor, and sends the bytes, that it was called with. (On a simulated machine every op waits.)
class TurnTest < IOCase
  # What succeeds at once on one end of a pair, as long as the other has sent enough.
  OPS = {
    read: ->(machine, end_) { machine.read(end_, +"", 1) },
    readv: ->(machine, end_) { machine.readv(end_, [+"x"]) },
    recv: ->(machine, end_) { machine.recv(end_, +"", 1) },
    recvmsg: ->(machine, end_) { machine.recvmsg(end_, +"", 1) },
    write: ->(machine, end_) { machine.write(end_, "x") },
    writev: ->(machine, end_) { machine.writev(end_, %w[x y]) },
    send: ->(machine, end_) { machine.send(end_, "x") },
    sendmsg: ->(machine, end_) { machine.sendmsg(end_, "x") },
    poll: ->(machine, end_) { machine.poll(end_, :readable) },
    poll_writable: ->(machine, end_) { machine.poll(end_, :writable) },
    shutdown: ->(machine, end_) { machine.shutdown(end_, :RD) },
    setsockopt: ->(machine, end_) { machine.setsockopt(end_, Socket::SOL_SOCKET, Socket::SO_SNDBUF, 50_000) },
    getsockopt: ->(machine, end_) { machine.getsockopt(end_, Socket::SOL_SOCKET, Socket::SO_SNDBUF) }
  }.freeze

  def before_setup
    super
    try_first
  end

  OPS.each do |name, op|
    define_method("test_#{name}_leaves_alone_a_stranger_that_got_the_number") do
      on_machine do |machine|
        one, other = make_socketpair
        machine.write(other, "a" * 1000)
        strand = giving_way { op.call(machine, one) }
        close(one)
        assert_leaves_stranger_alone(strand, one)
      end
    end
  end

  def test_accept_takes_no_connection_of_a_stranger
    on_machine do |machine|
      listener, address = make_listener("one")
      amount(100).times { machine.connect(make_socket(:UNIX, :STREAM), address) }
      strand = giving_way { keep(machine.accept(listener)) }
      close(listener)
      stranger, address = make_listener("two")
      assert_equal listener, stranger, "the number is in use again"
      machine.connect(make_socket(:UNIX, :STREAM), address)
      assert_raises(Ringspun::ClosedError) { strand.await }
      keep(machine.accept(stranger))
    end
  end

  def test_accept_each_takes_no_connection_of_a_stranger
    on_machine do |machine|
      listener, address = make_listener("one")
      amount(100).times { machine.connect(make_socket(:UNIX, :STREAM), address) }
      strand = giving_way { machine.accept_each(listener, ahead: 0) { |connection| break keep(connection) } }
      close(listener)
      stranger, address = make_listener("two")
      machine.connect(make_socket(:UNIX, :STREAM), address)
      assert_raises(Ringspun::ClosedError) { strand.await }
      keep(machine.accept(stranger))
    end
  end

  # One that is told so again and again never waits, and must still notice.
  def test_a_closed_descriptor_that_is_used_again_and_again_keeps_nobody_from_running
    on_machine do
      one, = make_socketpair
      close(one)
      assert_notices_a_termination(one)
    end
  end

  # Whoever runs further ahead of a reader writes over what the reader has in the processor's cache.
  def test_a_turn_ends_by_bytes
    on_machine do |machine|
      writer, reader = make_socketpair
      machine.setsockopt(writer, Socket::SOL_SOCKET, Socket::SO_SNDBUF, 400_000)
      sent = received = most = 0
      buffer = +""
      writing = machine.spin do
        100.times do
          machine.send(writer, "x" * 16_384).then { |bytes| sent += bytes }
          most = [most, sent - received].max
        end
      end
      while writing.alive? || received < sent
        # Who waits would be woken by a look at the kernel, which is not at every turn.
        received < sent ? machine.recv(reader, buffer, 16_384).then { |bytes| received += bytes } : machine.yield
      end
      assert_includes 16_384..(2 * 65_536), most
    end
  end

  # --- sources ---

  # What sends all of a source, and how a String becomes one.
  WRITES = {
    write: ->(machine, end_, source) { machine.write(end_, source) },
    writev: ->(machine, end_, source) { machine.writev(end_, [source, source]) },
    send: ->(machine, end_, source) { machine.send(end_, source) },
    sendmsg: ->(machine, end_, source) { machine.sendmsg(end_, source) }
  }.freeze

  # Short enough to live inside its object, and too long for that.
  SOURCES = ["old " * 2, "old " * 200].freeze

  CHANGES = {
    replace: ->(string) { string.replace("new!" * 200) },
    store: ->(string) { string[0, 4] = "new!" },
    setbyte: ->(string) { string.setbyte(0, 1) },
    grow: ->(string) { string.prepend("new!" * 300) },
    clear: ->(string) { string.clear }
  }.freeze

  WRITES.each do |name, write|
    define_method("test_#{name}_sends_what_the_string_was") do
      on_machine do |machine|
        SOURCES.product(CHANGES.values) do |bytes, change|
          one, other = make_socketpair
          source = +""
          strand = giving_way { write.call(machine, one, source.replace(bytes)) }
          change.call(source)
          GC.start
          strand.await
          assert_only bytes, one, other
        end
      end
    end

    define_method("test_#{name}_sends_what_the_slice_was") do
      on_machine do |machine|
        one, other = make_socketpair
        buffer = IO::Buffer.new(100)
        buffer.set_string("old " * 25)
        strand = giving_way { write.call(machine, one, buffer.slice(8, 8)) }
        buffer.free
        strand.await
        assert_only "old old ", one, other
      end
    end

    # It goes out as it is when the kernel takes it, and from where it lies then.
    define_method("test_#{name}_of_an_io_buffer_that_moves") do
      on_machine do |machine|
        one, other = make_socketpair
        buffer = IO::Buffer.new(8)
        buffer.set_string("old old ")
        strand = giving_way { write.call(machine, one, buffer) }
        buffer.resize(100_000)
        buffer.set_string("new new ")
        buffer.resize(8)
        strand.await
        machine.shutdown(one, :WR)
        assert_operator read_to_end(other), :end_with?, "old new new "[-8..] * (name == :writev ? 2 : 1)
      end
    end

    define_method("test_#{name}_of_an_io_buffer_that_is_freed") do
      on_machine do |machine|
        one, other = make_socketpair
        buffer = IO::Buffer.new(8)
        buffer.set_string("old old ")
        strand = giving_way { write.call(machine, one, buffer) }
        buffer.free
        assert_raises(Ringspun::UsageError) { strand.await }
        assert_only "old old ", one, other
      end
    end
  end

  def test_writev_sends_the_strings_that_were_in_the_array
    on_machine do |machine|
      one, other = make_socketpair
      list = %w[ol d]
      strand = giving_way { machine.writev(one, list) }
      list.replace(["new"])
      strand.await
      assert_only "old", one, other
    end
  end

  # --- targets ---

  # A read takes the buffer as it is when the others have run.
  def test_a_buffer_that_moves_before_a_read
    on_machine do |machine|
      %i[read recv recvmsg].each do |name|
        one, other = make_socketpair
        machine.write(other, "a" * 1000)
        string = +"start"
        buffer = IO::Buffer.new(10)
        reading = giving_way { machine.__send__(name, one, string, 1) }
        string.replace("b" * 5000)
        reading.await
        assert_equal "a", string
        filling = giving_way { machine.__send__(name, one, buffer, 1) }
        buffer.resize(1_000_000)
        filling.await
        assert_equal "a", buffer.get_string(0, 1)
      end
    end
  end

  def test_an_io_that_is_closed_by_others
    on_machine do |machine|
      [->(io) { machine.close(io) }, ->(io) { io.close }].each do |close|
        { read: +"", recv: +"", write: "x", send: "x", poll: :readable }.each do |name, argument|
          one, other = keep(*UNIXSocket.pair)
          number = one.fileno
          machine.write(other, "a" * 1000)
          length = [1] if argument == ""
          strand = giving_way { machine.__send__(name, one, argument, *length) }
          close.call(one)
          assert_leaves_stranger_alone(strand, number)
        end
      end
    end
  end

  def test_an_object_of_two_descriptors_whose_writing_end_is_closed
    on_machine do |machine|
      io = keep(IO.popen(%w[cat], "r+")).first
      strand = giving_way { machine.write(io, "x") }
      io.close_write
      keep(File.open(File::NULL, "w"))
      assert_raises(Ringspun::ClosedError, Ringspun::UsageError) { strand.await }
    end
  end

  def test_an_io_that_stays_open_goes_on
    on_machine do |machine|
      one, other = keep(*UNIXSocket.pair)
      wrapped = Struct.new(:to_io).new(one)
      machine.write(other, "a" * 1000)
      [one, wrapped].each { |io| assert_equal 1, giving_way { machine.read(io, +"", 1) }.await }
    end
  end

  def test_an_io_that_was_closed_long_ago_keeps_nobody_from_running
    on_machine do
      one, = keep(*IO.pipe)
      one.close
      assert_notices_a_termination(one)
    end
  end

  # --- files, paths, addresses and options ---

  def test_files
    in_folder do |folder|
      files = %w[mine stranger].map { |each| File.join(folder, each).tap { |path| File.write(path, "abc") } }
      { pread: [+"", 0, 1], pwrite: ["x", 0], statx: [] }.each do |name, arguments|
        file = keep(@machine.open(files[0], "r+")).first
        strand = giving_way { @machine.__send__(name, file, *arguments) }
        close(file)
        stranger = keep(@machine.open(files[1], "r+")).first
        assert_equal file, stranger, "the number is in use again"
        assert_raises(Ringspun::ClosedError, name.to_s) { strand.await }
        assert_equal "abc", File.read(files[1])
        close(stranger)
      end
    end
  end

  def test_pwrite_sends_what_the_string_was
    in_folder do |folder|
      path = File.join(folder, "file")
      file = keep(@machine.open(path, "w+")).first
      source = +"old"
      strand = giving_way { @machine.pwrite(file, source, 0) }
      source.replace("new!")
      strand.await
      assert_equal "old", File.read(path)
    end
  end

  def test_a_path_that_changes
    in_folder do |folder|
      old, new = %w[old newer].map { |name| File.join(folder, name).tap { |path| File.write(path, name) } }
      path = +""
      opening = giving_way { keep(@machine.open(path.replace(old))).first }
      path.replace(new)
      assert_equal 3, @machine.statx(opening.await)[:size]
      asking = giving_way { @machine.statx(path.replace(old))[:size] }
      path.replace(new)
      assert_equal 3, asking.await
    end
  end

  def test_an_address_that_changes
    on_machine do |machine|
      (old, there), (new, elsewhere) = Array.new(2) { make_receiver }
      socket, address = make_socket(:INET, :DGRAM), +""
      [-> { machine.sendmsg(socket, "x", address) }, -> { machine.connect(socket, address) }].each do |op|
        strand = giving_way { address.replace(there).then { op.call } }
        address.replace(elsewhere)
        strand.await
      end
      machine.send(socket, "connected")
      assert_raises(Errno::EAGAIN) { machine.recv(new, +"", 100, Socket::MSG_DONTWAIT) }
      bytes = +""
      nil until machine.recv(old, bytes) && bytes == "connected"
    end
  end

  # As a name does that is looked up.
  def test_an_address_that_takes_its_time
    on_machine do |machine|
      { connect: [], bind: [], sendmsg: ["x"] }.each do |name, arguments|
        socket, path = make_socket(:UNIX, :DGRAM), Socket.sockaddr_un("\0ringspun-turn-#{name}-#{Process.pid}")
        machine.bind(make_socket(:UNIX, :DGRAM), path) unless name == :bind
        address = Object.new
        address.define_singleton_method(:to_sockaddr) { machine.sleep(0).then { path } }
        strand = spin { machine.__send__(name, socket, *arguments, address) }
        machine.yield
        close(socket)
        assert_equal socket, make_socket(:UNIX, :DGRAM), "the number is in use again"
        assert_raises(Ringspun::ClosedError, name.to_s) { strand.await }
      end
    end
  end

  def test_an_option_that_changes
    on_machine do |machine|
      socket = make_socket(:INET, :STREAM)
      option = [Socket::SOL_SOCKET, Socket::SO_KEEPALIVE]
      value = +""
      strand = giving_way { machine.setsockopt(socket, *option, value.replace([0].pack("i"))) }
      value.replace([1].pack("i"))
      strand.await
      assert_equal 0, machine.getsockopt(socket, *option)
    end
  end

  private

  # The strand was about to use that number, which was closed and is given out again.
  def assert_leaves_stranger_alone(strand, number)
    stranger, peer = make_socketpair
    assert_equal number, stranger, "the number is in use again"
    @machine.write(peer, "STRANGER")
    assert_raises(Ringspun::ClosedError) { strand.await }
    assert_equal "STRANGER", read_exactly(stranger, 8)
    close(stranger)
    assert_empty read_to_end(peer)
  end

  # A strand that repeats what succeeds at once until it has to give way in a call of that, which is its last; by then it has.
  def giving_way(again: false)
    inside = caught = false
    started = @machine.metrics[:ops_started]
    strand = spin do
      result = nil
      until caught && !again
        inside = true
        result = yield
        inside = false
      end
      result
    end
    @machine.yield until inside || !strand.alive?
    assert_equal [:ready, started], [strand.state, @machine.metrics[:ops_started]], "it does not give way, but waits or has ended"
    caught = true
    strand
  end

  def make_listener(name)
    address = Socket.sockaddr_un("\0ringspun-turn-#{name}-#{Process.pid}")
    listener = make_socket(:UNIX, :STREAM)
    @machine.bind(listener, address)
    @machine.listen(listener)
    [listener, address]
  end

  def assert_notices_a_termination(closed)
    strand = giving_way(again: true) do
      @machine.read(closed, +"")
    rescue Ringspun::ClosedError
      nil
    end
    @machine.terminate(strand)
    assert_instance_of Ringspun::TerminatedError, error_of { strand.await }
  end

  # Nothing else came from the one to the other, and that many times.
  def assert_only(bytes, one, other)
    close(one)
    all = read_to_end(other)
    refute_empty all
    assert_equal 0, all.bytesize % bytes.bytesize
    assert_bytes bytes * (all.bytesize / bytes.bytesize), all
  end

  def in_folder
    Dir.mktmpdir { |folder| on_machine { yield folder } }
  end

  # With its address.
  def make_receiver
    socket = make_socket(:INET, :DGRAM)
    @machine.bind(socket, Addrinfo.udp("127.0.0.1", 0))
    [socket, Socket.for_fd(socket).tap { |io| io.autoclose = false }.getsockname]
  end
end
