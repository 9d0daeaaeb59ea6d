# frozen_string_literal: true

require "postgres_helper"

# gc stress: short

# What the client's C refers to, and Ruby's collector frees or moves. That each connection begins without stress, because it takes
# ten thousand allocations and is Ruby.
class PostgresCollectorTest < Minitest::Test
  include OnPool

  VALUES = {
    "null::int" => nil, "true" => true, "1::int8" => 1, "1.5::float8" => 1.5, "1.50::numeric" => BigDecimal("1.5"),
    "'é'::text" => "é", "'\\x00ff'::bytea" => "\x00\xFF".b, "array['a',null,'b']" => ["a", nil, "b"],
    "'2024-02-29 01:02:03.5Z'::timestamptz" => Time.utc(2024, 2, 29, 1, 2, 3.5r), "date '2026-11-25'" => Date.new(2026, 11, 25),
    "interval '1 day'" => Ringspun::Postgres::Interval.new(months: 0, days: 1, microseconds: 0),
    "'{\"a\":[1]}'::jsonb" => { "a" => [1] }, "inet '10.0.0.1'" => IPAddr.new("10.0.0.1")
  }.freeze

  def setup = GC.stress = false

  # With a collection at every allocation a connection takes longer than it may otherwise.
  def pool_options = { connect_timeout: 0 }

  # The first use has all as text, the third as binary.
  def test_values
    on_pool do |pool|
      [true, false, true].each do |stress|
        stressed(stress) do
          result = pool.query("select #{VALUES.keys.join(", ")}")
          assert_equal VALUES.values, result.first.to_a
        end
      end
    end
  end

  # By OID they are made with the pool, by name with each connection.
  def test_what_a_user_decodes
    decoder = ->(text) { [text] }
    on_pool(types: { 23 => decoder, "numeric" => ->(text) { "#{text}!" } }) do |pool|
      sql = "select 1::int, array[1, null]::int[], 1.5::numeric, array[1.5]::numeric[]"
      [true, false, true].each do |stress|
        stressed(stress) { assert_equal [["1"], [["1"], nil], "1.5!", ["1.5!"]], pool.query(sql).rows.first }
      end
    end
  end

  def test_parameters
    on_pool do |pool|
      sql = "select $1::text, $2::bytea, $3::int[], $4::jsonb, $5::timestamptz, $6::numeric"
      params = ["é", "\x00".b, [1, nil], { "a" => 1 }, Time.utc(2000), BigDecimal("1.5")]
      pool.query(sql, *params)
      stressed { assert_equal params, pool.query(sql, *params).rows.first }
    end
  end

  def test_strands_that_share_a_connection
    on_pool(lanes: 1) do |pool, machine|
      pool.query("select 0")
      stressed do
        strands = Array.new(2) { |number| machine.spin { pool.query_value("select $1::int", number) } }
        assert_equal [0, 1], strands.map(&:await)
        assert_raises(Ringspun::TimeoutError) { pool.query("select pg_sleep(60)", timeout: 0.01) }
        assert_equal 5, pool.query_value("select 5")
      end
    end
  end

  def test_errors_after_a_compaction
    on_pool do |pool|
      pool.query("select 0")
      GC.verify_compaction_references(toward: :empty, expand_heap: true)
      assert_raises(Ringspun::UsageError) { pool.query("select $1", Object.new) }
      assert_raises(Ringspun::TimeoutError) { pool.query("select pg_sleep(60)", timeout: 0.01) }
      assert_equal 1, pool.query_value("select 1")
    end
  end

  # A row has room for what it has alone; with the others it shares one object, and outlives their result.
  def test_rows_that_lie_in_one_block
    on_pool do |pool|
      shared = Postgres.const_get(:SharedByRows)
      GC.start
      GC.disable
      before = ObjectSpace.each_object(shared).count
      rows = pool.query("select g, g::text from generate_series(1, 100) g").to_a
      assert_equal before + 1, ObjectSpace.each_object(shared).count
      GC.enable
      GC.compact
      assert_equal((1..100).map { |number| [number, number.to_s] }, rows.map { |row| [row[0], row[1]] })
    ensure
      GC.enable
    end
  end

  def test_errors
    on_pool do |pool|
      pool.query("select 0")
      stressed do
        assert_equal "22012", assert_raises(Postgres::DivisionByZero) { pool.query("select 1/$1::int", 0) }.sqlstate
        assert_raises(Ringspun::UsageError) { pool.query("select $1", Object.new) }
      end
    end
  end

  def test_a_stream_in_a_transaction
    on_pool do |pool|
      pool.transaction do |transaction|
        stressed do
          seen = []
          transaction.stream("select g, repeat('x', g) from generate_series(1, 20) g") { |row| seen << row }
          assert_equal (1..20).map { |number| [number, "x" * number] }, seen.map(&:to_a)
          transaction.transaction { |inner| inner.execute("select 1") }
        end
      end
    end
  end

  private

  def stressed(stress = true)
    GC.stress = stress && GCStress::WANTED
    yield
  ensure
    GC.stress = false
  end
end
