# frozen_string_literal: true

require "postgres_helper"

# servers: all

# Arrays are Arrays, whatever they are of, at each use and by each door, also of types that nobody has met before.
class PostgresArrayTypesTest < Minitest::Test
  include OnPool
  include NoNames

  # All that the server itself has; the OIDs of others are not the same everywhere.
  BUILT_IN = "select format_type(a.oid, null) from pg_type a join pg_type e on e.typarray = a.oid where a.oid < 10000"

  def test_each_array_type_of_the_server
    on_pool do |pool|
      names = pool.query(BUILT_IN).rows.flatten
      assert_operator names.size, :>, 80
      names.each_slice(20) do |some|
        sql = "select #{some.map { |name| "'{}'::#{name}" }.join(", ")}"
        3.times { assert_equal [[]] * some.size, pool.query(sql).rows.first, sql }
      end
    end
  end

  ARRAYS = {
    "array['a', null]::name[]" => ["a", nil], "array['pg_class']::regclass[]" => ["pg_class"],
    "array['12:30']::time[]" => ["12:30:00"],
    "array[int4range(1, 3), null]" => ["[1,3)", nil], "array['<a>,</a>']::xml[]" => ["<a>,</a>"],
    "array['00:00:00:00:00:01']::macaddr[]" => ["00:00:00:00:00:01"], "array[box '((1,2),(3,4))', box '((0,0),(1,1))']" =>
      ["(3,4),(1,2)", "(1,1),(0,0)"], "array[point '(1,2)']" => ["(1,2)"], "array[array['a']]::name[]" => [["a"]],
    "array[row(1, 'a,b')]" => ["(1,\"a,b\")"], "array['7'::money]::text" => "{$7.00}"
  }.freeze

  def test_arrays_of_texts
    on_pool do |pool|
      ARRAYS.each { |sql, value| assert_equal [value] * 3, Array.new(3) { pool.query_value("select #{sql}") }, sql }
    end
  end

  DOORS = {
    query: ->(pool, sql) { pool.query(sql).rows }, one: ->(pool, sql) { [pool.query_one(sql).to_a] },
    batch: ->(pool, sql) { pool.batch { _1.query(sql) }.first.rows }, stream: ->(pool, sql) { pool.stream(sql, as: :array).to_a },
    session: ->(pool, sql) { pool.session { _1.query(sql).rows } },
    transaction: ->(pool, sql) { pool.transaction { _1.query(sql).rows } },
    stream_in_transaction: ->(pool, sql) { pool.transaction { |t| t.stream(sql, as: :array).to_a } },
    thread: ->(pool, sql) { Thread.new { pool.query(sql).rows }.value },
    thread_stream: ->(pool, sql) { Thread.new { pool.stream(sql, as: :array).to_a }.value }
  }.freeze

  DOORS.each do |door, ask|
    define_method("test_types_that_nobody_has_met_by_#{door}") do
      with_types do |name|
        on_pool do |pool|
          sql = "select array['sad', null, 'so, so']::#{name}_mood[], array[1, 2]::#{name}_number[], " \
                "array[array[7]]::#{name}_deep[], array['(1,a)']::#{name}_pair[], '{}'::#{name}_number[], 'sad'::#{name}_mood, " \
                "array['{1,2}']::#{name}_list[]"
          expected = [["sad", nil, "so, so"], [1, 2], [[7]], ["(1,a)"], [], "sad", [[1, 2]]]
          3.times { assert_equal [expected], ask.call(pool, sql) }
        end
      end
    end
  end

  # Where a statement of others has to wait for a connection, there may be none.
  def test_a_stream_that_has_the_only_connection
    with_types do |name|
      on_pool(max: 1, pipelining: false) do |pool|
        2.times { assert_equal [[["sad"]]], pool.stream("select array['sad']::#{name}_mood[]", as: :array).to_a }
      end
    end
  end

  # Lanes know the statement by then, and later callers meet types that were looked up.
  def test_many_at_once_meet_a_new_type
    with_types do |name|
      on_pool do |pool, machine|
        found = []
        sql = "select array['sad']::#{name}_mood[]"
        asked = Array.new(40) { |i| machine.spin { found << pool.query_value("#{sql} /* #{i % 3} */") } }
        asked.each(&:join)
        assert_equal [["sad"]] * 40, found
      end
    end
  end

  def test_types_of_a_transaction_that_nobody_else_sees
    name = "mood_#{SecureRandom.hex(6)}"
    on_pool do |pool|
      pool.transaction do |transaction|
        transaction.execute("create type #{name} as enum ('sad')")
        assert_equal [["sad"]], transaction.stream("select array['sad']::#{name}[]", as: :array).first
        3.times { assert_equal ["sad"], transaction.query_value("select array['sad']::#{name}[] as other") }
        assert_equal [["sad"]], transaction.batch { _1.query("select array['sad']::#{name}[] as batched") }.map(&:value)
        raise IOError
      rescue IOError
        nil
      end
      assert_equal 1, pool.query_value("select 1")
    end
  end

  def test_a_type_that_is_dropped_and_created
    name = "mood_#{SecureRandom.hex(6)}"
    look { |client| client.execute("create type #{name} as enum ('sad')") }
    on_pool(types: { name => :to_sym.to_proc }) do |pool|
      ask = -> { pool.query("select 'sad'::#{name}, array['sad', null]::#{name}[]").rows.first }
      3.times { assert_equal [:sad, [:sad, nil]], ask.call }
      look do |client|
        client.execute("drop type #{name}")
        client.execute("create type #{name} as enum ('sad')")
      end
      found = Array.new(4) do
        ask.call
      rescue Postgres::ServerError => error
        error.message
      end
      assert_equal [:sad, [:sad, nil]], found.last
      assert_empty found - [[:sad, [:sad, nil]], :refused]
      assert_equal([[:sad, [:sad]]], pool.stream("select 'sad'::#{name}, array['sad']::#{name}[]", as: :array).to_a)
    end
  ensure
    look { |client| client.execute("drop type if exists #{name}") }
  end

  # What was executed must not be lost from sight.
  def test_a_row_that_was_written_is_told_of_once
    with_types do |name|
      on_pool do |pool|
        with_table(pool) do |table|
          moods = pool.query_value("insert into #{table} values (1, 'a') returning array['sad']::#{name}_mood[]")
          assert_equal [["sad"], [1]], [moods, ids(pool, table)]
        end
      end
    end
  end

  private

  def with_types
    name = "t_#{SecureRandom.hex(6)}"
    look do |client|
      client.execute("create type #{name}_mood as enum ('sad', 'so, so')")
      client.execute("create domain #{name}_number as int")
      client.execute("create domain #{name}_deep as #{name}_number check (value > 0)")
      client.execute("create type #{name}_pair as (number int, text text)")
      client.execute("create domain #{name}_list as int[]")
    end
    yield name
  ensure
    look do |client|
      %w[deep number list].each { |kind| client.execute("drop domain if exists #{name}_#{kind}") }
      %w[mood pair].each { |kind| client.execute("drop type if exists #{name}_#{kind}") }
    end
  end
end
