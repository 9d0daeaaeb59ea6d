# frozen_string_literal: true

require "bench/side_by_side"

# Strands with a connection each take the next chunk until there is none, and keep the rows.
retrieve = lambda do |meter, start, finish, connect, rows:, chunk:, connections:|
  server = Bench::PostgresServer.start
  sql = "select * from #{Bench::PostgresServer.resources(rows)} order by cdate limit $1 offset $2"
  open = Array.new(connections) { connect.call(server.options) }
  offsets = rows.step(by: -chunk, to: 1).map { |left| rows - left }
  kept = []
  server.measure(meter) do
    open.map do |connection|
      start.call do
        while (offset = offsets.shift)
          kept[offset, chunk] = connection.exec_params(sql, [chunk, offset]) { |result| result.values }
        end
      end
    end.each(&finish)
  end
  { in_order: kept.each_with_index.count { |row, index| row[0] == (index + 1).to_s } }
ensure
  open&.each(&:close)
end
one_by_one = [->(&work) { work.call }, :itself.to_proc].freeze

Bench.table "pg_parallel" do
  title "Postgres, a whole table in chunks"
  about "All 80,000 rows of a table, of 1.5 KB each, by queries with limit and offset, as the seed has it: rows of a chunk, " \
        "and connections that take the next chunk side by side. The seed does it a hundred times on the same connections, so " \
        "they are made before. `single` is pg by one query, which is less work for the server and stands beside the table; " \
        "`blocking` is pg without anything that would do it side by side, " \
        "`em-pg-client blocking` that client with the seed's patch. The floor is libpq in C, by one query."
  size rows: 80_000
  quick rows: 8_000
  warm_up rows: 200
  row "90000/1", chunk: 90_000, connections: 1, quick: false
  row "5000/5", chunk: 5_000, connections: 5, quick: false
  row "2000/10", chunk: 2_000, connections: 10
  row "1000/20", chunk: 1_000, connections: 20, quick: false
  beforehand { |rows:, **| Bench::PostgresServer.start.resources(rows) }
  proof { |rows:, **| { in_order: rows } }
  columns :user, :system, :total, :backend, :real

  # A strand and a session for each connection.
  contender "ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND] do |meter, rows:, chunk:, connections:|
    sql = "select * from #{Bench::PostgresServer.resources(rows)} order by cdate limit $1 offset $2"
    offsets = rows.step(by: -chunk, to: 1).map { |left| rows - left }
    kept = []
    Bench::PostgresServer.client(max: connections) do |client, machine|
      ready = Ringspun::Barrier.new(connections + 1)
      started = Array.new(connections) do
        machine.spin do
          client.session do |session|
            session.query("select 1") # connects
            ready.wait
            while (offset = offsets.shift)
              kept[offset, chunk] = session.query(sql, chunk, offset).rows
            end
          end
        end
      end
      ready.wait
      Bench::PostgresServer.start.measure(meter) { machine.await(started) }
    end
    { in_order: kept.each_with_index.count { |row, index| row[0] == index + 1 } }
  end

  # The seed's first line: all rows by one query, in each row of the table. Chunks are what the others are asked for, so it is
  # nobody's peer.
  reference "single", requires: "pg" do |meter, rows:, **|
    server = Bench::PostgresServer.start
    connection = PG.connect(server.options)
    sql = "select * from #{Bench::PostgresServer.resources(rows)} order by cdate"
    kept = server.measure(meter) { connection.exec(sql, &:values) }
    { in_order: kept.each_with_index.count { |row, index| row[0] == (index + 1).to_s } }
  ensure
    connection&.close
  end

  contender "blocking", requires: "pg" do |meter, **size|
    retrieve.call(meter, *one_by_one, Bench::SideBySide::BY_PG, **size)
  end

  Bench::SideBySide.contend(self, &retrieve)

  patch = -> { PG::EM::Client::Watcher.prepend(Bench::BlockingResults) }
  Bench::SideBySide.contend_in_reactor(self, "em-pg-client blocking", patch, &retrieve)

  bare "libpq" do |meter, rows:, **|
    sql = "select * from #{Bench::PostgresServer.resources(rows)} order by cdate"
    taken = Bench::LibpqProgram.measure(meter, Bench::PostgresServer.start.options, :rows, :whole, 1, 1, sql)
    { in_order: taken.fetch(:rows) }
  end

  targets "real <= 1.0 x threads", "total <= 0.7 x threads", "real <= 1.0 x em-pg-client", "total <= 1.0 x em-pg-client",
          "blocking: real >= 1.15 x ringspun at 5000/5 and 2000/10 and 1000/20"
end
