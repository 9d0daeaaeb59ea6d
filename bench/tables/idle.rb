# frozen_string_literal: true

require "socket"
require "bench/clients"

# The stock classes, which threads and Async's scheduler share.
stock = lambda do |meter, idle, pairs, trips, bytes, start, finish|
  server = TCPServer.new("127.0.0.1", 0)
  server.listen(Bench::Clients::BACKLOG)
  waiting = []
  armed = 0
  accept = lambda do
    socket = server.accept
    waiting << start.call do
      armed += 1
      socket.recv(bytes, 0, String.new(capacity: bytes)) && false
    rescue Errno::ECONNRESET
      true
    ensure
      socket.close
    end
  end
  settle = -> { sleep(0.01) while armed < waiting.size }
  ended = -> { waiting.count(&finish) }
  ends = Array.new(pairs) { UNIXSocket.pair }
  Bench::Clients.among_idle(meter, idle, server.local_address.ip_port, accept, settle, ended) do
    meter.measure do
      started = ends.each_with_index.flat_map do |(near, far), index|
        payload = Bench.payload(index, bytes)
        echo = start.call { trips.times { far.send(far.recv(bytes), 0) } }
        talk = start.call { trips.times.count { near.send(payload, 0) && near.recv(bytes) == payload } }
        [echo, talk]
      end
      { intact: started.map(&finish).each_slice(2).sum(&:last) }
    end
  end
ensure
  [server, *ends&.flatten].compact.each(&:close)
end

Bench.table "idle" do
  title "Idle connections"
  about "16 connections over unix socket pairs echo 64 bytes, alone and beside 10,000 TCP connections which wait in recv for " \
        "what never comes. An operation is a round trip. `idle` says how many there were: fewer where descriptors are."
  size pairs: 16, trips: 4_000, bytes: 64, idle: 10_000
  quick trips: 250, idle: 1_000
  warm_up idle: 10, trips: 20
  row "alone", beside: false, quick: false
  row "beside 10,000", beside: true
  scale "connections", :idle, 10, 100, 1_000, Bench::Clients.affordable(8_000), most: { "threads" => 1_000 }, beside: true
  proof { |pairs:, trips:, **| { intact: pairs * trips } }
  columns :real_ns, :cpu_ns, :rate, :idle, :rss_per_idle
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns

  # A thread for each. Fewer trips, because for each the kernel switches threads twice, and fewer idle threads: 10,000 take
  # long to start, and each takes the same memory.
  contender "threads", size: { trips: 500, idle: 1_000 } do |meter, idle:, beside:, pairs:, trips:, bytes:|
    meter.operations = pairs * trips
    stock.call(meter, beside ? idle : 0, pairs, trips, bytes, Thread.method(:new), :value)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, idle:, beside:, pairs:, trips:, bytes:|
    meter.operations = pairs * trips
    Sync { |task| stock.call(meter, beside ? idle : 0, pairs, trips, bytes, task.method(:async), :wait) }
  end

  # The stock classes in strands.
  contender "ringspun fs", requires: "ringspun" do |meter, idle:, beside:, pairs:, trips:, bytes:|
    meter.operations = pairs * trips
    Ringspun.run { |machine| stock.call(meter, beside ? idle : 0, pairs, trips, bytes, machine.method(:spin), :await) }
  end

  # A strand for each, and the machine's own calls on descriptors.
  contender "ringspun", requires: "ringspun" do |meter, idle:, beside:, pairs:, trips:, bytes:|
    meter.operations = pairs * trips
    Ringspun.run do |machine|
      listener = machine.socket(:INET, :STREAM)
      machine.bind(listener, Bench::Clients::LOOPBACK)
      machine.listen(listener, Bench::Clients::BACKLOG)
      waiting = []
      armed = 0
      accept = lambda do
        connection = machine.accept(listener)
        waiting << machine.spin do
          armed += 1
          machine.recv(connection, String.new(capacity: bytes), bytes) && false
        rescue Errno::ECONNRESET
          true
        ensure
          machine.close(connection)
        end
      end
      settle = -> { machine.sleep(0.01) while armed < waiting.size }
      ended = -> { waiting.count(&:await) }
      ends = Array.new(pairs) { machine.socketpair(:UNIX, :STREAM) }
      Bench::Clients.among_idle(meter, beside ? idle : 0, Bench::Clients.port_of(listener), accept, settle, ended) do
        meter.measure do
          talks = ends.each_with_index.map do |(near, far), index|
            payload = Bench.payload(index, bytes)
            machine.spin do
              buffer = String.new(capacity: bytes)
              trips.times do
                machine.recv(far, buffer, bytes)
                machine.send(far, buffer)
              end
            end
            machine.spin do
              buffer = String.new(capacity: bytes)
              trips.times.count do
                machine.send(near, payload)
                machine.recv(near, buffer, bytes)
                buffer == payload
              end
            end
          end
          { intact: talks.sum(&:await) }
        end
      end
    ensure
      [listener, *ends&.flatten].compact.each { |fd| machine.close(fd) }
    end
  end

  floor("messages.c") { |pairs:, trips:, bytes:, **| [pairs, trips, bytes, 2] }

  targets "cpu_ns <= 1.1 x ringspun epoll"
end
