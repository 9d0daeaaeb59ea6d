# frozen_string_literal: true

require "bench/libpq_program"
require "bench/small_statements"

Bench.table "pg_batch" do
  title "Postgres, batches of 64"
  about "`select $1::int`, prepared, on one connection over a Unix socket: `pg` asks one after the other, `pg pipelined` 64 at " \
        "once in the pipeline mode of that gem, with one Sync behind them, as the floor does, which is libpq in C."
  size statements: 40_960, batch: 64
  quick statements: 2_560
  warm_up statements: 512
  beforehand { |**| Bench::PostgresServer.start }
  proof { |statements:, **| { answered: statements } }
  columns :real_ns, :cpu_ns, :backend_ns, :rate
  against_floor :cpu_ns
  against_peer :real_ns, :cpu_ns

  contender "ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND] do |meter, statements:, batch:|
    Bench::PostgresServer.client do |client, _|
      statement = client.prepare(Bench::SmallStatements::SQL)
      2.times { statement.query(0) }
      meter.operations = statements
      answered = Bench::PostgresServer.start.measure(meter) do
        statements.times.each_slice(batch).sum do |numbers|
          results = client.batch { |group| numbers.each { |number| group.query(statement.sql, number) } }
          results.zip(numbers).count { |result, number| result.value == number }
        end
      end
      { answered: }
    end
  end

  contender "pg", requires: "pg" do |meter, statements:, **|
    Bench::SmallStatements.new(meter, *Bench::SmallStatements::ALONE, strands: 1, statements:)
                          .by_pg(1, Bench::PostgresServer.start.options)
  end

  contender "pg pipelined", requires: "pg" do |meter, statements:, batch:|
    connection = PG.connect(Bench::PostgresServer.start.options)
    connection.prepare("small", Bench::SmallStatements::SQL)
    connection.enter_pipeline_mode
    meter.operations = statements
    answered = Bench::PostgresServer.start.measure(meter) do
      statements.times.each_slice(batch).sum do |numbers|
        numbers.each { |number| connection.send_query_prepared("small", [number]) }
        connection.pipeline_sync
        right = numbers.count do |number|
          value = connection.get_result.getvalue(0, 0)
          connection.get_result # nil, the end of its results
          value == number.to_s
        end
        connection.get_result # the Sync's
        right
      end
    end
    { answered: }
  ensure
    connection&.close
  end

  bare "libpq" do |meter, statements:, batch:|
    Bench::LibpqProgram.measure(meter, Bench::PostgresServer.start.options, :batches, statements, batch)
  end

  targets "rate >= 7 x pg", "cpu_ns <= 0.06 x pg"
end
