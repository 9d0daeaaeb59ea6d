# frozen_string_literal: true

require_relative "io_case"

# What a caller can get wrong. The class says what kind of mistake it is, the message what would be right, and nothing of
# it comes from below as it is: a TypeError or RangeError tells nobody which argument it was about.
module BadInputTests
  def test_the_wrong_direction
    on_machine do |machine|
      reader, writer = make_pipe
      file, = keep(machine.open(some_path, "w"))
      [[-> { machine.read(writer, +"") }, /read: descriptor #{writer} is open for writing only/],
       [-> { machine.write(reader, "x") }, /write: descriptor #{reader} is open for reading only/],
       [-> { machine.readv(writer, [+"x"]) }, /readv: descriptor #{writer} is open for writing only/],
       [-> { machine.writev(reader, ["x"]) }, /writev: descriptor #{reader} is open for reading only/],
       [-> { machine.pread(file, +"", 0) }, /pread: descriptor #{file} is open for writing only/]].each do |call, message|
        assert_match(message, assert_raises(Ringspun::UsageError, &call).message)
      end
    end
  end

  def test_what_is_no_descriptor
    on_machine do |machine|
      [nil, :stdin, "1", 1.5, Object.new, [], BasicObject.new].each do |wrong|
        each_call_on(wrong) do |name, call|
          error = assert_raises(Ringspun::UsageError, name.to_s, &call)
          assert_match(/expected a descriptor: an Integer or an IO, got/, error.message)
        end
      end
      assert_nothing_in_flight
      assert_equal machine, @machine
    end
  end

  def test_a_negative_descriptor
    on_machine do
      each_call_on(-1) do |name, call|
        error = assert_raises(Ringspun::UsageError, name.to_s, &call)
        assert_match(/descriptor must not be negative, got -1/, error.message)
      end
    end
  end

  def test_a_descriptor_that_never_was
    on_machine do
      [60_000, 2**30, 2**31 - 1].each do |number|
        each_call_on(number) do |name, call|
          error = assert_raises(Ringspun::ClosedError, "#{name} of #{number}", &call)
          assert_match(/descriptor #{number} is not open/, error.message)
        end
      end
      [2**31, 2**64, 10**400].each do |number|
        each_call_on(number) { |name, call| assert_raises(Ringspun::UsageError, name.to_s, &call) }
      end
    end
  end

  def test_an_io_that_is_closed
    on_machine do
      io = IO.pipe.each(&:close).first
      each_call_on(io) do |name, call|
        error = assert_raises(Ringspun::ClosedError, name.to_s, &call)
        assert_match(/#<IO:\(closed\)> is not open/, error.message)
      end
    end
  end

  def test_a_to_io_that_gives_something_else
    on_machine do
      each_call_on(Struct.new(:to_io).new("not an IO")) { |name, call| assert_raises(Ringspun::UsageError, name.to_s, &call) }
    end
  end

  def test_lengths_and_offsets
    on_machine do |machine|
      reader, writer = make_pipe
      file, = keep(machine.open(some_path, "w+"))
      [[-1, /length must not be negative, got -1/], ["5", /length must be an Integer, got "5"/],
       [1.0, /must be an Integer, got 1.0/], [2**31, /length must lie between 0 and \d+, got 2147483648/],
       [2**63, /length must lie/], [2**80, /more than 64 bits/], [-2**80, /must not be negative/],
       [:all, /must be an Integer, got :all/]].each do |length, message|
        [-> { machine.read(reader, +"", length) }, -> { machine.pread(file, +"", 0, length) },
         -> { machine.recv(reader, +"", length) }, -> { machine.recvmsg(reader, +"", length) }].each do |call|
          assert_match(message, assert_raises(Ringspun::UsageError, &call).message)
        end
      end
      [[-1, /offset must not be negative/], [4, /offset 4 lies behind the end of the String \(3 bytes\)/],
       ["0", /offset must be an Integer/], [2**70, /offset/]].each do |offset, message|
        string = +"abc"
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.read(reader, string, 1, offset) }.message)
        assert_equal "abc", string
      end
      [nil, -1, "0", 1.5, 2**63, 2**100].each do |place|
        [-> { machine.pread(file, +"", place) }, -> { machine.pwrite(file, "x", place) }].each do |call|
          assert_match(/file offset must/, assert_raises(Ringspun::UsageError, &call).message)
        end
      end
      machine.write(writer, "still there")
      assert_equal "still there", read_exactly(reader, 11)
    end
  end

  def test_what_cannot_be_read_into
    on_machine do |machine|
      reader, writer = make_pipe
      one, other = make_socketpair
      machine.write(writer, "kept")
      machine.write(other, "kept")
      freed = IO::Buffer.new(10).tap(&:free)
      [["frozen", /String is frozen/], [nil, /expected a String or an IO::Buffer to read into, got NilClass/],
       [:symbol, /got Symbol/], [[], /got Array/], [5, /got Integer/], [freed, /this IO::Buffer cannot be used here/],
       [IO::Buffer.new(0), /this IO::Buffer cannot be used here/],
       [IO::Buffer.for("read only"), /this IO::Buffer cannot be used here/]].each do |wrong, message|
        [-> { machine.read(reader, wrong) }, -> { machine.recv(one, wrong) }, -> { machine.recvmsg(one, wrong) },
         -> { machine.pread(reader, wrong, 0) }].each do |call|
          assert_match(message, assert_raises(Ringspun::UsageError, wrong.inspect, &call).message)
        end
        assert_raises(Ringspun::UsageError) { machine.readv(reader, [+"ok", wrong]) }
      end
      assert_equal %w[kept kept], [read_exactly(reader, 4), read_exactly(one, 4)]
    end
  end

  def test_an_io_buffer_too_small
    on_machine do |machine|
      reader, = make_pipe
      buffer = IO::Buffer.new(8)
      [[[9], /buffer too small: 9 bytes wanted at offset 0, but it holds 8; make it larger or ask for less/],
       [[5, 4], /5 bytes wanted at offset 4/], [[0, 9], /offset 9, but it holds 8/], [[2**62], /buffer too small/],
       [[2**70], /more than 64 bits/], [[nil, 9], /offset 9/]].each do |arguments, message|
        error = assert_raises(Ringspun::UsageError) { machine.read(reader, buffer, *arguments) }
        assert_match(message, error.message)
      end
    end
  end

  def test_what_cannot_be_written
    on_machine do |machine|
      _, writer = make_pipe
      _, other = make_socketpair
      file, = keep(machine.open(some_path, "w+"))
      freed = IO::Buffer.new(10).tap(&:free)
      [[nil, /expected a String or an IO::Buffer to write, got NilClass/], [:symbol, /got Symbol/], [7, /got Integer/],
       [["list"], /got Array/], [freed, /this IO::Buffer cannot be used here/]].each do |wrong, message|
        [-> { machine.write(writer, wrong) }, -> { machine.pwrite(file, wrong, 0) }, -> { machine.send(other, wrong) },
         -> { machine.sendmsg(other, wrong) }].each do |call|
          assert_match(message, assert_raises(Ringspun::UsageError, wrong.inspect, &call).message)
        end
      end
      [nil, [], "string", :symbol, 5, [nil], [+"ok", 5], [[]]].each do |wrong|
        [:readv, :writev].each do |method|
          error = assert_raises(Ringspun::UsageError) { machine.__send__(method, writer, wrong) }
          assert_match(/expected/, error.message)
        end
      end
      assert_equal 0, machine.statx(file)[:size]
    end
  end

  def test_events
    on_machine do |machine|
      reader, = make_pipe
      [[:ready, /unknown event :ready; use :readable, :writable or :priority/], [[], /no event/], [nil, /no event/],
       [[:readable, "writable"], /unknown event "writable"/], [0, /no mask of events/], [1 << 30, /no mask of events/],
       [0x8000_0001, /no mask/], [-1, /must not be negative/], [2**40, /mask must lie/], [1.5, /unknown event 1.5/]]
        .each do |wrong, message|
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.poll(reader, wrong) }.message)
      end
    end
  end

  def test_families_types_and_addresses
    on_machine do |machine|
      [[%i[FAX STREAM], /unknown socket family :FAX; use an Integer or one of :UNIX :INET :INET6/],
       [%i[INET CARRIER], /unknown socket type :CARRIER; use an Integer or one of :STREAM :DGRAM :SEQPACKET/],
       [[nil, :STREAM], /unknown socket family nil/], [["INET\0", 1], /unknown socket family/],
       [[-1, 1], /family must not be negative/], [[2**40, 1], /family must lie/], [[:INET, 1.0], /unknown socket type 1.0/],
       [[:INET, :STREAM, nil], /protocol must be an Integer/], [[:INET, :STREAM, -1], /protocol must not be/]]
        .each do |arguments, message|
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.socket(*arguments) }.message)
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.socketpair(*arguments) }.message)
      end
      socket = make_socket(:INET, :STREAM)
      [[nil, /expected an Addrinfo or a packed address/], ["", /not a packed address: 0 bytes/], ["x", /1 bytes/],
       ["127.0.0.1:80", /not a packed address: "127.0.0.1:80"/],
       ["x" * 500, /not a packed address: 500 bytes; use Socket.sockaddr_in/], [["127.0.0.1", 80], /expected an Addrinfo/],
       [Struct.new(:to_sockaddr).new(5), /to_sockaddr must give a String/]].each do |wrong, message|
        [-> { machine.connect(socket, wrong) }, -> { machine.bind(socket, wrong) },
         *(-> { machine.sendmsg(socket, "x", wrong) } unless wrong.nil?)].each do |call|
          assert_match(message, assert_raises(Ringspun::UsageError, wrong.inspect, &call).message)
        end
      end
    end
  end

  def test_backlogs_directions_and_options
    on_machine do |machine|
      one, = make_socketpair
      [[-1, /backlog must not be negative/], ["1", /backlog must be an Integer/], [nil, /backlog/], [2**40, /backlog/]]
        .each do |wrong, message|
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.listen(one, wrong) }.message)
      end
      [[:UP, /unknown direction :UP; use an Integer or one of :RD :WR :RDWR/], [nil, /unknown direction nil/],
       [-1, /direction must not be/]].each do |wrong, message|
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.shutdown(one, wrong) }.message)
      end
      [[[nil, 1, 1], /level must be an Integer/], [[1, :REUSEADDR, 1], /option must be an Integer/],
       [[1, 1, nil], /socket option is an Integer, true, false or a packed String, got nil/], [[1, 1, 1.5], /got 1.5/],
       [[1, 1, 2**40], /socket option must lie/], [[-1, 1, 1], /level must not/]].each do |arguments, message|
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.setsockopt(one, *arguments) }.message)
      end
      assert_raises(Ringspun::UsageError) { machine.getsockopt(one, "SOCKET", 1) }
      assert_raises(Ringspun::UsageError) { machine.getsockopt(one, 1, nil) }
      [[-> { machine.recv(one, +"", 1, "flags") }, /flags must be an Integer/],
       [-> { machine.recvmsg(one, +"", 1, -1) }, /flags must not be negative/],
       [-> { machine.send(one, "x", 1.0) }, /flags must be/], [-> { machine.sendmsg(one, "x", nil, nil) }, /flags must be/],
       [-> { machine.sendmsg(one, "x", nil, 0, "x") }, /control messages: expected an Array or nil/],
       [-> { machine.sendmsg(one, "x", nil, 0, [[1, 1]]) }, /a control message is \[level, type, bytes\]/],
       [-> { machine.sendmsg(one, "x", nil, 0, [5]) }, /a control message is/],
       [-> { machine.sendmsg(one, "x", nil, 0, [["1", 1, "x"]]) }, /level must be an Integer/],
       [-> { machine.sendmsg(one, "x", nil, 0, [[1, 1, "x" * 1100]]) }, /may take 1024 bytes/],
       [-> { machine.sendmsg(one, "x", nil, 0, [[1, 1, "x" * 100]] * 20) }, /may take 1024 bytes/]].each do |call, message|
        assert_match(message, assert_raises(Ringspun::UsageError, &call).message)
      end
    end
  end

  def test_paths_and_modes
    on_machine do |machine|
      [nil, 5, :path, Object.new, "with\0zero"].each do |wrong|
        error = assert_raises(Ringspun::UsageError, wrong.inspect) { machine.open(wrong) }
        assert_match(/expected a path \(String or Pathname\)/, error.message)
      end
      assert_raises(Ringspun::UsageError) { machine.statx("with\0zero") }
      [["rb", /unknown open mode "rb": use r, r\+, w/], ["", /unknown open mode/], ["w\0", /unknown open mode/],
       [:w, /open flags: expected an Integer/], [-1, /open flags must not be negative/], [2**40, /open flags must lie/],
       [1.0, /expected an Integer/]].each do |wrong, message|
        assert_match(message, assert_raises(Ringspun::UsageError) { machine.open("nowhere", wrong) }.message)
      end
      [-1, "0644", nil, 0o100_000].each do |wrong|
        error = assert_raises(Ringspun::UsageError) { machine.open("nowhere", "r", wrong) }
        assert_match(/open mode must/, error.message)
      end
      assert_raises(Errno::ENOENT) { machine.open("/nowhere/at/all") }
      assert_raises(Errno::ENOENT) { machine.open("") }
      assert_raises(Errno::ENOENT) { machine.statx("") }
    end
  end

  def test_accept_each_needs_a_block
    on_machine do |machine|
      assert_raises(LocalJumpError) { machine.accept_each(make_socketpair.first) }
    end
  end

  # Whatever is passed where: an error of ours, or of the system.
  def test_no_argument_gets_past_the_checks
    on_machine(faults: false) do |machine|
      odd = [nil, true, :symbol, "string", +"", 1.5, -1, 2**31, 2**64, -2**64, Object.new, [], {}, IO::Buffer.new(4), 3..4]
      { read: 2..4, write: 2..2, pread: 3..5, pwrite: 3..3, readv: 2..2, writev: 2..2, recv: 2..4, send: 2..3,
        recvmsg: 2..4, sendmsg: 2..5, accept: 1..1, connect: 2..2, bind: 2..2, listen: 1..2, shutdown: 1..2,
        setsockopt: 4..4, getsockopt: 3..3, poll: 2..2, fsync: 1..2, waitid: 1..1, socket: 2..3, open: 1..3 }
        .each do |method, arities|
        arities.each do |arity|
          amount(80).times do |seed|
            arguments = odd.sample(arity, random: Random.new(seed))
            error = error_of { machine.timeout(0) { machine.__send__(method, *arguments) } }
            next if error.nil? || error.is_a?(Ringspun::Error) || error.is_a?(SystemCallError)

            flunk "#{method}(#{arguments.map(&:inspect).join(", ")}): #{error.class}: #{error.message}"
          end
        end
      end
    end
  end

  private

  # Every method that takes a descriptor, otherwise called as it should be.
  def each_call_on(io)
    address = Socket.sockaddr_un("nowhere")
    {
      read: -> { @machine.read(io, +"") }, pread: -> { @machine.pread(io, +"", 0) }, readv: -> { @machine.readv(io, [+"x"]) },
      write: -> { @machine.write(io, "x") }, pwrite: -> { @machine.pwrite(io, "x", 0) },
      writev: -> { @machine.writev(io, ["x"]) }, recv: -> { @machine.recv(io, +"") }, send: -> { @machine.send(io, "x") },
      recvmsg: -> { @machine.recvmsg(io, +"") }, sendmsg: -> { @machine.sendmsg(io, "x") },
      accept: -> { @machine.accept(io) }, accept_each: -> { @machine.accept_each(io) { break } },
      connect: -> { @machine.connect(io, address) }, bind: -> { @machine.bind(io, address) },
      listen: -> { @machine.listen(io) }, shutdown: -> { @machine.shutdown(io) },
      setsockopt: -> { @machine.setsockopt(io, 1, 2, 1) }, getsockopt: -> { @machine.getsockopt(io, 1, 2) },
      poll: -> { @machine.poll(io, :readable) }, fsync: -> { @machine.fsync(io) }, close: -> { @machine.close(io) },
      statx: -> { @machine.statx(io) }
    }.each { |name, call| yield name, call unless name == :statx && String === io }
  end

  def some_path = simulated? ? "file" : File.join(@folder ||= Dir.mktmpdir, "file")

  def teardown
    FileUtils.remove_entry(@folder) if @folder
    super
  end
