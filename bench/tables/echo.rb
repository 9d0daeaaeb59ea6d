# frozen_string_literal: true

require "socket"
require "bench/clients"

# The stock classes, which threads and Async's scheduler share. The echo ends after its last message, and needs no end of the
# stream.
stock_connection = lambda do |connection, trips, bytes, start|
  near, far = UNIXSocket.pair
  payload = Bench.payload(connection, bytes)
  echo = start.call do
    buffer = String.new(capacity: bytes)
    trips.times { far.send(far.recv(bytes, 0, buffer), 0) }
    far.close
  end
  talk = start.call do
    buffer = String.new(capacity: bytes)
    intact = 0
    trips.times do
      near.send(payload, 0)
      intact += 1 if near.recv(bytes, 0, buffer) == payload
    end
    near.close
    intact
  end
  [echo, talk]
end

Bench.table "echo" do
  title "Echo"
  about "N connections over unix socket pairs, each with a strand at either end: one sends 64 bytes and waits for them, the " \
        "other sends back what it gets. An operation is the whole round trip."
  size trips: 128_000, bytes: 64
  quick trips: 2_000
  warm_up trips: 1_000
  row "N=1", quick: false, connections: 1
  row "N=64", connections: 64
  row "N=1,000", quick: false, connections: 1_000
  # A connection takes two descriptors, and has trips enough that making it is little of them.
  most = Bench::Clients.affordable(16_000) / 2
  scale("connections", :connections, 1, 10, 100, 1_000, most, most: { "threads" => 1_000 }) do |connections|
    { trips: [32_000, connections * 32].max }
  end
  proof { |connections:, trips:, **| { intact: trips / connections * connections } }
  columns :real_ns, :cpu_ns, :rate, :syscalls
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns
  syscalls(:trips, few: 1_000, many: 2_000) { |connections:, trips:, **| trips / connections * connections }

  # A thread for each end. Fewer trips, because for each the kernel switches threads twice.
  contender "threads", size: { trips: 32_000 } do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      started = connections.times.flat_map { |index| stock_connection.call(index, trips, bytes, Thread.method(:new)) }
      { intact: started.each(&:join).each_slice(2).sum { |_, talk| talk.value } }
    end
  end

  # A task for each end.
  contender "async", requires: "async" do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      Sync do |task|
        started = connections.times.flat_map { |index| stock_connection.call(index, trips, bytes, task.method(:async)) }
        { intact: started.each(&:wait).each_slice(2).sum { |_, talk| talk.wait } }
      end
    end
  end

  # A task for each end, and the buffered streams of io-stream.
  contender "io-stream", requires: File.join(Bench::ROOT, "bench/peers/io_stream") do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      Sync do |task|
        talks = connections.times.map do |index|
          near, far = UNIXSocket.pair.map { |socket| IO::Stream::Buffered.wrap(socket) }
          payload = Bench.payload(index, bytes)
          task.async do
            trips.times { far.write(far.read_exactly(bytes), flush: true) }
            far.close
          end
          task.async do
            intact = 0
            trips.times do
              near.write(payload, flush: true)
              intact += 1 if near.read_exactly(bytes) == payload
            end
            near.close
            intact
          end
        end
        { intact: talks.sum(&:wait) }
      end
    end
  end

  # A handler for each end, called with the bytes that have come. A payload arrives in one piece.
  contender "eventmachine", requires: "eventmachine" do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    echo = Module.new { define_method(:receive_data) { |data| send_data(data) } }
    talk = Module.new do
      define_method(:initialize) do |payload, tally|
        super()
        @payload = payload
        @tally = tally
        @left = trips
      end
      define_method(:post_init) { send_data(@payload) }
      define_method(:receive_data) do |data|
        @tally[:intact] += 1 if data == @payload
        (@left -= 1).positive? ? send_data(@payload) : close_connection
      end
      define_method(:unbind) { |*| EM.stop if (@tally[:open] -= 1).zero? }
    end
    tally = { intact: 0, open: connections }
    meter.measure do
      EM.epoll
      EM.run do
        connections.times do |index|
          near, far = UNIXSocket.pair
          EM.attach(far, echo)
          EM.attach(near, talk, Bench.payload(index, bytes), tally)
        end
      end
      tally.slice(:intact)
    end
  end

  # The stock classes in strands.
  contender "ringspun fs", requires: "ringspun", backends: %w[uring epoll] do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      Ringspun.run do |machine|
        started = connections.times.flat_map { |index| stock_connection.call(index, trips, bytes, machine.method(:spin)) }
        { intact: started.each(&:await).each_slice(2).sum { |_, talk| talk.await } }
      end
    end
  end

  # The least that the stock classes take: one thread makes the calls of a round trip, of which two find nothing yet, and nobody
  # waits for anything.
  reference "stock calls" do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      pairs = Array.new(connections) { |index| [*UNIXSocket.pair, Bench.payload(index, bytes)] }
      buffer = String.new(capacity: bytes)
      intact = 0
      trips.times do
        pairs.each do |near, far, payload|
          far.recv_nonblock(bytes, 0, buffer, exception: false)
          near.send(payload, 0)
          near.recv_nonblock(bytes, 0, buffer, exception: false)
          far.send(far.recv(bytes, 0, buffer), 0)
          intact += 1 if near.recv(bytes, 0, buffer) == payload
        end
      end
      pairs.each { |near, far, _| [near, far].each(&:close) }
      { intact: }
    end
  end

  # A strand for each end, and streams.
  contender "ringspun streams", requires: "ringspun" do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      Ringspun.run do |machine|
        talks = connections.times.map do |index|
          near, far = machine.socketpair(:UNIX, :STREAM).map { |descriptor| Ringspun::Stream.new(descriptor) }
          payload = Bench.payload(index, bytes)
          machine.spin do
            buffer = String.new(capacity: bytes)
            trips.times { far.write(far.read(bytes, buffer)) }
            far.close
          end
          machine.spin do
            buffer = String.new(capacity: bytes)
            intact = trips.times.count { near.write(payload) && near.read(bytes, buffer) == payload }
            near.close
            intact
          end
        end
        { intact: talks.sum(&:await) }
      end
    end
  end

  # A fiber for each end, and UringMachine's own calls on descriptors.
  contender "uringmachine", requires: "uringmachine" do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      machine = UM.new
      intact = 0
      fibers = connections.times.flat_map do |index|
        near, far = UM.socketpair(UM::AF_UNIX, UM::SOCK_STREAM, 0)
        payload = Bench.payload(index, bytes)
        echo = machine.spin do
          buffer = String.new(capacity: bytes)
          trips.times { machine.send(far, buffer, machine.recv(far, buffer, bytes, 0), 0) }
          machine.close(far)
        end
        talk = machine.spin do
          buffer = String.new(capacity: bytes)
          trips.times do
            machine.send(near, payload, bytes, 0)
            machine.recv(near, buffer, bytes, 0)
            intact += 1 if buffer == payload
          end
          machine.close(near)
        end
        [echo, talk]
      end
      machine.join(*fibers)
      { intact: }
    end
  end

  # A strand for each end, and the machine's own calls on descriptors.
  contender "ringspun", requires: "ringspun" do |meter, connections:, trips:, bytes:|
    trips /= connections
    meter.operations = trips * connections
    meter.measure do
      Ringspun.run do |machine|
        talks = connections.times.map do |index|
          near, far = machine.socketpair(:UNIX, :STREAM)
          payload = Bench.payload(index, bytes)
          machine.spin do
            buffer = String.new(capacity: bytes)
            trips.times do
              machine.recv(far, buffer, bytes)
              machine.send(far, buffer)
            end
            machine.close(far)
          end
          machine.spin do
            buffer = String.new(capacity: bytes)
            intact = 0
            trips.times do
              machine.send(near, payload)
              machine.recv(near, buffer, bytes)
              intact += 1 if buffer == payload
            end
            machine.close(near)
            intact
          end
        end
        { intact: talks.sum(&:await) }
      end
    end
  end

  messages = ->(connections:, trips:, bytes:) { [connections, trips / connections, bytes, 2] }
  floor("messages.c", &messages)
  ring_floor("messages.c", &messages)

  targets "cpu_ns <= 2 x best floor", "cpu_ns <= 1.1 x ringspun epoll", "ringspun fs: cpu_ns <= 1.03 x async",
          "ringspun fs: syscalls <= 1.03 x async",
          "ringspun fs: syscalls <= 6.5 at N=64", "ringspun fs: syscalls <= 6.5 at N=1,000",
          "ringspun fs epoll: syscalls <= 9.0 at N=64", "ringspun fs epoll: syscalls <= 9.0 at N=1,000",
          "ringspun streams: cpu_ns <= 0.5 x io-stream at N=64", "ringspun streams: cpu_ns <= 0.5 x io-stream at N=1,000",
          "ringspun streams: cpu_ns <= 2.5 x floor at N=64", "ringspun streams: cpu_ns <= 2.5 x floor at N=1,000"
end
