# frozen_string_literal: true

require "bench/row_streams"

# Notes by how much the process grows at most. The block gets a connection and a query.
weigh = lambda do |meter, rows:, hold:, **, &take|
  server = Bench::PostgresServer.start
  table = Bench::PostgresServer.resources(rows)
  connection = PG.connect(server.options)
  bytes = connection.exec("select sum(length(concat(id, cdate, kind, name, size, body))) from #{table}").getvalue(0, 0).to_i
  taken = 0
  held = meter.growth_at_most do
    taken = server.measure(meter) { take.call(connection, "select * from #{table}", hold) }
  end
  meter.operations = rows
  meter.note(:held, held)
  meter.note(:held_ratio, held.fdiv(bytes))
  { rows: taken }
ensure
  connection&.close
end
streamed = lambda do |way|
  lambda do |connection, sql, hold|
    kept = []
    taken = 0
    Bench::RowStreams.public_send(way, connection, sql) do |row|
      taken += 1
      kept << row if hold
    end
    taken
  end
end
whole = "it holds all rows"

Bench.table "pg_memory" do
  title "Postgres, memory for rows"
  about "All 80,000 rows of a table, of 1.5 KB each, held at once, or one by one without being kept. `held` is what the " \
        "process grew by at most, and `held/data` that for each byte of all fields."
  size rows: 80_000
  quick rows: 8_000
  warm_up rows: 200
  row "held", hold: true
  row "streamed", hold: false, skipped: { "PG::Result": whole, "PG::Result#values": whole }
  beforehand { |rows:, **| Bench::PostgresServer.start.resources(rows) }
  proof { |rows:, **| { rows: } }
  columns :held, :held_ratio, :cpu_ns, :backend_ns
  against_peer :held_ratio, :cpu_ns

  contender "ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND] do |meter, rows:, hold:|
    table = Bench::PostgresServer.resources(rows)
    kept = []
    taken = 0
    Bench::PostgresServer.client do |client, _|
      bytes = client.query_value("select sum(length(concat(id, cdate, kind, name, size, body))) from #{table}").to_i
      held = meter.growth_at_most do
        Bench::PostgresServer.start.measure(meter) do
          client.stream("select * from #{table}") do |row|
            taken += 1
            kept << row if hold
          end
        end
      end
      meter.operations = rows
      meter.note(:held, held)
      meter.note(:held_ratio, held.fdiv(bytes))
    end
    { rows: taken }
  end

  contender "PG::Result", requires: "pg" do |meter, **size|
    weigh.call(meter, **size) { |connection, sql, _| connection.exec(sql).ntuples }
  end
  contender "PG::Result#values", requires: "pg" do |meter, **size|
    weigh.call(meter, **size) { |connection, sql, _| connection.exec(sql, &:values).size }
  end
  contender("stream_each_row", requires: "pg") { |meter, **size| weigh.call(meter, **size, &streamed.call(:by_row)) }
  contender("stream_each_tuple", requires: "pg") { |meter, **size| weigh.call(meter, **size, &streamed.call(:by_tuple)) }

  targets "held_ratio <= 1.3 at held", "held_ratio <= 0.1 at streamed", "held_ratio <= 1.2 x stream_each_row at streamed"
end
