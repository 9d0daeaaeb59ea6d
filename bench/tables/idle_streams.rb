# frozen_string_literal: true

require "socket"
require "tmpdir"
require "bench/clients"

# A process that opens so many connections, and then sends on one after the other of them, far apart, and waits for the answer.
# It obeys the orders `connect` and `talk`; `news` has how many answers were right.
Talker = Data.define(:path, :orders, :news) do
  def self.with(idle, trips, bytes)
    Dir.mktmpdir do |dir|
      path = File.join(dir, "socket")
      (orders, order), (news, tell) = IO.pipe, IO.pipe
      pid = fork do
        [order, news].each(&:close)
        orders.read(1)
        sockets = Array.new(idle) { connect(path) }
        tell.write("c")
        orders.read(1)
        tell.write([talk(sockets, trips, bytes)].pack("N"))
        exit!(0)
      end
      [orders, tell].each(&:close)
      yield new(path, order, news)
    ensure
      [order, news].each(&:close)
      Process.wait(pid)
    end
  end

  # Not by UNIXSocket.new, which takes a connection that finds the backlog full for connected.
  def self.connect(path)
    socket = Socket.new(:UNIX, :STREAM)
    begin
      socket.connect_nonblock(Addrinfo.unix(path))
    rescue Errno::EAGAIN
      sleep(0.001)
      retry
    end
    socket
  end

  def self.talk(sockets, trips, bytes)
    trips.times.count do |trip|
      socket = sockets[trip * 7_919 % sockets.size]
      payload = Bench.payload(trip, bytes)
      socket.send(payload, 0)
      socket.recv(bytes) == payload
    end
  end

  # Called when the contender has begun to accept. `settle` returns when all connections wait.
  def run(meter, idle, trips, settle)
    meter.operations = trips
    meter.note(:idle, idle)
    before = meter.resident_bytes
    orders.write("c")
    news.read(1) or raise "the clients have failed to connect"
    settle.call
    meter.note(:rss_per_idle, (meter.resident_bytes - before) / idle)
    meter.measure do
      orders.write("t")
      { intact: news.read(4).unpack1("N") }
    end
  end
end

echo = lambda do |io|
  while (bytes = io.readpartial(4_096))
    io.write(bytes)
  end
rescue EOFError
  nil
ensure
  io.close
end

# `start` runs a block beside the others, `finish` awaits its end, `wrap` makes the object to read from of a socket.
stock = lambda do |meter, talker, idle, trips, start, finish, wrap = :itself.to_proc|
  server = UNIXServer.new(talker.path)
  server.listen(Bench::Clients::BACKLOG)
  waiting = []
  accepting = start.call do
    idle.times do
      socket = server.accept
      waiting << start.call { echo.call(wrap.call(socket)) }
    end
  end
  settle = -> { sleep(0.01) until waiting.size == idle }
  talker.run(meter, idle, trips, settle)
ensure
  [accepting, *waiting].compact.each(&finish)
  server&.close
end

Bench.table "idle_streams" do
  title "Idle streams"
  about "So many connections on a unix socket wait to be read from; another process sends 64 bytes on one of them after the " \
        "other, far apart, and waits for its answer. An operation is an answer, its wall time with what the other process " \
        "does. The floor is a bare parked fiber, which has no connection."
  size trips: 20_000, bytes: 64
  quick trips: 1_000
  warm_up idle: 10, trips: 20
  row "10", idle: 10
  row "10,000", quick: false, idle: Bench::Clients.affordable(10_000)
  proof { |trips:, **| { intact: trips } }
  columns :real_ns, :cpu_ns, :rate, :idle, :rss_per_idle
  against_floor :rss_per_idle
  against_peer :cpu_ns, :real_ns

  # A thread for each. Fewer of them: 10,000 take long to start, and each takes the same memory.
  contender "threads" do |meter, idle:, trips:, bytes:|
    idle = [idle, 1_000].min
    Talker.with(idle, trips, bytes) { |talker| stock.call(meter, talker, idle, trips, Thread.method(:new), :join) }
  end

  # A task for each.
  contender "async", requires: "async" do |meter, idle:, trips:, bytes:|
    Talker.with(idle, trips, bytes) do |talker|
      Sync { |task| stock.call(meter, talker, idle, trips, task.method(:async), :wait) }
    end
  end

  contender "io-stream", requires: File.join(Bench::ROOT, "bench/peers/io_stream") do |meter, idle:, trips:, bytes:|
    Talker.with(idle, trips, bytes) do |talker|
      wrap = lambda do |socket|
        IO::Stream::Buffered.wrap(socket).tap { |stream| stream.define_singleton_method(:write) { |data| super(data, flush: true) } }
      end
      Sync { |task| stock.call(meter, talker, idle, trips, task.method(:async), :wait, wrap) }
    end
  end

  # A strand and a stream for each.
  contender "ringspun", requires: "ringspun" do |meter, idle:, trips:, bytes:|
    Talker.with(idle, trips, bytes) do |talker|
      Ringspun.run do
        server = Ringspun.listen_unix(talker.path, max_connections: idle, first_byte: nil) do |stream|
          while (message = stream.read_partial)
            stream.write(message)
          end
        end
        settle = -> { sleep(0.01) until server.connections == idle }
        talker.run(meter, idle, trips, settle)
      ensure
        server&.stop
      end
    end
  end

  bare "bare fiber" do |meter, idle:, trips:, **|
    before = meter.resident_bytes
    fibers = Array.new(idle) { Fiber.new { Fiber.yield }.tap(&:resume) }
    meter.note(:idle, idle)
    meter.note(:rss_per_idle, (meter.resident_bytes - before) / idle)
    meter.measure { fibers.each(&:resume) }
    { intact: trips }
  end

  targets "rss_per_idle <= floor + 3072 at 10,000", "cpu_ns <= 1.0 x async", "real_ns flat within 25%",
          "cpu_ns <= 1.1 x ringspun epoll"
end
