# frozen_string_literal: true

require "bench/tls_clients"

connection = lambda do |index, context, trips, bytes, start|
  near, far = UNIXSocket.pair
  payload = Bench.payload(index, bytes)
  echo = start.call do
    server = OpenSSL::SSL::SSLSocket.new(far, context).tap { |socket| socket.sync_close = true }
    server.accept
    trips.times { server.write(server.readpartial(bytes)) }
    server.close
  end
  talk = start.call do
    client = OpenSSL::SSL::SSLSocket.new(near, OpenSSL::SSL::SSLContext.new).tap { |socket| socket.sync_close = true }
    client.connect
    intact = trips.times.count { client.write(payload) && client.readpartial(bytes) == payload }
    client.close
    intact
  end
  [echo, talk]
end

stock = lambda do |meter, connections, trips, bytes, start, finish|
  trips /= connections
  meter.operations = trips * connections
  context = Bench::TlsClients.context
  meter.measure do
    started = connections.times.flat_map { |index| connection.call(index, context, trips, bytes, start) }
    { intact: started.map(&finish).each_slice(2).sum(&:last) }
  end
end

Bench.table "tls" do
  title "TLS echo"
  about "N connections over unix socket pairs with TLS by Ruby's openssl, each with a strand at either end: one sends 64 bytes " \
        "and waits for them. An operation is the whole round trip; the handshakes are among them."
  size trips: 32_000, bytes: 64
  quick trips: 1_280
  warm_up trips: 64
  row "N=64", connections: 64
  proof { |connections:, trips:, **| { intact: trips / connections * connections } }
  columns :real_ns, :cpu_ns, :rate
  against_peer :cpu_ns, :real_ns

  # A thread for each end.
  contender "threads" do |meter, connections:, trips:, bytes:|
    stock.call(meter, connections, trips, bytes, Thread.method(:new), :value)
  end

  # A task for each end.
  contender "async", requires: "async" do |meter, connections:, trips:, bytes:|
    Sync { |task| stock.call(meter, connections, trips, bytes, task.method(:async), :wait) }
  end

  # A strand for each end.
  contender "ringspun", requires: "ringspun" do |meter, connections:, trips:, bytes:|
    Ringspun.run { |machine| stock.call(meter, connections, trips, bytes, machine.method(:spin), :await) }
  end

  targets "cpu_ns <= 1.0 x async", "cpu_ns <= 1.1 x ringspun epoll"
end
