# frozen_string_literal: true

require "postgres_helper"

# What rows and results answer as an Array or a Hash would, what else can be a parameter, and what an error says to do instead.
# servers: all
class PostgresSurfaceTest < Minitest::Test
  include OnPool

  Point = Struct.new(:name, :x, :tags, :flag, :bytes)
  Pair = Data.define(:left, :right)

  def row(sql = "select 1 as id, null as nothing, 'x' as name, '{\"a\": [1, {\"b\": 2}]}'::jsonb as json")
    on_pool { |pool| yield pool.query_one(sql) }
  end

  # At each use, and wherever it stands.
  def test_an_array_without_elements
    on_pool do |pool|
      3.times do
        row = pool.query_one("select $1::jsonb::text, $2::json::text, $3::int[]::text, $4::text", [], [], [], Set[])
        assert_equal ["[]", "[]", "{}", "{}"], row.to_a
        assert_equal ["{}", 0], [pool.query_value("select $1", []), pool.execute("select 1 where 1 = any($1)", [])]
        results = pool.batch { |b| %w[jsonb int[]].each { |type| b.query("select $1::#{type}::text", []) } }
        assert_equal ["[]", "{}"], results.map(&:value)
      end
    end
  end

  # It may have a key several times, which a jsonb cannot.
  def test_json_with_a_key_twice
    on_pool do |pool|
      sql = %q(select '{"a": 1, "b": 2, "a": 3}'::json)
      assert_equal({ "a" => 3, "b" => 2 }, pool.query_value(sql))
      assert_equal([{ "a" => 3, "b" => 2 }], pool.query_value("select array[(#{sql})]"))
      pool.copy_out("copy (#{sql}) to stdout") { |json,| assert_equal({ "a" => 3, "b" => 2 }, json) }
    end
  end

  def test_wrong_use
    on_pool do |pool|
      assert_match(/batch needs a block/, assert_raises(Ringspun::UsageError) { pool.batch }.message)
      assert_match(/log_slower_than: must be a number/,
                   assert_raises(Ringspun::UsageError) { Postgres::Pool.new(url, log_slower_than: "x") }.message)
    end
  end

  # The server closes the connection on a longer message, and says why to nobody.
  def test_a_message_that_the_server_does_not_take
    on_pool do |pool|
      large = "x" * (64 << 20)
      error = assert_raises(Ringspun::UsageError) { pool.query("select 1", *Array.new(16, large)) }
      assert_equal "the parameters of a statement have 1072693248 bytes together at most, these have 1073741824", error.message
      assert_equal large.bytesize, pool.query_value("select length($1)", large)
    end
  end

  # --- rows ---

  def test_fetch
    row do |row|
      assert_equal [1, "x", "x", nil], [row.fetch(:id), row.fetch("name"), row.fetch(-2), row.fetch(:nothing)]
      assert_equal [7, nil, :other], [row.fetch(:other, 7), row.fetch("other", nil), row.fetch(:other) { |key| key }]
      assert_equal(8, row.fetch(4) { |key| key * 2 })
      message = "there is no column :other; there are id, nothing, name, json"
      assert_equal message, assert_raises(Ringspun::UsageError) { row.fetch(:other) }.message
      assert_equal message.sub(":other", "4"), assert_raises(Ringspun::UsageError) { row.fetch(4) }.message
      assert_raises(ArgumentError) { row.fetch(:id, 1, 2) }
    end
  end

  def test_key
    row do |row|
      [:id, "id", :nothing, 0, 3, -4].each { |key| assert row.key?(key), key.inspect }
      [:other, "other", 4, -5, nil].each { |key| refute row.key?(key), key.inspect }
      assert row.has_key?(:name)
    end
  end

  def test_values_at
    row do |row|
      assert_equal ["x", 1, nil], row.values_at(:name, "id", 1)
      assert_equal [], row.values_at
      assert_match(/no column :other; there are id/, assert_raises(Ringspun::UsageError) { row.values_at(:id, :other) }.message)
    end
  end

  def test_dig
    row do |row|
      assert_equal [1, 2, nil, nil], [row.dig(:id), row.dig(:json, "a", 1, "b"), row.dig(:json, "z", 1), row.dig(:nothing, 1)]
      assert_equal 2, [row].dig(0, "json", "a", 1, "b")
      assert_raises(TypeError) { row.dig(:id, 1) }
    end
  end

  def test_each_keys_and_values
    row("select 1 as id, 'x' as name, 2 as id") do |row|
      pairs = []
      assert_same row, row.each { |name, value| pairs << [name, value] }
      assert_equal [["id", 1], ["name", "x"], ["id", 2]], pairs
      assert_equal pairs, row.each.to_a
      assert_equal pairs, row.each_pair.to_a
      assert_equal 3, row.each.size
      assert_equal [%w[id name id], [1, "x", 2], 3, 3], [row.keys, row.values, row.size, row.length]
    end
  end

  def test_equal_rows_are_one_key
    on_pool do |pool|
      rows = pool.query("select 1 as a union all select 1 union all select 2").to_a
      assert_equal 2, rows.uniq.size
      assert_equal "first", { rows[0] => "first" }[rows[1]]
      refute rows[0].eql?(pool.query_one("select 1.0::float8 as a"))
      assert_equal rows[0], pool.query_one("select 1.0::float8 as a")
    end
  end

  # --- results ---

  def test_a_result_as_an_array_has_it
    on_pool do |pool|
      result = pool.query("select g as id from generate_series(1, 5) g")
      assert_equal [1, 5, nil, nil], [result[0][:id], result[-1][:id], result[5], result[-6]]
      assert_equal [[2, 3], [4, 5], []], [result[1, 2], result[3..], result[5..]].map { |rows| rows.map { |row| row[:id] } }
      assert_equal [5, 5, false], [result.length, result.size, result.empty?]
      assert_equal [1, [[1], [2]], 5, [[4], [5]]],
                   [result.first[:id], result.first(2).map(&:to_a), result.last[:id], result.last(2).map(&:to_a)]
    end
  end

  def test_a_result_of_nothing
    on_pool do |pool|
      result = pool.query("select 1 where false")
      assert_equal [true, 0, nil, nil, []], [result.empty?, result.length, result.first, result.last, result.last(3)]
      assert_nil result[0]
      refute_includes result, 1
    end
  end

  def test_a_result_is_enumerable
    on_pool do |pool|
      result = pool.query("select g as id from generate_series(1, 4) g")
      assert_equal [[2, 4], [1, 3]], result.partition { |row| row[:id].even? }.map { |rows| rows.map { |row| row[:id] } }
      assert_equal [[1, 2], [3, 4]], result.each_slice(2).map { |rows| rows.map { |row| row[:id] } }
      assert_equal 10, result.sum { |row| row[:id] }
      assert_equal({ 1 => 1, 2 => 4, 3 => 9, 4 => 16 }, result.to_h { |row| [row[:id], row[:id]**2] })
    end
  end

  def test_the_types_of_columns
    on_pool do |pool|
      sql = "select 1 as a, 'x'::text as b, array[1.5] as c, null::timestamptz as d"
      3.times do
        columns = pool.query(sql).column_types
        assert_equal [["a", 23, "int4"], ["b", 25, "text"], ["c", 1231, "_numeric"], ["d", 1184, "timestamptz"]],
                     columns.map { |column| [column.name, column.oid, column.type] }
      end
      assert_empty pool.query("").column_types
    end
  end

  def test_the_type_of_a_column_that_the_server_does_not_come_with
    name = "mood_#{SecureRandom.hex(6)}"
    on_pool do |pool|
      pool.execute("create type #{name} as enum ('sad')")
      column = pool.query("select 'sad'::#{name} as mood").column_types.first
      assert_nil column.type
      assert_equal name, pool.query_value("select $1::oid::regtype::text", column.oid)
    ensure
      pool.execute("drop type if exists #{name}")
    end
  end

  def test_the_names_of_types_are_those_of_the_server
    on_pool do |pool|
      known = Postgres.const_get(:TypeNames)::BY_OID
      there = pool.query("select oid, typname from pg_type where oid < 10000 and typrelid = 0").rows.to_h
      there.each { |oid, name| assert_equal name, known[oid], oid }
    end
  end

  # --- parameters ---

  PARAMETERS = {
    [1..4, "int4range"] => "[1,5)", [1...4, "int4range"] => "[1,4)", [(1..), "int4range"] => "[1,)",
    [(..4), "int4range"] => "(,5)",
    [(nil..nil), "int4range"] => "(,)", [5...5, "int4range"] => "empty", [1..Float::INFINITY, "int8range"] => "[1,)",
    [-Float::INFINITY...2, "numrange"] => "(,2)", [1.5r..2.5r, "numrange"] => "[1.5,2.5]",
    [Date.new(2024, 1, 1)...Date.new(2024, 2, 1), "daterange"] => "[2024-01-01,2024-02-01)",
    [[1..2, 4...6], "int4range[]"] => "{\"[1,3)\",\"[4,6)\"}",
    [Set[1, 2], "int[]"] => "{1,2}", [Set["a\"", "b,"], "text[]"] => "{\"a\\\"\",\"b,\"}",
    [[Set[1, 2], Set[3, 4]], "int[]"] => "{{1,2},{3,4}}",
    [Set[], "int[]"] => "{}",
    [1.5r, "numeric"] => "1.5", [-7r / 8, "numeric"] => "-0.875", [5r, "numeric"] => "5", [3r / 1000, "numeric"] => "0.003",
    [1r / 3, "numeric"] => "0.#{"3" * 40}", [1r / 4, "float8"] => "0.25", [10r**20, "numeric"] => "100000000000000000000",
    [[1r / 2], "numeric[]"] => "{0.5}",
    [Ringspun::Postgres::TimeOfDay.new(hour: 9, minute: 30, microsecond: 5), "time"] => "09:30:00.000005",
    [[Ringspun::Postgres::TimeOfDay.new(hour: 24)], "time[]"] => "{24:00:00}",
    [Time.utc(2024, 1, 1, 9, 30), "time"] => "09:30:00",
    [Ringspun::Postgres::Json.new([1, "a", nil]), "jsonb"] => "[1, \"a\", null]",
    [Ringspun::Postgres::Json.new([]), "jsonb"] => "[]",
    [Ringspun::Postgres::Json.new("a"), "jsonb"] => "\"a\"", [Ringspun::Postgres::Json.new(nil), "jsonb"] => "null",
    [{ "a" => [1] }, "json"] => "{\"a\":[1]}", [[{ "a" => 1 }], "jsonb[]"] => "{\"{\\\"a\\\": 1}\"}",
    [:name, "text"] => "name", [%i[a b], "text[]"] => "{a,b}"
  }.freeze

  PARAMETERS.each_with_index do |((value, type), expected), index|
    define_method("test_parameter_#{index}_#{type.tr("^a-z0-9", "_")}") do
      on_pool do |pool|
        assert_equal [expected] * 3, Array.new(3) { pool.query_value("select $1::#{type}::text", value) }
      end
    end
  end

  def test_a_range_of_times
    on_pool do |pool|
      from, to = Time.utc(2024, 1, 1, 1, 2, 3.5r), Time.utc(2024, 2, 1)
      sql = "select lower(r), upper(r), upper_inc(r) from (select $1::tstzrange as r) x"
      assert_equal [from, to, false], pool.query(sql, from...to).rows.first
    end
  end

  def test_composites
    name = "point_#{SecureRandom.hex(6)}"
    on_pool do |pool|
      pool.execute("create type #{name} as (name text, x int, tags text[], flag bool, bytes bytea)")
      bytes = Ringspun::Postgres::Bytes.new("\x00\xFF")
      [Point.new("a\"b\\ (c),".b, -1, ["x,y", nil, "\""], true, bytes), Point.new("", nil, [], false, nil)].each do |point|
        found = pool.query("select (p).* from (select $1::#{name} as p) x", point).rows.first
        assert_equal [*point.first(4), point.bytes&.to_s], found
        assert_equal [point.name], pool.query("select (unnest($1::#{name}[])).name", [point]).rows.first
      end
    ensure
      pool.execute("drop type if exists #{name}")
    end
  end

  def test_a_composite_in_a_composite
    on_pool do |pool|
      nested = Pair.new(left: 1, right: "x")
      assert_equal "(2,\"(\"\"1\"\",\"\"x\"\")\")", pool.query_value("select row($1::int, $2::text)::text", 2, nested)
    end
  end

  def test_json_that_is_none
    on_pool do |pool|
      [Ringspun::Postgres::Json.new([Float::NAN]), { "a" => Float::INFINITY }].each do |value|
        error = assert_raises(Ringspun::UsageError) { pool.query("select $1, $2", 1, value) }
        assert_match(/parameter 2 cannot be had as json/, error.message)
      end
    end
  end

  def test_what_is_no_parameter_names_what_is
    on_pool do |pool|
      [Object.new, [Object.new], Set[Object.new], Pair.new(1, Object.new)].each do |value|
        error = assert_raises(Ringspun::UsageError) { pool.query("select $1", value) }
        assert_match(/parameter 1 is of Object, .*Rational.*TimeOfDay.*Set, Range.*Json, Struct/, error.message)
      end
    end
  end

  def test_a_time_of_day
    time = Ringspun::Postgres::TimeOfDay
    assert_equal time.new(9, 30, 1, 500_000), time.parse("09:30:01.5")
    assert_equal time.new(hour: 9, minute: 30), time.parse("09:30")
    assert_equal time.new(1, 2, 3, 4), time.of(Time.utc(2024, 1, 1, 1, 2, 3, 4))
    assert_operator time.parse("09:30:00"), :<, time.parse("09:30:00.000001")
    wrong = [[25], [24, 1], [1, 60], [1, 1, 1, 1_000_000], ["1"], [-1]]
    wrong.each { |parts| assert_raises(Ringspun::UsageError) { time.new(*parts) } }
    ["9:30", "09:30:00+02", "", "x"].each { |text| assert_raises(Ringspun::UsageError) { time.parse(text) } }
    on_pool(types: { time: time.method(:parse) }) do |pool|
      assert_equal [time.new(9, 30), [time.new(24)]], pool.query("select '09:30'::time, array['24:00'::time]").rows.first
    end
  end

  # --- what an error says to do ---

  def hint(sql, *params) = on_pool { |pool| assert_raises(Postgres::ServerError) { pool.query(sql, *params) }.message }

  def test_an_array_for_a_list
    { "select 1 where 1 in $1" => "= any($1)", "select 1 where 1 not in\n $1" => "<> all($1)",
      "select 1 where 1 in ($1)" => "= any($1)",
      "select 1 where 1 not in ( $1 )" => "<> all($1)", "select 1 where 1 in ($1::int[])" => "= any($1)" }.each do |sql, instead|
      assert_includes hint(sql, [1, 2]), "HINT: for an Array write #{instead} in place of", sql
    end
    sql = "select g from generate_series(1, 3) g where g = any($1)"
    on_pool { |pool| assert_equal [1, 3], pool.query(sql, [1, 3, 5]).rows.flatten }
  end

  # Where the server takes text, an Array is written as an array.
  def test_an_array_that_is_json_only_later
    assert_includes hint("select ($1::text)::jsonb", [1, 2]), "for json give Ringspun::Postgres::Json.new(array)"
    refute_includes hint("select $1::jsonb", "[1"), "Json"
  end

  def test_true_for_json
    assert_includes hint("select $1::jsonb", true), "for json give Ringspun::Postgres::Json.new(true)"
    assert_includes hint("select $1::json", false), "for json give Ringspun::Postgres::Json.new(false)"
  end

  def test_other_errors_have_no_such_hint
    others = ["select 1 where 1 in 2", "select $1 $2", "select 'x' in (1)", "select 1 in (array[1])"]
    others.each { |sql| refute_includes hint(sql), "Array" }
    refute_includes hint("select 1 where 1 in ($1)", "x"), "Array"
  end
end
