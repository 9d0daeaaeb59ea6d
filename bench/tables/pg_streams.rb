# frozen_string_literal: true

require "bench/side_by_side"

Bench.table "pg_streams" do
  title "Postgres, streams with reset"
  about "A x B: so often, so many strands side by side read the first 5,000 rows of a table of 80,000, of 1.5 KB each, in " \
        "single-row mode, and then reset their connection, as the seed has it; ours cancels the statement instead, as `pg with " \
        "cancel` does, which is pg in a task of Async for each strand, with PG::Connection#cancel. All " \
        "connect within the measured region. A is a fifth of what the row says, unless --size streams=400 asks for all. The " \
        "floor is libpq in C, one stream after the other."
  size streams: 80, rows: 5_000, table: 80_000
  quick streams: 40, rows: 500, table: 8_000
  warm_up streams: 40, rows: 20, table: 200
  [1, 5, 10, 20, 40].each { |strands| row "#{400 / strands}x#{strands}", strands:, quick: strands == 40 }
  beforehand { |table:, **| Bench::PostgresServer.start.resources(table) }
  proof { |streams:, rows:, **| { rows: streams * rows } }
  columns :user, :system, :total, :backend, :real

  # Cancels the statement, instead of a reset of the connection.
  contender "ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND] do |meter, streams:, strands:, rows:, table:|
    sql = "select * from #{Bench::PostgresServer.resources(table)}"
    meter.operations = streams * rows
    Bench::PostgresServer.client(max: strands) do |client, machine|
      first_rows = lambda do
        taken = 0
        client.stream(sql, as: :hash) { break if (taken += 1) == rows }
        taken
      end
      Bench::PostgresServer.start.measure(meter) do
        { rows: (streams / strands).times.sum { machine.await(Array.new(strands) { machine.spin(&first_rows) }).sum } }
      end
    end
  end

  read = lambda do |way, meter, start, finish, connect, streams:, strands:, rows:, table:|
    server = Bench::PostgresServer.start
    sql = "select * from #{Bench::PostgresServer.resources(table)}"
    meter.operations = streams * rows
    server.measure(meter) do
      open = []
      taken = (streams / strands).times.sum do
        started = Array.new(strands) do |strand|
          start.call { Bench::RowStreams.public_send(way, open[strand] ||= connect.call(server.options), sql, rows) }
        end
        started.sum(&finish)
      end
      open.each(&:close)
      { rows: taken }
    end
  end

  Bench::SideBySide.contend(self) { |*connected, **size| read.call(:first_rows, *connected, **size) }

  contender "pg with cancel", requires: "async" do |meter, **size|
    require "pg"
    Sync do |task|
      read.call(:first_rows_and_cancel, meter, task.method(:async), :wait.to_proc, Bench::SideBySide::BY_PG, **size)
    end
  end

  bare "libpq" do |meter, streams:, rows:, table:, **|
    server = Bench::PostgresServer.start
    sql = "select * from #{Bench::PostgresServer.resources(table)}"
    Bench::LibpqProgram.measure(meter, server.options, :resets, :single, streams, rows, sql)
  end

  targets "real at 10x40 <= 1.1 x at 400x1", "real <= 0.75 x threads at 40x10", "total <= 1.0 x pg with cancel"
end
