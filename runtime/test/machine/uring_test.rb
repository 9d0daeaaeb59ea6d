# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/seccomp"
require "support/strands"

# The backend on io_uring where hosts refuse it, where they give it little, and where it must not be met after its end.
class UringTest < Minitest::Test
  include Strands

  TRY = <<~'RUBY'
    require "ringspun"
    def descriptors = Dir.children("/proc/self/fd").size

    def refused
      before = descriptors
      Ringspun::Machine.new(backend: :uring)
    rescue Ringspun::UnsupportedError => error
      puts error.message, descriptors - before
      # The next best one is none the worse for it.
      machine = Ringspun::Machine.new
      puts machine.backend
      reader, writer = machine.pipe
      strand = machine.spin { machine.read(reader, bytes = +"").then { bytes } }
      machine.yield
      machine.write(writer, "on epoll")
      puts strand.await
    end
  RUBY

  [["io_uring_setup", Errno::EPERM, /forbids it/], ["io_uring_setup", Errno::EACCES, /forbids it/],
   ["io_uring_setup", Errno::ENOSYS, /this kernel has none/], ["io_uring_setup", Errno::ENOMEM, /RLIMIT_MEMLOCK/],
   ["io_uring_enter", Errno::EPERM, /forbids it/], ["io_uring_enter", Errno::ENOSYS, /this kernel has none/],
   ["io_uring_register", Errno::EPERM, //]].each do |call, error, hint|
    define_method("test_#{call}_that_is_answered_#{error.name[/\w+\z/]}") do
      code = "#{TRY}; #{Seccomp.code(call, error)}; refused"
      answer = ruby_child(code, env: { "RINGSPUN_BACKEND" => nil })
      message, left, instead, after = answer.out.lines(chomp: true)
      assert_match(/\Ano io_uring: #{call} was answered #{error.new.message}.*leave backend: out/, message, answer.err)
      assert_match(hint, message)
      assert_equal "epoll (#{message.delete_suffix("; leave backend: out, and Ringspun takes epoll")})", instead
      assert_equal ["0", "on epoll", ""], [left, after, answer.err]
    end
  end

  # --- limits ---

  USE = <<~'RUBY'
    def use(machine)
      reader, writer = machine.pipe
      strand = machine.spin { machine.read(reader, bytes = +"").then { bytes } }
      machine.sleep(0.001)
      machine.write(writer, "works")
      strand.await
    end
  RUBY

  def test_little_memory_that_may_be_locked
    [0, 4096, 65_536].each do |bytes|
      answer = ruby_child(<<~RUBY)
        #{TRY}
        #{USE}
        Process.setrlimit(:MEMLOCK, #{bytes})
        begin
          puts use(Ringspun::Machine.new(backend: :uring))
        rescue Ringspun::UnsupportedError => error
          puts error.message[/RLIMIT_MEMLOCK/]
        end
      RUBY
      assert_includes %W[works\n RLIMIT_MEMLOCK\n], answer.out, answer.err
      assert_empty answer.err
    end
  end

  # So many descriptors more than are open: none for the ring, and none for what wakes it.
  { 0 => /io_uring_setup was answered #{Errno::EMFILE.new.message}: no descriptor is left/,
    1 => /eventfd was answered #{Errno::EMFILE.new.message}/ }.each do |more, reason|
    define_method("test_a_machine_that_may_open_#{more}") do
      answer = ruby_child(<<~RUBY)
        #{TRY}
        Ringspun::Machine.new(backend: :uring).close # what Ruby opens for the first machine is open then
        limit = Process.getrlimit(:NOFILE)
        used = Dir.children("/proc/self/fd").filter_map { |fd| Integer(fd) if File.exist?("/proc/self/fd/\#{fd}") }
        (used.max + 1).times { |fd| used << IO.sysopen(File::NULL) unless used.include?(fd) } # no hole below the limit
        Process.setrlimit(:NOFILE, used.max + 1 + #{more}, limit.last)
        begin
          Ringspun::Machine.new(backend: :uring)
        rescue Ringspun::UnsupportedError => error
          puts error.message
        end
        Process.setrlimit(:NOFILE, *limit)
        puts Ringspun::Machine.new(backend: :uring).backend.name
      RUBY
      message, after = answer.out.lines(chomp: true)
      assert_match reason, message, answer.err
      assert_equal ["uring", ""], [after, answer.err]
    end
  end

  # --- options ---

  def test_entries
    on_thread do
      machine = Ringspun::Machine.new(backend: :uring, entries: 2)
      pipes = Array.new(20) { machine.pipe }
      readers = pipes.map { |reader, _| machine.spin { machine.read(reader, bytes = +"").then { bytes } } }
      machine.yield
      pipes.each_with_index { |(_, writer), number| machine.write(writer, number.to_s) }
      assert_equal Array.new(20, &:to_s), machine.await(*readers)
      pipes.flatten.each { |fd| machine.close(fd) }
      machine.close
    end
  end

  def polling_threads
    Dir.glob("/proc/self/task/*").select do |task|
      File.read("#{task}/comm").start_with?("iou-sqp")
    rescue SystemCallError
      false # it has just ended
    end
  end

  { true => nil, 0.001 => nil, { idle: 0.005 } => nil, { cpu: 0 } => "0", { idle: 1, cpu: 0 } => "0" }.each do |sqpoll, processor|
    define_method("test_sqpoll_#{sqpoll}") do
      on_thread do
        before = polling_threads
        machine = Ringspun::Machine.new(backend: :uring, sqpoll:)
        ours = polling_threads - before
        assert_equal 1, ours.size
        allowed = File.read("#{ours.first}/status")[/^Cpus_allowed_list:\s*(.*)$/, 1]
        assert_equal processor || File.read("/proc/self/status")[/^Cpus_allowed_list:\s*(.*)$/, 1], allowed
        assert_equal 49 * 50 / 2, Ringspun.run { count_through_a_pipe(machine, 0) }
        machine.close
        Thread.pass while polling_threads.include?(ours.first) # it ends when it has seen that the ring is closed
      end
    end
  end

  # What is not the machine's own may be closed and opened again as soon as the strand waits.
  def test_sqpoll_and_a_descriptor_of_others
    on_thread do
      machine = Ringspun::Machine.new(backend: :uring, sqpoll: 0.001)
      200.times do
        reader, writer = IO.pipe
        strand = machine.spin { machine.read(reader, bytes = +"", 3).then { bytes } }
        machine.yield
        twin = writer.dup
        writer.close
        machine.write(twin, "yes")
        assert_equal "yes", strand.await
        [reader, twin].each(&:close)
      end
      machine.close
    end
  end

  { { entries: 0 } => /entries .*between 1 and 32768/, { entries: "many" } => /entries/, { sqpoll: 0 } => /at least 0\.001 s/,
    { sqpoll: -1 } => /negative/, { sqpoll: { idle: 1, cpus: 2 } } => /takes true, the idle/, { sqpoll: { cpu: -1 } } => /cpu/,
    { sqpoll: "yes" } => /number of seconds/ }.each do |options, message|
    define_method("test_wrong_#{options}") do
      error = on_thread { error_of { Ringspun::Machine.new(backend: :uring, **options) } }
      assert_instance_of Ringspun::UsageError, error
      assert_match message, error.message
    end
  end

  def test_options_of_the_ring_on_other_backends
    %i[epoll sim].product([{ entries: 8 }, { sqpoll: true }]) do |backend, options|
      error = on_thread { error_of { Ringspun::Machine.new(backend:, **options) } }
      assert_instance_of Ringspun::UsageError, error
      assert_match(/#{options.keys.first}: is for backend: :uring/, error.message)
    end
  end

  def test_a_processor_that_is_not_there
    error = on_thread { error_of { Ringspun::Machine.new(backend: :uring, sqpoll: { cpu: 1_000_000 }) } }
    assert_instance_of Ringspun::UnsupportedError, error
    assert_match(/no such processor/, error.message)
  end

  # --- connections that are accepted ahead ---

  def listen
    listener = machine.socket(:INET, :STREAM)
    machine.bind(listener, Addrinfo.tcp("127.0.0.1", 0))
    machine.listen(listener, 64)
    [listener, Socket.for_fd(listener).tap { |socket| socket.autoclose = false }.local_address]
  end

  def on_ring(**)
    on_thread do
      Ringspun::Machine.new(backend: :uring, **)
      Ringspun.run { yield }
      machine.close
    end
  end

  # So many clients, when the kernel has told of all that it accepts.
  def connect(address, count)
    clients = Array.new(count) { TCPSocket.new(address.ip_address, address.ip_port) }
    5.times { machine.sleep(0.001) }
    clients
  end

  def sockets = Leaks.descriptors["socket"].to_i

  def test_so_many_are_accepted_ahead
    on_ring do
      { 2 => 3, 0 => 1 }.each do |ahead, accepted|
        listener, address = listen
        first = nil
        server = machine.spin do
          machine.accept_each(listener, ahead:) do |peer|
            first = peer
            machine.sleep
          end
        end
        before = sockets
        clients = connect(address, 1)
        clients += connect(address, 1) until clients.size == 8
        assert_equal [clients.size + accepted, 8], [sockets - before, clients.size]
        machine.terminate(server)
        error_of { server.join }
        [first, listener].each { |descriptor| machine.close(descriptor) }
        clients.each(&:close)
      end
    end
  end

  # As if it were in the kernel's queue.
  def test_what_was_accepted_ahead_belongs_to_the_listener
    on_ring do
      listener, address = listen
      server = machine.spin { machine.accept_each(listener) { |peer| break peer if machine.park == :break } }
      clients = connect(address, 5)
      assert_equal IO::READABLE, machine.poll(listener, :readable)
      taken = [machine.accept(listener)]
      machine.schedule(server, :break)
      taken << server.await << machine.accept(listener)
      taken << machine.accept_each(listener) { |peer| break peer }
      taken.each { |peer| machine.write(peer, "x") }
      assert_equal(4, clients.count { |client| client.wait_readable(0) })
      machine.close(listener)
      taken.each { |peer| machine.close(peer) }
      assert_equal(["", "x", "x", "x", "x"], clients.map { |client| read_all(client) }.sort)
    end
  end

  def read_all(client)
    client.read
  rescue Errno::ECONNRESET
    ""
  ensure
    client.close
  end

  # Nobody goes on with it, and nobody says so.
  def test_an_enumerator_that_is_collected_keeps_no_connection
    on_ring do
      listener, address = listen
      clients = connect(address, 1)
      Fiber.new { machine.close(machine.to_enum(:accept_each, listener).next) }.resume
      GC.start
      clients += connect(address, 5)
      served = 0
      machine.accept_each(listener) do |peer|
        machine.close(peer)
        break if (served += 1) == 5
      end
      machine.close(listener)
      clients.each(&:close)
    end
  end

  # Each suspended one keeps an operation in the ring. Beyond the limit they accept one after the other.
  def test_more_suspended_acceptors_than_strands
    on_ring(strands_max: 2) do
      acceptors = Array.new(80) do
        listener, address = listen
        client = TCPSocket.new(address.ip_address, address.ip_port)
        connections = machine.to_enum(:accept_each, listener)
        [listener, connections.next, client, connections]
      end
      acceptors.each do |listener, peer, client,|
        [listener, peer].each { |descriptor| machine.close(descriptor) }
        assert_empty client.read
        client.close
      end
    end
  end

  # What interrupts the wait is told once: here to the block, for a connection has come in the same moment.
  def test_an_error_that_meets_an_acceptor_with_a_connection
    on_ring do
      listener, address = listen
      seen = []
      server = until_parked(machine.spin do
        machine.accept_each(listener) do |peer|
          seen << error_of { machine.sleep(0.001) }&.message
          machine.close(peer)
        end
      end)
      foreign, other = IO.pipe
      clients = [TCPSocket.new(address.ip_address, address.ip_port)]
      reader = machine.spin { machine.read(foreign, +"", 1) } # submitted at once, and the connection comes with it
      machine.spin { machine.schedule(server, Failure.new("once")) }
      yield_until("the block is told") { seen == ["once"] }
      clients << TCPSocket.new(address.ip_address, address.ip_port)
      yield_until("the block has the second") { seen == ["once", nil] }
      other << "x"
      reader.join
      machine.terminate(server)
      error_of { server.join }
      [*clients, foreign, other].each(&:close)
      machine.close(listener)
    end
  end

  SERVER = <<~'RUBY'
    require "ringspun"
    require "socket"
    $stdout.sync = true
    machine = Ringspun::Machine.new(backend: :uring)
    listener = machine.socket(:INET, :STREAM)
    machine.bind(listener, Addrinfo.tcp("127.0.0.1", 0))
    machine.listen(listener)
    port = Socket.for_fd(listener).tap { |socket| socket.autoclose = false }.local_address.ip_port
  RUBY

  def test_a_machine_that_is_closed_while_connections_wait
    answer = ruby_child("#{SERVER}#{<<~'RUBY'}")
      clients = Array.new(3) { TCPSocket.new("127.0.0.1", port) }
      begin
        machine.accept_each(listener) do
          machine.sleep(0.001)
          machine.close
        end
      rescue Ringspun::ClosedError => error
        puts error.class
      end
      GC.start
      puts clients[1..].map { |client| client.read.size }
    RUBY
    assert_match(/\ARingspun::ClosedError\n0\n0\n\z/, answer.out, answer.err)
  end

  # Who was cancelled first ends by that, whatever becomes of the listener while the kernel lets go of it.
  def test_a_cancelled_acceptor_whose_listener_is_closed
    on_ring do
      listener, = listen
      server = machine.spin { machine.accept_each(listener) { flunk "nobody connects" } }
      until_parked(server)
      machine.terminate(server)
      machine.close(listener)
      assert_instance_of Ringspun::TerminatedError, error_of { server.join }
    end
  end

  # A peer sees the end of its connection only when nobody has it any more.
  def test_a_child_has_nothing_of_what_its_parent_accepted_ahead
    answer = ruby_child("#{SERVER}#{<<~'RUBY'}")
      clients = Array.new(3) { TCPSocket.new("127.0.0.1", port) }
      reader, writer = IO.pipe
      child = nil
      machine.accept_each(listener) do |peer|
        machine.sleep(0.001)
        child = fork do
          [*clients, writer, IO.for_fd(peer)].each(&:close)
          reader.read # and never uses its machine
          puts "child"
        end
        machine.close(peer)
        break
      end
      reader.close
      machine.close(listener)
      puts clients.map { |client| client.read.size }
      writer.close
      Process.wait(child)
    RUBY
    assert_equal ["0\n0\n0\nchild\n", ""], [answer.out, answer.err]
  end

  def test_no_descriptor_is_left_for_a_connection
    answer = ruby_child("#{SERVER}#{<<~'RUBY'}")
      client = TCPSocket.new("127.0.0.1", port)
      limit = Process.getrlimit(:NOFILE)
      Process.setrlimit(:NOFILE, 4, limit.last)
      begin
        machine.accept_each(listener) { puts "taken" }
      rescue SystemCallError => error
        Process.setrlimit(:NOFILE, *limit)
        puts error.class
      end
      machine.accept_each(listener) { |peer| break machine.write(peer, "later") }
      puts client.recv(5)
    RUBY
    assert_equal ["Errno::EMFILE\nlater\n", ""], [answer.out, answer.err]
  end

  # --- threads ---

  def test_a_hundred_machines_in_a_hundred_threads
    count = GCStress::WANTED ? 10 : 100
    threads = Array.new(count) do |number|
      Thread.new do
        machine = Ringspun::Machine.new(backend: :uring)
        sum = Ringspun.run { count_through_a_pipe(machine, number) }
        machine.close
        sum
      end
    end
    assert_equal(Array.new(count) { |number| (number...number + 50).sum }, threads.map(&:value))
  end

  def count_through_a_pipe(machine, number)
    reader, writer = machine.pipe
    strand = machine.spin do
      Array.new(50) { machine.read(reader, bytes = +"", 4).then { bytes.unpack1("L") } }.sum
    end
    50.times do |i|
      machine.write(writer, [number + i].pack("L"))
      machine.yield
    end
    strand.await
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  # What its ops were to fill may be anything by then.
  def test_a_thread_that_ends_with_ops_in_flight
    pipes = Array.new(8) { IO.pipe }
    buffers = Array.new(8) { +"" }
    Thread.new do
      machine = Ringspun::Machine.new(backend: :uring)
      pipes.zip(buffers) { |(reader, _), buffer| machine.spin { machine.read(reader, buffer, 16) } }
      machine.sleep(0.001) until machine.metrics[:ops_in_flight] == 8
    end.join
    pipes.each { |_, writer| writer << "for others" }
    GC.start
    assert_equal(["for others"] * 8, pipes.map { |reader, _| reader.readpartial(100) })
    assert_equal [""] * 8, buffers
  ensure
    pipes.flatten.each(&:close)
  end

  # The ring is its thread's. Whoever still has the machine is told, and the process goes on.
  def test_a_machine_whose_thread_has_ended
    answer = ruby_child(<<~'RUBY')
      require "ringspun"
      [{}, { sqpoll: 0.001 }].each do |options|
        reader, writer = IO.pipe
        left, strand = Thread.new do
          machine = Ringspun::Machine.new(backend: :uring, **options)
          strand = machine.spin { machine.read(reader, +"") }
          machine.sleep(0.001)
          [machine, strand]
        end.value
        writer << "nobody reads this"
        [-> { left.sleep(0) }, -> { left.read(reader, +"") }, -> { left.spin {} }, -> { left.close }].each do |call|
          call.call
        rescue Ringspun::WrongThreadError
          puts "told"
        end
        puts left.schedule(strand), reader.readpartial(100)
      end
      GC.start
    RUBY
    assert_equal ["#{"told\n" * 4}false\nnobody reads this\n" * 2, ""], [answer.out, answer.err]
  end

  # --- forks ---

  # Neither a crash, nor half a machine: it is told, and works as soon as it can.
  def test_a_child_that_may_open_nothing
    %i[uring epoll].each do |backend|
      answer = ruby_child(<<~RUBY)
        require "ringspun"
        machine = Ringspun::Machine.new(backend: :#{backend})
        machine.sleep(0.001)
        child = fork do
          limit = Process.getrlimit(:NOFILE)
          Process.setrlimit(:NOFILE, 4, limit.last)
          2.times do
            machine.sleep(0.001)
          rescue SystemCallError => error
            puts error.class
          end
          Process.setrlimit(:NOFILE, *limit)
          reader, writer = machine.pipe
          strand = machine.spin { machine.read(reader, bytes = +"").then { bytes } }
          machine.sleep(0.001)
          machine.write(writer, "works")
          puts strand.await, machine.backend.name
        end
        Process.wait(child)
        puts $?.success?
      RUBY
      assert_equal ["Errno::EMFILE\nErrno::EMFILE\nworks\n#{backend}\ntrue\n", ""], [answer.out, answer.err]
    end
  end

  def test_a_fork_with_ops_in_flight
    answer = ruby_child(<<~'RUBY')
      require "ringspun"
      require "socket"
      machine = Ringspun::Machine.new(backend: :uring)
      pairs = Array.new(20) { machine.pipe }
      listener = TCPServer.new("127.0.0.1", 0)
      readers = pairs.map { |reader, _| machine.spin { machine.read(reader, bytes = +"").then { bytes } } }
      acceptor = machine.spin { machine.accept(listener) }
      machine.sleep(0.001)
      child = fork do
        own_reader, own_writer = machine.pipe
        strand = machine.spin { machine.read(own_reader, bytes = +"").then { bytes } }
        machine.sleep(0.001)
        machine.write(own_writer, "child")
        puts strand.await, machine.backend.name, machine.metrics[:ops_in_flight]
      end
      Process.wait(child)
      puts readers.count(&:alive?)
      pairs.each { |_, writer| machine.write(writer, "parent") }
      puts machine.await(*readers).uniq
      TCPSocket.new("127.0.0.1", listener.addr[1]).close
      puts acceptor.await.class
    RUBY
    assert_equal ["child\nuring\n0\n20\nparent\nInteger\n", ""], [answer.out, answer.err]
  end
end
