# frozen_string_literal: true

require "bench/libpq_program"
require "bench/row_streams"

names = %w[id cdate kind name size body]

# Reads one field of each row, which the block takes from the row.
read = lambda do |meter, way, streams:, rows:, table:, column:, **, &field|
  server = Bench::PostgresServer.start
  connection = PG.connect(server.options)
  sql = "select * from #{Bench::PostgresServer.resources(table)} limit #{rows}"
  taken = bytes = 0
  meter.operations = streams * rows
  server.measure(meter) do
    streams.times do
      Bench::RowStreams.public_send(way, connection, sql) do |row|
        taken += 1
        bytes += field.call(row, column).bytesize
      end
    end
  end
  { rows: taken, bytes: }
ensure
  connection&.close
end
ours = lambda do |meter, streams:, rows:, table:, column:, whole:, machine: {}, **|
  sql = "select * from #{Bench::PostgresServer.resources(table)} limit #{rows}"
  taken = bytes = 0
  meter.operations = streams * rows
  Bench::PostgresServer.client(machine:) do |client, _|
    Bench::PostgresServer.start.measure(meter) do
      streams.times do
        client.stream(sql, as: whole ? :array : :row) do |row|
          taken += 1
          bytes += row[column].bytesize
        end
      end
    end
  end
  { rows: taken, bytes: }
end
floor = lambda do |meter, how, streams:, rows:, table:, column:, **|
  sql = "select * from #{Bench::PostgresServer.resources(table)} limit #{rows}"
  Bench::LibpqProgram.measure(meter, Bench::PostgresServer.start.options, :rows, how, streams, column + 1, sql)
end

Bench.table "pg_rows" do
  title "Postgres, rows one by one"
  about "Streams of 5,000 rows of six columns and 1.5 KB, on one connection. `arrays`: all columns of each row are made into " \
        "Strings. `one column`: the name of each is read, and what is made beside it is up to the client. The floors are libpq " \
        "in C, which makes nothing, in single-row mode and with up to 256 rows at once."
  size streams: 40, rows: 5_000, table: 80_000
  quick streams: 4, table: 8_000
  warm_up streams: 2, rows: 100, table: 200
  row "arrays", quick: false, whole: true, column: 5, field_bytes: Bench::PostgresServer::BODY_BYTES
  row "one column", whole: false, column: 3, field_bytes: Bench::PostgresServer::NAME_BYTES
  scale "rows", :rows, 1_000, 5_000, 20_000, 80_000, streams: 4, whole: false, column: 3,
                                                     field_bytes: Bench::PostgresServer::NAME_BYTES
  beforehand { |table:, **| Bench::PostgresServer.start.resources(table) }
  proof { |streams:, rows:, field_bytes:, **| { rows: streams * rows, bytes: streams * rows * field_bytes } }
  columns :real_ns, :cpu_ns, :backend_ns, :rate
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns

  contender("ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND]) { |meter, **size| ours.call(meter, **size) }
  # The machine sleeps as soon as it has nothing to do.
  beside("no busy_poll", requires: "ringspun") do |meter, **size|
    ours.call(meter, machine: { busy_poll: false }, **size)
  end

  contender "stream_each_row", requires: "pg" do |meter, **size|
    read.call(meter, :by_row, **size) { |row, column| row[column] }
  end
  contender "stream_each_row chunked", requires: "pg" do |meter, **size|
    read.call(meter, :by_chunks, **size) { |row, column| row[column] }
  end
  contender "stream_each_tuple", requires: "pg" do |meter, whole:, **size|
    read.call(meter, :by_tuple, **size) { |row, column| whole ? row.values[column] : row[column] }
  end
  contender "seed's form", requires: "pg" do |meter, **size|
    read.call(meter, :by_results, **size) { |row, column| row[names[column]] }
  end

  bare("libpq single row") { |meter, **size| floor.call(meter, :single, **size) }
  bare("libpq chunked") { |meter, **size| floor.call(meter, :chunked, **size) }

  targets "no busy_poll: cpu_ns <= 0.65 x stream_each_row at arrays", "cpu_ns <= 0.85 x stream_each_row at arrays",
          "cpu_ns <= 0.5 x seed's form at arrays", "cpu_ns <= 0.4 x stream_each_tuple at one column",
          "rate >= 0.95 x libpq single row at one column", "rate >= 0.95 x libpq chunked at one column"
end
