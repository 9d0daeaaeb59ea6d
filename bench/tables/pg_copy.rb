# frozen_string_literal: true

require "bench/copies"

ours = lambda do |meter, way, times:, rows:, values:, **|
  Bench::PostgresServer.client(**Bench::PostgresServer.start.options) do |client, _|
    source = values ? Bench::Copies.rows(rows) : Bench::Copies.chunks(rows)
    { rows: Bench::Copies.measure(meter, times, rows) do
      next client.copy_in(Bench::Copies::IN, source) if way.to_s == "in"

      client.copy_out(Bench::Copies.out(rows), as: values ? :array : :bytes) { |_| nil }
    end }
  end
end
copy_in = lambda do |connection, rows, values|
  source = values ? Bench::Copies.rows(rows) : Bench::Copies.chunks(rows)
  connection.copy_data(Bench::Copies::IN, *(Bench::Copies.encoder if values)) do
    source.each { |item| connection.put_copy_data(item) }
  end.cmd_tuples
end
copy_out = lambda do |connection, rows, values|
  taken = 0
  connection.copy_data(Bench::Copies.out(rows), *(Bench::Copies.decoder if values)) { taken += 1 while connection.get_copy_data }
  taken
end
pg = lambda do |meter, way, times:, rows:, values:, **|
  connection = PG.connect(Bench::PostgresServer.start.options)
  Bench::Copies.rows(rows)
  Bench::Copies.chunks(rows)
  { rows: Bench::Copies.measure(meter, times, rows) { (way.to_s == "in" ? copy_in : copy_out).call(connection, rows, values) } }
ensure
  connection&.close
end
floor = lambda do |meter, way, times:, rows:, **|
  server = Bench::PostgresServer.start
  server.ask("truncate #{Bench::Copies::TABLE}")
  sql = way.to_s == "in" ? Bench::Copies::IN : Bench::Copies.out(rows)
  Bench::LibpqProgram.measure(meter, server.options, :copies, way, times, rows, sql)
end

Bench.table "pg_copy" do
  title "Postgres, COPY"
  about "80,000 rows of an Integer, a String of 17 bytes and a Time, in and out. `rows`: from and to Arrays of such values, in " \
        "`pg` with its coders of rows. `bytes`: text as it is, in pieces of 64 KB; `pg` gives out a row at a time. The floor " \
        "is libpq in C, with text as it is in all of them."
  size times: 4, rows: 80_000
  quick times: 1
  warm_up times: 1, rows: 80_000
  row "rows in", way: :in, values: true
  row "rows out", way: :out, values: true
  row "bytes in", way: :in, values: false
  row "bytes out", way: :out, values: false
  beforehand { |rows:, **| Bench::Copies.prepare(rows) }
  proof { |times:, rows:, **| { rows: times * rows } }
  columns :real_ns, :cpu_ns, :backend_ns, :rate
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns

  contender("ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND]) { |meter, way:, **size| ours.call(meter, way, **size) }
  contender("pg", requires: "pg") { |meter, way:, **size| pg.call(meter, way, **size) }
  bare("libpq") { |meter, way:, **size| floor.call(meter, way, **size) }

  targets "cpu_ns <= 0.6 x pg at rows in", "rate >= 0.7 x libpq at rows in", "cpu_ns <= 0.6 x pg at rows out",
          "rate >= 0.7 x libpq at rows out", "cpu_ns <= 1.0 x pg at bytes in", "rate >= 0.9 x libpq at bytes in",
          "cpu_ns <= 1.0 x pg at bytes out", "rate >= 0.9 x libpq at bytes out"
end
