# frozen_string_literal: true

require "postgres_helper"
require "support/doors"

# An Array is json where the type of the parameter is, and an array of Postgres elsewhere, at whatever use of a statement, and by
# whatever door.
# servers: all
class PostgresArrayJsonTest < Minitest::Test
  include OnPool
  include NoNames
  include Doors

  NESTED = [1, { "a" => [2, nil] }, "é\"\\", [], true].freeze

  # What is given, and what comes back.
  VALUES = {
    "select $1::jsonb" => [NESTED, NESTED], "select $1 :: json" => [[nil], [nil]], "select $1::jsonb /* [] */" => [[], []],
    "select jsonb_array_length($1)" => [[{ "a" => 1 }], 1], "select $1::jsonb -> 0" => [Set[7, 8], 7],
    "select $1::jsonb /* BINARY */" => [["a\\b".b, "c".b], ["a\\b", "c"]],
    "select $1::int[]" => [[1, nil], [1, nil]], "select array_cat($1, array['x'])" => [%w[a b], %w[a b x]],
    "select $1::jsonb[]" => [[{ "a" => [1] }], [{ "a" => [1] }]], "select 2 = any($1)" => [[1, 2], true],
    "select jsonb_build_array($1::jsonb, $2::int[], $3::text)" => [[1], [2], ["a"], [[1], [2], "{\"a\"}"]]
  }.freeze

  Doors.define_tests(self, VALUES)

  # The types of columns are in no text.
  DOORS.each do |door, ask|
    define_method("test_columns_by_#{door}") do
      with_columns do |pool, table|
        sql = "insert into #{table} values ($1, $2, $3, $4) returning to_jsonb(#{table})"
        wanted = { "doc" => [1, {}], "tags" => %w[a b], "docs" => [[1]], "deep" => [[1, 2]] }
        values = ask.call(pool, sql, [1, {}], %w[a b], [Postgres::Json.new([1])], [[1, 2]])
        assert_equal [wanted] * 3, values
      end
    end
  end

  def test_a_domain_over_json
    with_domain("jsonb") do |domain|
      on_pool do |pool|
        DOORS.each do |door, ask|
          assert_equal [[1, 2]] * 3, ask.call(pool, "select $1::#{domain} /* #{door} */", [1, 2])
          assert_equal [[]] * 3, ask.call(pool, "select $1::#{domain} /* #{door} */", [])
        end
      end
    end
  end

  def test_what_cannot_be_had_as_json
    on_pool do |pool|
      DOORS.each_value do |ask|
        error = assert_raises(Ringspun::UsageError) { ask.call(pool, "select $1::jsonb, $2::jsonb", 1, [Float::NAN]) }
        assert_match(/parameter 2 cannot be had as json/, error.message)
      end
      assert_equal 1, pool.query_value("select 1")
    end
  end

  # As it was given, whatever becomes of it while the server is asked for the type.
  def test_an_array_that_changes_meanwhile
    on_pool do |pool, machine|
      list = [1, 2]
      asked = machine.spin { pool.query_value("select $1::jsonb", list) }
      machine.yield
      list << 3
      assert_equal [1, 2], asked.await
    end
  end

  private

  def with_columns
    on_pool do |pool|
      table = "t_#{SecureRandom.hex(6)}"
      pool.execute("create table #{table} (doc jsonb, tags text[], docs json[], deep int[])")
      yield pool, table
    ensure
      pool.execute("drop table if exists #{table}")
    end
  end
end
