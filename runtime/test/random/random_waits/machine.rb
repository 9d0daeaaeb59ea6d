# frozen_string_literal: true

# Calls of the machine on descriptors, files and sockets.
class RandomWaits
  CALLS_OF.merge!(
    read: -> { @machine.read(@pipe[0], +"", 3) },
    write: -> { @machine.write(@pipe[1], "x" * @random.rand(1..5)) },
    write_much: -> { @machine.write(@pipe[1], "x" * 100_000) },
    readv: -> { @machine.readv(@pipe[0], [+"ab", +"cd"]) },
    writev: -> { @machine.writev(@pipe[1], ["x" * @random.rand(1..5), "y"]) },
    read_each: -> { @machine.read_each(@pipe[0]) { break } },
    poll: -> { @machine.poll(@pair.sample(random: @random), %i[readable writable].sample(random: @random)) },
    recv: -> { @machine.recv(@pair[1], +"", 10) },
    send: -> { @machine.send(@pair[0], "x" * @random.rand(1..20)) },
    recv_each: -> { @machine.recv_each(@pair[1]) { break } },
    recvmsg: -> { @machine.recvmsg(@pair[1], +"", 10) },
    sendmsg: -> { @machine.sendmsg(@pair[0], "x" * @random.rand(1..20)) },
    waitid: -> { @machine.waitid(-1) },
    splice: -> { @machine.splice(@pipe[0], @pair[0], 10) },
    tee: -> { @machine.tee(@pipe[0], @other_pipe[1], 5) },
    read_copy: -> { @machine.read(@other_pipe[0], +"", 5) },
    pread: -> { @machine.pread(@file, +"", 0, 10) },
    pwrite: -> { @machine.pwrite(@file, "x" * 10, 0) },
    fsync: -> { @machine.fsync(@file) },
    ftruncate: -> { @machine.ftruncate(@file, 10) },
    fallocate: -> { @machine.fallocate(@file, 10) },
    statx: -> { @machine.statx("/file") },
    open: -> { @machine.open("/file").then { |fd| @machine.scope(shield: true) { @machine.close(fd) } } },
    rename: -> { @machine.rename("/other", "/another") },
    unlink: -> { @machine.unlink("/other") },
    copy_file: -> { @machine.copy_file("/file", "/other") },
    mkdir: -> { unsupported { @machine.mkdir("/folder") } },
    accept: -> { connecting { |listener| @machine.accept(listener) } },
    accept_each: -> { connecting { |listener| @machine.accept_each(listener) { |socket| break socket } } },
    datagram: -> { unsupported { Ringspun.datagram("127.0.0.1", 4001, timeout: limit) } },
    connect_tcp: -> { unsupported { Ringspun.connect_tcp("127.0.0.1", 4001, connect_timeout: limit) } },
    signals: -> { unsupported { Ringspun.signals(:USR1) } },
    watch: -> { unsupported { Ringspun.watch("/") } },
    close_under_readv: -> { closing_under { |near| @machine.readv(near, [+"abc"]) } },
    close_under_recv_each: -> { closing_under { |near| @machine.recv_each(near) { break } } },
    close_under_poll: -> { closing_under { |near| @machine.poll(near, :readable) } },
    close_under_write: -> { closing_under { |near| @machine.write(near, "x" * 500_000) } },
    close_under_splice: -> { closing_under { |near| @machine.splice(near, @pipe[1], 5) } },
    close_under_target: -> { closing_under { |near| @machine.timeout(limit) { @machine.splice(@pipe[0], near, 5) } } }
  )

  private

  # The block accepts.
  def connecting
    sockets = []
    address = Socket.sockaddr_un("/#{@random.rand(1 << 40)}")
    listener, client = Array.new(2) { @machine.socket(:UNIX, :STREAM).tap { |socket| sockets << socket } }
    @machine.bind(listener, address)
    @machine.listen(listener)
    connecting = @machine.spin { ending { @machine.connect(client, address) } }
    sockets << yield(listener)
  ensure
    @machine.scope(shield: true) do
      connecting&.join
      sockets.each { |socket| @machine.close(socket) }
    end
  end

  # The block waits on one end of a pair, which is closed meanwhile. Before it comes to that the number may be that of a pipe.
  def closing_under
    near, far = @machine.socketpair
    waiter = @machine.spin do
      ending { yield near }
    rescue Ringspun::UsageError => error
      raise unless error.message.match?(/is open for (reading|writing) only/)
    end
    @machine.sleep(limit)
  ensure
    @machine.scope(shield: true) do
      [near, far].each { |descriptor| @machine.close(descriptor) }
      waiter.join
    end
  end

  def unsupported
    yield
    raise "a simulation has no such thing"
  rescue Ringspun::UnsupportedError
    nil
  end
end
