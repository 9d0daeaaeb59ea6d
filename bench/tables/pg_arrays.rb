# frozen_string_literal: true

require "bench/postgres_server"

Bench.table "pg_arrays" do
  title "Postgres, array parameters"
  about "Rows that are sent as four arrays, of integers, texts, floats and timestamps, and counted by `unnest`. `pg` makes the " \
        "arrays with its PG::TextEncoder::Array, and asks by exec_params. An operation is a row."
  size rows: 100_000
  quick rows: 10_000
  warm_up rows: 1_000
  beforehand { |**| Bench::PostgresServer.start }
  proof { |rows:, **| { counted: rows } }
  columns :real_ns, :cpu_ns, :backend_ns
  against_peer :real_ns, :cpu_ns

  sql = "select count(*) from unnest($1::int[], $2::text[], $3::float8[], $4::timestamptz[])"
  arrays = lambda do |rows|
    random = Random.new(1)
    [Array.new(rows) { random.rand(1 << 30) }, Array.new(rows) { |number| "the \"name\" of #{number}" },
     Array.new(rows) { random.rand }, Array.new(rows) { |number| Time.at(1_700_000_000 + number, number, :usec).utc }]
  end

  contender "ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND] do |meter, rows:|
    given = arrays.call(rows)
    Bench::PostgresServer.client do |client, _|
      2.times { client.query_value(sql, *given.map { |array| array.first(1) }) }
      meter.operations = rows
      { counted: Bench::PostgresServer.start.measure(meter) { client.query_value(sql, *given) } }
    end
  end

  contender "pg", requires: "pg" do |meter, rows:|
    given = arrays.call(rows)
    types = %i[Integer String Float TimestampUtc].map { |name| PG::TextEncoder.const_get(name) }
    encoders = types.map { |type| PG::TextEncoder::Array.new(elements_type: type.new) }
    connection = PG.connect(Bench::PostgresServer.start.options)
    connection.exec("set timezone = 'UTC'")
    ask = ->(some) { connection.exec_params(sql, some.zip(encoders).map { |array, one| one.encode(array) }).getvalue(0, 0).to_i }
    2.times { ask.call(given.map { |array| array.first(1) }) }
    meter.operations = rows
    { counted: Bench::PostgresServer.start.measure(meter) { ask.call(given) } }
  ensure
    connection&.close
  end

  targets "cpu_ns <= 1.2 x pg"
end
