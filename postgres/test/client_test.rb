# frozen_string_literal: true

require "postgres_helper"

# What all clients answer, whoever has the connection: each test for a pool in a strand, in the main program, in a plain thread,
# and for a session and a transaction.
# servers: all
class PostgresClientTest < Minitest::Test
  include OnPool
  include NoNames

  def in_a_strand = on_pool { |pool| yield pool }
  def without_pipelining = on_pool(pipelining: false) { |pool| yield pool }

  # What a test has failed on purpose cannot be committed.
  def rolled_back
    yield
  rescue Postgres::TransactionRolledBack
    @failing or raise
  end

  def in_a_session = on_pool { |pool| pool.session { |session| yield session } }
  def in_a_transaction = on_pool { |pool| rolled_back { pool.transaction { |transaction| yield transaction } } }
  def in_a_savepoint = in_a_transaction { |outer| rolled_back { outer.transaction { |inner| yield inner } } }

  def in_the_main_program
    pool = pool()
    yield pool
  ensure
    pool.close
  end

  def in_a_thread
    in_the_main_program { |pool| Thread.new { yield pool }.tap { |thread| thread.report_on_exception = false }.value }
  end

  def in_a_threads_transaction = in_a_thread { |pool| rolled_back { pool.transaction { |transaction| yield transaction } } }

  PLACES = %i[in_a_strand without_pipelining in_a_session in_a_transaction in_a_savepoint in_the_main_program in_a_thread
              in_a_threads_transaction].freeze

  def self.everywhere(name, &test)
    PLACES.each { |place| define_method("test_#{name}_#{place}") { __send__(place) { |client| instance_exec(client, &test) } } }
  end

  everywhere :a_query_has_rows do |client|
    result = client.query("select g, g::text as t from generate_series(1, $1) g", 3)
    assert_equal [[1, "1"], [2, "2"], [3, "3"]], result.rows
    assert_equal [{ "g" => 1, "t" => "1" }, { "g" => 2, "t" => "2" }, { "g" => 3, "t" => "3" }], result.hashes
    assert_equal [%w[g t], 3, "SELECT 3", 3], [result.columns, result.size, result.tag, result.affected]
  end

  everywhere :rows_are_decoded_when_they_are_asked do |client|
    row = client.query("select 1 as a, null as b, 'x' as a").to_a.fetch(0)
    assert_equal [1, nil, "x", "x", "x", nil, "x", nil], [row[0], row[1], row[2], row["a"], row[:a], row[:b], row[-1], row[3]]
    assert_equal [[1, nil, "x"], { "a" => "x", "b" => nil }, %w[a b a]], [row.to_a, row.to_h, row.columns]
    error = assert_raises(Ringspun::UsageError) { row["c"] }
    assert_equal 'there is no column "c"; there are a, b, a', error.message
  end

  everywhere :rows_of_few_and_many_columns do |client|
    [1, 31, 32, 33, 100].each do |count|
      row = client.query("select #{(1..count).map { |number| "#{number}::text" }.join(", ")}").rows.first
      assert_equal((1..count).map(&:to_s), row)
      assert_equal [Encoding::UTF_8], row.map(&:encoding).uniq
    end
  end

  everywhere :values_of_a_row_are_read_in_any_order do |client|
    row = client.query_one("select 1, null::int, 'three', ''::text, null::text, 6.5::float8")
    values = [1, nil, "three", "", nil, 6.5]
    assert_equal values, row.to_a
    (0..5).to_a.product((0..5).to_a) { |one, other| assert_equal values.values_at(one, other), [row[one], row[other]] }
    assert_equal values, row.to_a
  end

  everywhere :a_row_is_seen_compared_and_matched do |client|
    result = client.query("select 1 as a, 'x' as b")
    row = result.first
    assert_equal ["#<Ringspun::Postgres::Row a: 1, b: \"x\">", "#<Ringspun::Postgres::Result SELECT 1 a, b>"],
                 [row, result].map(&:inspect)
    assert_equal row, client.query_one("select 1 as a, 'x' as b")
    refute_equal row, client.query_one("select 2 as a, 'x' as b")
    case row
    in { a: Integer => a, b: } then assert_equal [1, "x"], [a, b]
    end
    case row
    in [a, b] then assert_equal [1, "x"], [a, b]
    end
  end

  everywhere :one_row_and_one_value do |client|
    assert_equal [1, 2], client.query_one("select 1, 2 union all select 3, 4").to_a
    assert_nil client.query_one("select 1 where false")
    assert_equal 1, client.query_value("select 1, 2")
    assert_nil client.query_value("select 1 where false")
  end

  everywhere :how_many_rows_were_changed do |client|
    client.execute("create temporary table changed (id int)") if client.is_a?(Postgres::Session)
    with_table(client) do |table|
      assert_equal 5, client.execute("insert into #{table} select g, '' from generate_series(1, 5) g")
      assert_equal 2, client.execute("delete from #{table} where id > $1", 3)
      assert_equal 0, client.execute("update #{table} set text = 'x' where false")
    end
  end

  everywhere :a_statement_that_answers_nothing do |client|
    assert_equal [[], [], "", 0], client.query("").then { |result| [result.rows, result.columns, result.tag, result.affected] }
  end

  everywhere :a_prepared_statement do |client|
    statement = client.prepare("select $1::int * 2 as double")
    assert_equal [2, 4, 6], [1, 2, 3].map { |number| statement.query_value(number) }
    assert_equal [[8], 10, 1], [statement.query(4).rows.first, statement.query_one(5)[:double], statement.execute(6)]
  end

  everywhere :a_prepared_statement_that_is_streamed do |client|
    statement = client.prepare("select g from generate_series(1, $1::int) g")
    rows = []
    assert_nil statement.stream(2000, as: :array) { |row| rows << row }
    assert_equal((1..2000).map { |number| [number] }, rows)
    assert_equal [{ "g" => 1 }, { "g" => 2 }], statement.stream(2, as: :hash).to_a
    assert_raises(Ringspun::UsageError) { statement.stream(2, as: :struct) }
  end

  def test_a_prepared_statement_begins_evaluations
    on_pool do |pool|
      [pool.prepare("select $1::int as n").async, pool.async.prepare("select $1::int as n")].each do |statement|
        assert_equal "select $1::int as n", statement.sql
        begun = [statement.query(1), statement.query_one(2), statement.query_value(3), statement.execute(4),
                 statement.stream(5, as: :array) { |row| assert_equal [5], row }].map(&:await_result)
        assert_equal [[[1]], [2], 3, 1, nil], [begun[0].rows, begun[1].to_a, *begun[2..]]
      end
    end
  end

  # Only the first has the text of it, and all the others the name by which it would have become known.
  def test_a_prepared_statement_that_is_wrong_for_many_at_once
    on_pool(lanes: 1) do |pool, machine|
      statement = pool.prepare("nonsense")
      strands = Array.new(5) { machine.spin { assert_raises(Postgres::SyntaxError) { statement.query } } }
      machine.await(strands)
    end
  end

  def test_an_error_of_async_is_reported_where_nobody_awaits_it
    told = []
    Ringspun.run(on_error: ->(error, _) { told << error.class }) do |machine|
      pool = pool()
      [pool.async, pool.prepare("nonsense").async].zip([["nonsense"], []]).each do |asking, arguments|
        begun = Array.new(3) { asking.query(*arguments) }
        assert_raises(Postgres::SyntaxError) { begun[0].await_result } # as it comes
        machine.sleep(0.001) until begun.all?(&:concluded?)
        assert_raises(Postgres::SyntaxError) { begun[1].await_result } # afterwards
      end
    ensure
      pool&.close
    end
    assert_equal [Postgres::SyntaxError] * 2, told
  end

  def test_an_error_of_async_that_is_awaited_with_others
    told = []
    Ringspun.run(on_error: ->(error, _) { told << error }) do |machine|
      pool = pool()
      2.times do |turn|
        begun = pool.async.query("nonsense")
        machine.sleep(0.001) until turn.zero? || begun.concluded?
        assert_kind_of Postgres::SyntaxError, Ringspun.select(begun).last
      end
    ensure
      pool&.close
    end
    assert_empty told
  end

  everywhere :a_batch do |client|
    results = client.batch { |batch| 3.times { |number| batch.query("select $1::int", number) } }
    assert_equal [0, 1, 2], results.map(&:value)
    assert_equal [], client.batch { |_| nil }
  end

  everywhere :a_stream do |client|
    rows = []
    assert_nil client.stream("select g from generate_series(1, $1) g", 10_000, as: :array) { |row| rows << row }
    assert_equal((1..10_000).map { |number| [number] }, rows)
    assert_equal [1, 2], client.stream("select g as n from generate_series(1, 100000) g").first(2).map { |row| row[:n] }
    assert_equal [[{ "n" => 1 }, { "n" => 2 }], [{ "n" => 3 }]],
                 client.stream("select g as n from generate_series(1, 3) g", as: :hash).each_slice(2).to_a
    assert_equal 7, client.query_value("select 7")
  end

  everywhere :a_stream_that_fails do |client|
    @failing = true
    rows = []
    assert_raises(Postgres::DivisionByZero) do
      client.stream("select 1 / (100 - g) from generate_series(1, 200) g", as: :array) { |row| rows << row }
    end
    assert_equal 99, rows.size
  end

  everywhere :bad_input do |client|
    { -> { client.query(nil) } => /expected a statement, a String, got NilClass/,
      -> { client.query("select 1\0") } => /no NUL/,
      -> { client.query("copy t to stdout") } => /COPY has methods of its own: copy_in/,
      -> { client.batch { |batch| batch.query("select 1").query("/* c */ Copy t from stdin") } } => /COPY has methods of its own/,
      -> { client.stream("copy t to stdout") {} } => /COPY has methods of its own/,
      -> { client.query("select $1", Object.new) } => /parameter 1 is of Object/,
      -> { client.query("select 1", timeout: "x") } => /timeout: must be a number of seconds, got "x"/,
      -> { client.batch(timeout: Float::NAN) { |batch| batch.query("select 1") } } => /timeout: must be a number .*, got NaN/,
      -> { client.prepare("copy t to stdout") } => /COPY has methods of its own/,
      -> { client.stream("select 1", as: :struct) {} } => /as: expected one of :row, :array, :hash, got :struct/ }
      .each { |call, message| assert_match message, assert_raises(Ringspun::UsageError, &call).message }
    assert_equal 1, client.query_value("select 1")
  end

  everywhere :an_error_of_the_server do |client|
    @failing = true
    error = assert_raises(Postgres::UndefinedColumn) { client.query("select 1,\n  nonsense") }
    assert_equal "column \"nonsense\" does not exist (42703)\n  nonsense\n  ^", error.message
    assert_equal ["42703", "ERROR", "select 1,\n  nonsense"], [error.sqlstate, error.severity, error.sql]
    assert_kind_of Postgres::SyntaxErrorOrAccessRuleViolation, error
  end
end
