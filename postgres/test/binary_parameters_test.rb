# frozen_string_literal: true

require "postgres_helper"
require "support/doors"

# servers: all

# Strings in BINARY, as sockets, files, Rack and Base64 give them: they are bytes for a bytea, and text for every other type, at
# whatever use of a statement, and by whatever door.
class PostgresBinaryParametersTest < Minitest::Test
  include OnPool
  include NoNames
  include Doors

  BYTES = "\x00\xFF\\x41".b

  # Each with a byte that is not in ASCII, or a backslash, so that the type decides.
  VALUES = {
    "select $1::int" => ["1234".b, 1234], "select $1::bool" => ["f".b, false],
    "select $1::date" => ["2026-11-28".b, Date.new(2026, 11, 28)],
    "select 'abc' = any($1)" => [["abc".b], true], "select 'é' = any($1)" => [["x".b, "é".b, nil], true],
    "select $1::text" => ["é\\x41".b, "é\\x41"], "select $1::varchar" => ["\\".b, "\\"], "select $1::jsonb" => ["\"é\"".b, "é"],
    "select $1::text[]" => [["é".b, ["\\".b]].map { [_1].flatten }, [["é"], ["\\"]]],
    "select $1::bytea" => [BYTES, BYTES], "select $1::bytea[]" => [[BYTES, nil, "é".b], [BYTES, nil, "é".b]],
    "select length($1::bytea) + length($2::text)" => ["é\\".b, "é\\".b, 5]
  }.freeze

  Doors.define_tests(self, VALUES)

  def test_bytes_and_text_take_turns_in_one_statement
    on_pool do |pool|
      sql = "select encode($1::bytea, 'hex')"
      assert_equal(%w[610a ff 61 5c ff], ["\\x610a", "\xFF".b, "a", "\\".b, "\xFF".b].map { pool.query_value(sql, _1) })
    end
  end

  def test_a_domain_over_bytea_is_bytea
    with_domain("bytea") do |domain|
      on_pool do |pool|
        DOORS.each do |door, ask|
          assert_equal [BYTES] * 3, ask.call(pool, "select $1::#{domain} /* #{door} */", BYTES)
          assert_equal [[BYTES, "é".b]] * 3, ask.call(pool, "select $1::#{domain}[] /* #{door} */", [BYTES, "é".b])
        end
      end
    end
  end

  # A session sees what it has not yet committed.
  def test_a_domain_that_nobody_else_sees
    name = "bytes_#{SecureRandom.hex(6)}"
    on_pool do |pool|
      pool.transaction do |transaction|
        transaction.execute("create domain #{name} as bytea")
        assert_equal(BYTES, transaction.query_value("select $1::#{name}", BYTES))
        assert_equal([BYTES], transaction.stream("select $1::#{name}[]", [BYTES], as: :array).first[0])
        raise IOError
      rescue IOError
        nil
      end
    end
  end

  def test_what_is_no_text_is_refused_before_it_is_sent
    on_pool do |pool|
      { ["\xFF".b, "text"] => /parameter 1 is no valid UTF-8, and text to the server \(type 25\); for bytea/,
        ["a\0".b, "varchar"] => /parameter 1 has a NUL/, ["\xFF".b, "int"] => /parameter 1 is no valid UTF-8/,
        [["a", "\xFF".b], "text[]"] => /parameter 1 is no valid UTF-8/, [[["a\0".b]], "text[]"] => /parameter 1 has a NUL/,
        ["a\0", "text"] => /parameter 1 has a NUL/, ["\xFF", "text"] => /parameter 1 is no valid UTF-8/,
        [["a\0"], "text[]"] => /parameter 1 has a NUL/ }.each do |(value, type), message|
        DOORS.each_value do |ask|
          error = assert_raises(Ringspun::UsageError, "#{value.inspect} #{type}") { ask.call(pool, "select $1::#{type}", value) }
          assert_match message, error.message
        end
      end
      pool.transaction do |transaction|
        assert_raises(Ringspun::UsageError) { transaction.query("select $1::text", "\xFF".b) }
        assert_equal 1, transaction.query_value("select 1")
      end
    end
  end

  def test_an_error_of_the_description_is_that_of_the_statement
    on_pool do |pool|
      2.times do
        error = assert_raises(Postgres::UndefinedTable) { pool.query("select * from nothing where a = $1", BYTES) }
        assert_equal "select * from nothing where a = $1", error.sql
      end
      assert_raises(Postgres::UndefinedTable) { pool.stream("select * from nothing where a = $1", BYTES) { flunk } }
      assert_equal 1, pool.query_value("select 1")
    end
  end

  def test_bytes_say_what_they_are
    bytes = Postgres::Bytes.new(BYTES)
    on_pool do |pool|
      DOORS.each_value do |ask|
        assert_equal [BYTES] * 3, ask.call(pool, "select $1", bytes)
        assert_equal [BYTES] * 3, ask.call(pool, "select $1::bytea", bytes)
        assert_equal [[BYTES, nil]] * 3, ask.call(pool, "select $1::bytea[]", [bytes, nil])
        assert_equal [7] * 3, ask.call(pool, "select length($1) + length($2::text)", bytes, "é".b)
      end
    end
  end

  # What a parameter is does not depend on which use came first.
  def test_bytes_beside_text_in_the_same_statement
    on_pool do |pool|
      found = [Postgres::Bytes.new("a"), "a", Postgres::Bytes.new("a"), "a"].map { pool.query_value("select $1::text", _1) }
      assert_equal ["\\x61", "a", "\\x61", "a"], found
      assert_raises(Postgres::Error) { pool.query_value("select 1 + $1", Postgres::Bytes.new("\0\0\0\1")) }
      assert_equal 3, pool.query_value("select 1 + $1", "2")
    end
  end

  def test_bytes_are_a_value
    bytes = Postgres::Bytes.new("é")
    assert_equal ["é".b, Encoding::BINARY, true], [bytes.to_s, bytes.to_s.encoding, bytes.frozen?]
    assert_equal bytes, Postgres::Bytes.new("é".b)
    assert_match(/Bytes of a String, got 1/, assert_raises(Ringspun::UsageError) { Postgres::Bytes.new(1) }.message)
  end

  # Statements that were prepared with bytes go on when the column is another one.
  def test_a_column_that_changes_its_type
    on_pool do |pool|
      name = "t_#{SecureRandom.hex(6)}"
      pool.execute("create table #{name} (value bytea)")
      sql = "insert into #{name} values ($1)"
      3.times { pool.execute(sql, "\\".b) }
      pool.execute("alter table #{name} alter column value type text using encode(value, 'escape')")
      told = Array.new(4) do
        pool.execute(sql, "\\".b)
      rescue Postgres::ServerError => error
        error.sqlstate
      end
      assert_equal 1, told.last
    ensure
      pool.execute("drop table if exists #{name}")
    end
  end
end
