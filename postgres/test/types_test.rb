# frozen_string_literal: true

require "postgres_helper"

# servers: all

# What a value of the server becomes. Each statement is sent three times: the first use has all as text, the third what pays as
# binary, and who asks must not see which it was.
class PostgresTypesTest < Minitest::Test
  include OnPool

  Interval = Ringspun::Postgres::Interval

  VALUES = {
    "true" => true, "false" => false, "null::int" => nil,
    "1::int2" => 1, "(-2147483648)::int4" => -2_147_483_648, "9223372036854775807::int8" => 9_223_372_036_854_775_807,
    "4294967295::oid" => 4_294_967_295,
    "1.5::float8" => 1.5, "'-Infinity'::float8" => -Float::INFINITY, "1.1::float4" => 1.1,
    "1.50::numeric" => BigDecimal("1.5"), "'Infinity'::numeric" => BigDecimal("Infinity"),
    "'é'::text" => "é", "'ab'::varchar" => "ab", "'ab'::char(3)" => "ab ", "'x'::name" => "x",
    "'\\x00ff'::bytea" => "\x00\xFF".b, "''::bytea" => "".b,
    "'2024-02-29 23:59:59.123456+05:30'::timestamptz" => Time.utc(2024, 2, 29, 18, 29, 59.123456r),
    "'1969-12-31 23:59:59.5'::timestamp" => Time.utc(1969, 12, 31, 23, 59, 59.5r),
    "'infinity'::timestamp" => Float::INFINITY, "'-infinity'::timestamptz" => -Float::INFINITY,
    "date '2026-11-25'" => Date.new(2026, 11, 25), "'0044-03-15 BC'::date" => Date.new(-43, 3, 15, Date::GREGORIAN),
    "interval '1 year 2 mons -3 days 04:05:06.7'" => Interval.new(months: 14, days: -3, microseconds: 14_706_700_000),
    "interval '0'" => Interval.new(months: 0, days: 0, microseconds: 0),
    "'{\"a\":[1,null]}'::jsonb" => { "a" => [1, nil] }, "'\"x\"'::json" => "x", "'null'::jsonb" => nil,
    "'123e4567-e89b-12d3-a456-426614174000'::uuid" => "123e4567-e89b-12d3-a456-426614174000",
    "inet '10.0.0.1'" => IPAddr.new("10.0.0.1"), "cidr '10.0.0.0/8'" => IPAddr.new("10.0.0.0/8"),
    "array[1,null,3]" => [1, nil, 3], "'{}'::text[]" => [], "'{{1,2},{3,4}}'::int8[]" => [[1, 2], [3, 4]],
    "'[0:1]={5,6}'::int[]" => [5, 6],
    "array['a\"b','NULL','x,y','', '\\{']" => ["a\"b", "NULL", "x,y", "", "\\{"],
    "array['2000-01-01 00:00:00+00'::timestamptz]" => [Time.utc(2000)], "array['\\x01'::bytea]" => ["\x01".b],
    "int4range(1, 3)" => "[1,3)", "row(1, 'a')" => "(1,a)"
  }.freeze

  VALUES.each_with_index do |(sql, value), index|
    define_method("test_#{index}_#{sql.tr("^a-z0-9", "_")}") do
      on_pool do |pool|
        found = Array.new(3) { pool.query("select #{sql}").rows.dig(0, 0) }
        value.nil? ? assert_equal([nil] * 3, found) : assert_equal([value] * 3, found)
        assert_equal [value.class] * 3, found.map(&:class)
      end
    end
  end

  # Each as text, for the third use of a statement asks for binary where it can.
  def test_decoders_of_the_users
    types = { int4range: ->(text) { [:range, text] }, "numeric" => :to_r.to_proc, 20 => ->(text) { [:int8, text] },
              869 => :itself.to_proc, "pg_catalog.point" => ->(text) { text.scan(/\d+/) }, "int4[]" => :reverse.to_proc }
    sql = "select int4range(1, 3) as range, array[0.5, null]::numeric[] as decimals, array[array[7::int8]] as numbers, " \
          "null::int8 as nothing, inet '10.0.0.1' as address, point(1, 2) as place, array[int4range(1, 2)] as ranges, " \
          "array[1, 2] as text, 3 as other"
    expected = { "range" => [:range, "[1,3)"], "decimals" => [0.5r, nil], "numbers" => [[[:int8, "7"]]], "nothing" => nil,
                 "address" => "10.0.0.1", "place" => %w[1 2], "ranges" => [[:range, "[1,2)"]], "text" => "}2,1{", "other" => 3 }
    on_pool(types:) do |pool|
      3.times { assert_equal expected, pool.query(sql).hashes.first }
      assert_equal [expected.values], pool.query(sql).rows
      assert_equal expected.to_a, expected.keys.map { |name| [name, pool.query_one(sql)[name]] }
      streamed = %i[row array hash].map { |as| pool.stream(sql, as:).first }
      assert_equal [expected.values, expected.values, expected], [streamed[0].to_a, *streamed[1..]]
      assert_equal [:int8, "1"], pool.transaction { |transaction| transaction.query_value("select 1::int8") }
      assert_equal [:int8, "1"], Thread.new { pool.query_value("select 1::int8") }.value
    end
  end

  def test_a_decoder_of_an_enum_and_its_arrays
    with_enum do |name|
      on_pool(types: { name => :to_sym.to_proc }) do |pool|
        sql = "select 'sad'::#{name}, array['glad', null]::#{name}[]"
        3.times { assert_equal [:sad, [:glad, nil]], pool.query(sql).rows.first }
      end
    end
  end

  def test_an_error_of_a_decoder_is_for_who_asks
    on_pool(types: { 20 => ->(text) { raise KeyError, text } }) do |pool|
      assert_equal "1", assert_raises(KeyError) { pool.query("select 1::int8").rows }.message
      assert_equal "2", assert_raises(KeyError) { pool.stream("select 2::int8", as: :array) { flunk } }.message
      assert_equal 3, pool.query_value("select 3")
    end
  end

  def test_decoders_that_are_none_are_refused_before_anything_connects
    { [] => /types: expected a Hash of decoders by OID or name, got \[\]/,
      { 1.5 => :itself.to_proc } => /the OID or the name of a type, got 1\.5/,
      { 0 => :itself.to_proc } => /the OID or the name of a type, got 0/,
      { mood: :to_sym } => /a decoder for mood, which answers to call, got :to_sym/ }.each do |types, message|
      assert_match message, assert_raises(Ringspun::UsageError) { Postgres.connect("postgres://nowhere.invalid", types:) }.message
    end
  end

  def test_a_type_that_the_database_does_not_have_is_named
    on_pool(types: { "no_such_type" => :itself.to_proc }) do |pool|
      [-> { pool.query("select 1") }, -> { pool.session { |session| session.query("select 1") } }].each do |use|
        assert_match(/types: the database has no type no_such_type/, assert_raises(Ringspun::UsageError, &use).message)
      end
    end
  end

  def test_a_name_of_a_type_that_is_malformed
    on_pool(types: { "numeric(" => :itself.to_proc }) do |pool|
      assert_match(/types: .*numeric\(/, assert_raises(Ringspun::UsageError) { pool.query("select 1") }.message)
    end
  end

  # As after an opening in which this process was stopped for a while.
  def test_names_are_looked_up_again_when_the_connection_was_quiet_for_too_long
    result = Data.define(:rows)
    answers = [:quiet, result.new([["mood", 70_000, 70_001]])]
    lane = Object.new
    lane.define_singleton_method(:query) { |*| answers.shift }
    lane.define_singleton_method(:ping) { |_| true }
    types = Postgres.const_get(:Types).new({ "mood" => :to_sym.to_proc })
    assert_instance_of Postgres.const_get(:Decoders), types.decoders(lane)
    assert_empty answers
  end

  def test_a_numeric_that_is_no_number
    on_pool { |pool| 3.times { assert_predicate pool.query("select 'NaN'::numeric").rows.dig(0, 0), :nan? } }
  end

  def test_a_float_that_is_no_number
    on_pool { |pool| 3.times { assert_predicate pool.query("select 'NaN'::float8").rows.dig(0, 0), :nan? } }
  end

  def test_text_has_an_encoding_and_bytes_have_none
    on_pool do |pool|
      3.times do
        text, bytes = pool.query("select 'é', '\\xe9'::bytea").rows.first
        assert_equal [Encoding::UTF_8, Encoding::BINARY], [text.encoding, bytes.encoding]
      end
    end
  end

  PARAMETERS = {
    [nil, "text"] => nil, [true, "bool"] => true, [41, "int4"] => 41, [2**62, "int8"] => 2**62, [1.5, "float8"] => 1.5,
    [-Float::INFINITY, "float8"] => -Float::INFINITY, [BigDecimal("12.50"), "numeric"] => BigDecimal("12.5"),
    [:name, "text"] => "name", ["é", "text"] => "é", ["\x00\xFF".b, "bytea"] => "\x00\xFF".b, ["", "text"] => "",
    [Time.utc(2024, 2, 29, 1, 2, 3.5r), "timestamptz"] => Time.utc(2024, 2, 29, 1, 2, 3.5r),
    [Date.new(2000, 1, 2), "date"] => Date.new(2000, 1, 2),
    [[1, nil, 3], "int[]"] => [1, nil, 3], [["a\"b\\", "", nil, "NULL"], "text[]"] => ["a\"b\\", "", nil, "NULL"],
    [[[1, 2], [3, 4]], "int[]"] => [[1, 2], [3, 4]], [[], "int[]"] => [], [["\x00".b], "bytea[]"] => ["\x00".b],
    [{ "a" => [1, nil] }, "jsonb"] => { "a" => [1, nil] }, [IPAddr.new("10.0.0.0/8"), "cidr"] => IPAddr.new("10.0.0.0/8"),
    [Ringspun::Postgres::Interval.new(months: -1, days: 2, microseconds: -3), "interval"] =>
      Ringspun::Postgres::Interval.new(months: -1, days: 2, microseconds: -3),
    **[(2**63) - 1, 1 - (2**63), (2**32 * 1_000_000) - 1, -2**32 * 1_000_000].to_h do |microseconds|
      interval = Ringspun::Postgres::Interval.new(months: 0, days: 0, microseconds:)
      [[interval, "interval"], interval]
    end
  }.freeze

  PARAMETERS.each_with_index do |((value, type), expected), index|
    define_method("test_parameter_#{index}_#{type.tr("^a-z0-9", "_")}") do
      on_pool do |pool|
        found = Array.new(3) { pool.query("select $1::#{type}", value).rows.dig(0, 0) }
        expected.nil? ? assert_equal([nil] * 3, found) : assert_equal([expected] * 3, found)
      end
    end
  end

  def test_a_parameter_of_no_type_is_refused_before_a_byte_is_sent
    on_pool do |pool|
      error = assert_raises(Ringspun::UsageError) { pool.query("select $1, $2", 1, Object.new) }
      assert_match(/parameter 2 is of Object/, error.message)
      assert_equal [[1]], pool.query("select 1").rows
    end
  end

  def test_text_in_another_encoding_is_sent_in_utf_8
    on_pool do |pool|
      text = "\u00C3\u00A9" # whose bytes in ISO-8859-1 are another text in UTF-8
      [text.encode("ISO-8859-1"), text.encode("UTF-16LE"), text.encode("ISO-8859-1").to_sym].each do |other|
        assert_equal [text, [text]], pool.query("select $1::text, $2::text[]", other, [other]).rows.first
      end
      assert_equal "\u8868", pool.query_value("select $1::text", "\u8868".encode("Shift_JIS"))
    end
  end

  def test_text_that_has_no_utf_8_is_refused
    on_pool do |pool|
      { "\xFF".dup.force_encoding("Shift_JIS") => /parameter 1 cannot be had in UTF-8/,
        ["\xFF"] => /parameter 1 is no valid UTF-8/ }.each do |value, message|
        assert_match message, assert_raises(Ringspun::UsageError) { pool.query("select $1", value) }.message
      end
      ["select '\u00E9'".encode("ISO-8859-1"), "select 1".encode("UTF-16LE")].each do |sql|
        assert_match(/expected a statement in UTF-8, got one in/, assert_raises(Ringspun::UsageError) { pool.query(sql) }.message)
      end
      assert_equal 1, pool.query_value("select 1".encode("ISO-8859-1"))
    end
  end

  private

  def with_enum
    name = "mood_#{SecureRandom.hex(6)}"
    look { |client| client.execute("create type #{name} as enum ('sad', 'glad')") }
    yield name
  ensure
    look { |client| client.execute("drop type if exists #{name}") }
  end
end