end

class BadInputTest < IOCase
  include BadInputTests

  def test_another_thread
    on_machine do |machine|
      reader, writer = make_pipe
      [-> { machine.read(reader, +"") }, -> { machine.write(writer, "x") }, -> { machine.pipe },
       -> { machine.open("/dev/null") }, -> { machine.close(reader) }, -> { machine.poll(reader, :readable) },
       -> { machine.readv(reader, [+"x"]) }, -> { machine.socket(:UNIX, :STREAM) }, -> { machine.statx("/") },
       -> { machine.waitid(1) }, -> { machine.accept(reader) }, -> { machine.recv(reader, +"") }].each do |call|
        error = Thread.new { error_of(&call) }.value
        assert_instance_of Ringspun::WrongThreadError, error
        assert_match(/belongs to another thread.*Machine.current/, error.message)
      end
    end
  end

  def test_a_machine_that_is_closed
    Thread.new do
      machine = Ringspun::Machine.new
      reader, writer = machine.pipe
      [reader, writer].each { |descriptor| machine.close(descriptor) }
      machine.close
      [-> { machine.read(reader, +"") }, -> { machine.write(writer, "x") }, -> { machine.pipe }, -> { machine.open("/") },
       -> { machine.close(reader) }, -> { machine.poll(reader, :readable) }, -> { machine.statx("/") },
       -> { machine.socketpair }, -> { machine.waitid(1) }].each do |call|
        error = assert_raises(Ringspun::ClosedError, &call)
        assert_match(/this machine is closed; Machine.current makes a new one/, error.message)
      end
    end.tap { |thread| thread.report_on_exception = false }.join
  end
end

class SimulatedBadInputTest < IOCase
  include Simulated
  include BadInputTests

  def test_a_real_io_is_no_descriptor_of_a_simulation
    on_machine do |machine|
      reader, writer = IO.pipe
      [-> { machine.read(reader, +"") }, -> { machine.write(writer, "x") }, -> { machine.close(reader) }].each do |call|
        assert_match(/a simulated machine knows only/, assert_raises(Ringspun::UsageError, &call).message)
      end
      refute_predicate reader, :closed?
    ensure
      [reader, writer].each(&:close)
    end
  end

  # The checks come before any kernel: its faults are for other tests.
  def on_machine(**, &block) = super(faults: false, &block)
end
