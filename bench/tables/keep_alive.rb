# frozen_string_literal: true

require "socket"
require "bench/clients"

answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
request = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n"

# Serves a connection that is kept alive. Returns true if a reset has ended it, as it ends the idle ones.
serve = lambda do |socket|
  socket.write(answer) if socket.gets("\r\n\r\n") until socket.eof?
  false
rescue Errno::ECONNRESET
  true
ensure
  socket.close
end

# `start` runs a block beside the others, `finish` awaits its value.
stock = lambda do |meter, idle, requests, start, finish|
  server = TCPServer.new("127.0.0.1", 0)
  server.listen(Bench::Clients::BACKLOG)
  port = server.local_address.ip_port
  waiting = []
  accept = lambda do
    socket = server.accept
    waiting << start.call { serve.call(socket) }
  end
  settle = -> { sleep(0.1) }
  ended = -> { waiting.count(&finish) }
  meter.operations = requests
  Bench::Clients.among_idle(meter, idle, port, accept, settle, ended) do
    accepting = start.call do
      requests.times do
        socket = server.accept
        start.call { serve.call(socket) }
      end
    end
    answered = meter.measure do
      requests.times.count do
        client = TCPSocket.new("127.0.0.1", port)
        client.write(request)
        client.readpartial(answer.bytesize) == answer
      ensure
        client&.close
      end
    end
    [accepting].each(&finish)
    { answered: }
  end
ensure
  server&.close
end

Bench.table "keep_alive" do
  title "Idle keep-alive connections"
  about "A server of stock sockets holds 10,000 HTTP connections that wait for a request, and others come: an operation is " \
        "one of those, from its connect to its first answer. The floor is a bare parked fiber, which has no connection."
  size idle: 10_000, requests: 2_000
  quick idle: 1_000, requests: 100
  warm_up idle: 10, requests: 10
  proof { |requests:, **| { answered: requests } }
  columns :real_ns, :cpu_ns, :idle, :rss_per_idle
  against_floor :rss_per_idle
  against_peer :cpu_ns, :real_ns

  # A thread for each. Fewer idle ones: 10,000 take long to start, and each takes the same memory.
  contender "threads", size: { idle: 1_000 } do |meter, idle:, requests:|
    stock.call(meter, idle, requests, Thread.method(:new), :value)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, idle:, requests:|
    Sync { |task| stock.call(meter, idle, requests, task.method(:async), :wait) }
  end

  # A strand for each.
  contender "ringspun", requires: "ringspun" do |meter, idle:, requests:|
    Ringspun.run { |machine| stock.call(meter, idle, requests, machine.method(:spin), :await) }
  end

  bare "bare fiber" do |meter, idle:, requests:|
    before = meter.resident_bytes
    fibers = Array.new(idle) { Fiber.new { Fiber.yield }.tap(&:resume) }
    meter.note(:idle, idle)
    meter.note(:rss_per_idle, (meter.resident_bytes - before) / idle)
    meter.measure { fibers.each(&:resume) }
    { answered: requests }
  end

  targets "rss_per_idle <= floor + 7168", "cpu_ns <= 1.0 x async", "cpu_ns <= 1.1 x ringspun epoll"
end
