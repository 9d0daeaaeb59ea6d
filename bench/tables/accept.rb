# frozen_string_literal: true

require "socket"
require "bench/clients"

# The region: from the clients' first ticket until the last connection is closed.
storm = lambda do |meter, connections, port, &accept|
  accepted = 0
  Bench::Clients.storm(port, connections) do |clients|
    meter.measure do
      clients.start
      accepted = accept.call(clients)
    end
  end
  meter.operations = accepted
  { accepted: }
end

# The stock classes, which threads and Async's scheduler share.
stock = lambda do |meter, connections|
  server = TCPServer.new("127.0.0.1", 0)
  server.listen(Bench::Clients::BACKLOG)
  storm.call(meter, connections, server.local_address.ip_port) do |clients|
    accepted = 0
    while accepted < connections
      server.accept.close
      accepted += 1
      clients.go_on(accepted)
    end
    accepted
  end
ensure
  server&.close
end

Bench.table "accept" do
  title "Accept storm"
  about "Four client processes connect over TCP as fast as they are taken, and are gone at once; each connection is " \
        "accepted and closed. What the clients cost is not counted."
  size connections: 51_200
  quick connections: 1_024
  warm_up connections: 512
  proof { |connections:| { accepted: connections } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns

  # One thread, which accepts and closes.
  contender("threads") { |meter, connections:| stock.call(meter, connections) }

  # The same loop under the scheduler.
  contender("async", requires: "async") { |meter, connections:| Sync { stock.call(meter, connections) } }

  # And under ours.
  contender("ringspun fs", requires: "ringspun") { |meter, connections:| Ringspun.run { stock.call(meter, connections) } }

  # Machine#accept_each on a socket of the machine's own.
  contender "ringspun", requires: "ringspun" do |meter, connections:|
    Ringspun.run do |machine|
      listener = machine.socket(:INET, :STREAM)
      machine.bind(listener, Bench::Clients::LOOPBACK)
      machine.listen(listener, Bench::Clients::BACKLOG)
      storm.call(meter, connections, Bench::Clients.port_of(listener)) do |clients|
        accepted = 0
        machine.accept_each(listener) do |connection|
          machine.close(connection)
          accepted += 1
          clients.go_on(accepted)
          break accepted if accepted == connections
        end
      end
    ensure
      machine.close(listener)
    end
  end

  floor("connections.c") { |connections:| ["serve", connections] }

  targets "cpu_ns <= 0.8 x ringspun epoll"
end
