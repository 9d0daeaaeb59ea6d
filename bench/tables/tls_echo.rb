# frozen_string_literal: true

require "bench/tls_clients"

# The stock library's sockets: accepts all of them one by one, then serves each beside the others.
stock = lambda do |meter, connections, trips, bytes, start, finish|
  meter.operations = trips * connections
  Bench::TlsClients.during(connections, trips, bytes) do |listener, go|
    context = Bench::TlsClients.context
    sockets = connections.times.map { OpenSSL::SSL::SSLSocket.new(listener.accept, context).tap { |socket| socket.sync_close = true }.accept }
    meter.measure do
      go.call
      echoes = sockets.map do |socket|
        start.call do
          buffer = String.new(capacity: bytes)
          socket.write(buffer) while socket.read(bytes, buffer)
          socket.close
        end
      end
      echoes.each(&finish)
    end
  end
end

Bench.table "tls_echo" do
  title "TLS echo, 16 KB"
  about "A server that sends back messages of 16 KB over 64 TCP connections with TLS 1.3, each message when the last one is " \
        "back. The clients are a program in C in a process of its own; they are not counted, nor are the handshakes. An " \
        "operation is a message, in and out. The floor is one thread with libssl and epoll."
  size trips: 500, bytes: 16_384
  quick trips: 50
  warm_up trips: 4
  row "N=64", connections: 64
  proof { |connections:, trips:, **| { intact: trips * connections } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns

  # A thread for each connection.
  contender "threads" do |meter, connections:, trips:, bytes:|
    stock.call(meter, connections, trips, bytes, Thread.method(:new), :join)
  end

  # A task for each connection.
  contender "async", requires: "async" do |meter, connections:, trips:, bytes:|
    Sync { |task| stock.call(meter, connections, trips, bytes, task.method(:async), :wait) }
  end

  # The stock library in strands.
  contender "ringspun fs", requires: "ringspun" do |meter, connections:, trips:, bytes:|
    Ringspun.run { |machine| stock.call(meter, connections, trips, bytes, machine.method(:spin), :await) }
  end

  # A strand for each connection, and streams. Each message is a new String, where the stock library reads into one String again
  # and again. So each is cleared when it is written, which frees its memory at once instead of at the next collection. Without
  # that a message takes about a third more CPU here: 1.6 to 1.8 times the floor's instead of 1.1 to 1.5.
  contender "ringspun", requires: "ringspun" do |meter, connections:, trips:, bytes:|
    meter.operations = trips * connections
    Bench::TlsClients.during(connections, trips, bytes) do |listener, go|
      context = Bench::TlsClients.context
      Ringspun.run do |machine|
        streams = connections.times.map { Ringspun::Stream.new(machine.accept(listener)).accept_tls(context) }
        meter.measure do
          go.call
          echoes = streams.map do |stream|
            machine.spin do
              while (message = stream.read(bytes))
                stream.write(message)
                message.clear
              end
              stream.close
            end
          end
          machine.join(*echoes)
        end
      end
    end
  end

  floor(Bench::TlsClients::PROGRAM) { |connections:, trips:, bytes:| ["serve", Bench::TlsClients.pem, connections, trips, bytes] }

  targets "cpu_ns <= 1.2 x floor", "cpu_ns <= 0.83 x async", "cpu_ns <= 1.1 x ringspun epoll"
end
