# frozen_string_literal: true

require "bench/libpq_program"
require "bench/row_streams"

# So many streams by so many strands, each with a connection of its own, which `connect` makes.
stream = lambda do |meter, start, finish, connect, streams:, strands:, rows:, table:|
  server = Bench::PostgresServer.start
  sql = "select * from #{Bench::PostgresServer.resources(table)}"
  meter.operations = streams * rows
  server.measure(meter) do
    started = Array.new(strands) do
      start.call do
        connection = connect.call(server.options)
        taken = (streams / strands).times.sum { Bench::RowStreams.first_rows(connection, sql, rows) }
        connection.close
        taken
      end
    end
    { rows: started.sum(&finish) }
  end
end
by_pg = ->(options) { PG.connect(options) }

Bench.table "pg_streams" do
  title "Postgres, streams with reset"
  about "A x B: so often, so many strands read the first 5,000 rows of a table of 80,000, of 1.5 KB each, in single-row mode, " \
        "and then reset their connection, as the seed has it, with the same code for all. The floor is libpq in C, one stream " \
        "after the other."
  size streams: 400, rows: 5_000, table: 80_000
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
      Bench::PostgresServer.start.measure(meter) do
        started = Array.new(strands) do
          machine.spin do
            (streams / strands).times.sum { client.stream(sql, as: :hash).take(rows).size }
          end
        end
        { rows: machine.await(started).sum }
      end
    end
  end

  contender "threads", requires: "pg" do |meter, **size|
    stream.call(meter, Thread.method(:new), :value.to_proc, by_pg, **size)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, **size|
    require "pg"
    Sync { |task| stream.call(meter, task.method(:async), :wait.to_proc, by_pg, **size) }
  end

  # A fiber for each, as in the seed.
  contender "em-pg-client", requires: Bench::PEER_EM_PG_CLIENT do |meter, **size|
    connect = ->(options) { PG::EM::Client.new(options) }
    Bench::EventFiber.run { stream.call(meter, Bench::EventFiber.method(:new), :value.to_proc, connect, **size) }
  end

  # A strand for each, and pg by our scheduler.
  contender "ringspun fs", requires: "ringspun" do |meter, **size|
    require "pg"
    Ringspun.run { |machine| stream.call(meter, machine.method(:spin), :await.to_proc, by_pg, **size) }
  end

  bare "libpq" do |meter, streams:, rows:, table:, **|
    server = Bench::PostgresServer.start
    sql = "select * from #{Bench::PostgresServer.resources(table)}"
    Bench::LibpqProgram.measure(meter, server.options, :resets, :single, streams, rows, sql)
  end
end
