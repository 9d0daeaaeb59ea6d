# frozen_string_literal: true

require "bench/postgres_server"

connect = lambda do
  require "pg"
  PG.connect(**Bench::PostgresServer.start.options)
end

ask = ->(connection, number) { connection.exec_params("SELECT $1::int + 1", [number]).getvalue(0, 0) == (number + 1).to_s }

# `start` runs a block beside the others, `finish` awaits its value.
stock = lambda do |meter, connections, queries, start, finish|
  open = Array.new(connections) { connect.call }
  queries /= connections
  meter.operations = connections * queries
  meter.measure do
    started = open.map { |connection| start.call { queries.times.count { |number| ask.call(connection, number) } } }
    { answered: started.sum(&finish) }
  end
ensure
  open&.each(&:close)
end

Bench.table "pg" do
  title "Postgres, by the pg gem"
  about "64 connections to a private Postgres, each with a strand that asks one query after the other. What the server " \
        "needs is not counted; the floor is the same queries on one connection."
  size connections: 64, queries: 19_200
  quick queries: 640, connections: 16
  warm_up queries: 64, connections: 8
  beforehand { |**| Bench::PostgresServer.start }
  proof { |connections:, queries:| { answered: queries / connections * connections } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns

  # A thread for each connection.
  contender "threads", requires: "pg" do |meter, connections:, queries:|
    stock.call(meter, connections, queries, Thread.method(:new), :value)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, connections:, queries:|
    Sync { |task| stock.call(meter, connections, queries, task.method(:async), :wait) }
  end

  # A strand for each.
  contender "ringspun", requires: "ringspun" do |meter, connections:, queries:|
    Ringspun.run { |machine| stock.call(meter, connections, queries, machine.method(:spin), :await) }
  end

  bare "one connection" do |meter, connections:, queries:|
    connection = connect.call
    meter.operations = queries / connections * connections
    meter.measure { { answered: meter.operations.times.count { |number| ask.call(connection, number) } } }
  ensure
    connection&.close
  end

  targets "cpu_ns <= 1.0 x async", "cpu_ns <= 1.1 x ringspun epoll"
end
