# frozen_string_literal: true

# One call of nearly everything that asks a kernel for something, each by itself: what it came to is kept under its name, a value
# or the error. For processes in which some of it is refused.
class Tour
  LARGE = 300_000

  attr_reader :results

  def self.stops = public_instance_methods(false).grep(/\A(?!results|take)/) - [:machine]

  def initialize(folder)
    @folder = folder
    @results = {}
  end

  def take(names = self.class.stops)
    names.each { |name| @results[name] = attempt { machine.timeout(10) { public_send(name) } } }
    self
  end

  def machine = Ringspun::Machine.current

  def sleeping
    machine.sleep(0.001)
    :slept
  end

  def another_thread
    queue = Thread::Queue.new
    thread = Thread.new { queue << :pushed }
    queue.pop.tap { thread.join }
  end

  def pipes
    with_pipe do |reader, writer|
      strand = machine.spin { machine.read(reader, bytes = +"").then { bytes } }
      machine.yield
      machine.write(writer, "bytes")
      strand.await
    end
  end

  def large_writes
    with_pipe do |reader, writer|
      strand = machine.spin { machine.write(writer, "." * LARGE) }
      left = LARGE
      left -= machine.read(reader, +"") while left > 0
      strand.await
    end
  end

  def sockets
    with_pair do |one, other|
      strand = machine.spin { machine.recv(one, bytes = +"", 10, 0).then { bytes } }
      machine.yield
      machine.send(other, "bytes")
      machine.setsockopt(one, Socket::SOL_SOCKET, Socket::SO_SNDBUF, 10_000)
      machine.getsockopt(one, Socket::SOL_SOCKET, Socket::SO_SNDBUF)
      strand.await
    end
  end

  def messages
    with_pair do |one, other|
      strand = machine.spin { machine.recvmsg(one, bytes = +"", 10).then { bytes } }
      machine.yield
      machine.sendmsg(other, "bytes")
      strand.await
    end
  end

  def descriptors_that_travel
    with_pair do |one, other|
      with_pipe { |reader, _| machine.send_fd(one, reader) }
      fd = machine.recv_fd(other)
      machine.close(fd)
      :travelled
    end
  end

  def vectors
    with_pipe do |reader, writer|
      machine.writev(writer, %w[by tes])
      machine.readv(reader, [a = +"..", b = +"..."]).then { a + b }
    end
  end

  def servers
    path = "#{@folder}/socket"
    server = Ringspun.listen_unix(path) { |stream| stream.each_line { |line| stream.write_line(line.upcase) } }
    stream = Ringspun.connect_unix(path, timeout: 5)
    stream.write_line("bytes")
    stream.read_line
  ensure
    begin
      stream&.close
    ensure
      server&.stop(within: 1)
    end
  end

  def accepting
    server = Socket.new(:INET, :STREAM)
    server.bind(Addrinfo.tcp("127.0.0.1", 0))
    server.listen(5)
    strand = machine.spin { machine.accept_each(server) { |fd| break fd } }
    machine.yield
    client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
    machine.close(strand.await)
    :accepted
  ensure
    close(client, server)
  end

  def files
    with_file do |file|
      machine.write(file, "bytes")
      machine.pwrite(file, "." * LARGE, 5)
      machine.fsync(file)
      machine.ftruncate(file, 5)
      machine.fallocate(file, 10)
      machine.statx(file).fetch(:size)
      machine.pread(file, bytes = +"", 0, 5)
      machine.pread(file, +"", 0, LARGE)
      bytes
    end
  end

  def names_of_files
    machine.mkdir("#{@folder}/folder")
    machine.rename("#{@folder}/folder", "#{@folder}/other")
    Dir.rmdir("#{@folder}/other")
    with_file { nil }
    machine.unlink("#{@folder}/file")
    :changed
  end

  def copied_files
    with_file { |file| machine.write(file, "bytes") }
    machine.copy_file("#{@folder}/file", "#{@folder}/copy")
    File.read("#{@folder}/copy")
  end

  def splicing
    with_pipe do |reader, writer|
      with_pair do |one, other|
        machine.write(writer, "bytes")
        machine.splice(reader, one, 10)
        machine.read(other, bytes = +"")
        bytes
      end
    end
  end

  def copied_streams
    with_pair do |from, sender|
      with_pair do |to, receiver|
        machine.write(sender, "bytes")
        machine.shutdown(sender, :WR)
        count = Ringspun::Stream.new(from).copy_to(to)
        machine.read(receiver, bytes = +"")
        [count, bytes]
      end
    end
  end

  def selecting
    with_pipe do |reader, writer|
      machine.spin { machine.write(writer, "bytes") }
      Ringspun.select(machine.spin { machine.poll(reader, :readable) }, timeout: 5) ? :selected : :late
    end
  end

  def io_select
    reader, writer = IO.pipe
    machine.spin { writer.write("bytes") }
    IO.select([reader], nil, nil, 5).then { |ready| ready ? reader.read_nonblock(10) : :late }
  ensure
    close(reader, writer)
  end

  def stock_streams
    reader, writer = IO.pipe
    strand = machine.spin { reader.read(5) }
    machine.yield
    writer.write("bytes")
    writer.flush
    strand.await
  ensure
    close(reader, writer)
  end

  def children
    system("exit 3").nil? ? raise(Errno::EAGAIN, "no child") : ended($?)
  end

  def waiting_for_children
    first, second = Array.new(2) { spawn("exit 4") }
    [ended(machine.waitid(first)), ended(Ringspun.wait_process(second))]
  end

  def any_child
    spawn("exit 5")
    Process.wait(-1)
    ended($?)
  end

  def watching
    watch = Ringspun.watch(@folder)
    File.write("#{@folder}/seen", "")
    watch.next_event.name
  ensure
    watch&.close
  end

  def signals
    signals = Ringspun.signals(:USR1)
    Process.kill(:USR1, Process.pid)
    signals.next_signal
  ensure
    signals&.close
  end

  def looking_up = Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).any?

  private

  # A shell that cannot be loaded is a child nevertheless: it says so, or dies.
  def ended(status)
    raise Errno::ENOEXEC, "no shell" if status.exitstatus == 127 || status.termsig == Signal.list["SEGV"]

    status.exitstatus
  end

  # Ends the waits of strands, which IO#close does not.
  def close(*ios)
    ios.compact.each do |io|
      machine.close(io)
    rescue SystemCallError, Ringspun::Error
      nil
    end
  end

  def attempt
    yield
  rescue SystemCallError, Ringspun::Error, IOError, SocketError, ThreadError => error
    error
  end

  def with_pipe = with(*machine.pipe) { |*fds| yield(*fds) }
  def with_pair = with(*machine.socketpair) { |*fds| yield(*fds) }
  def with_file = with(machine.open("#{@folder}/file", "w+")) { |fd| yield fd }

  def with(*fds)
    yield(*fds)
  ensure
    close(*fds)
  end
end
