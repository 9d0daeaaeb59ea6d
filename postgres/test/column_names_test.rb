# frozen_string_literal: true

require "postgres_helper"

# servers: all

# Two columns of one name.
class PostgresColumnNamesTest < Minitest::Test
  include OnPool
  include NoNames

  def test_each_way_to_ask_by_name_is_told_the_last
    on_pool do |pool|
      3.times do
        row = pool.query_one("select 1 as id, 'x' as name, 2 as id")
        assert_equal [2, 2, { "id" => 2, "name" => "x" }, [1, "x", 2]], [row[:id], row["id"], row.to_h, row.to_a]
        assert_equal([1, 2, %w[id name id]], [row[0], row[-1], row.columns])
        row => { id: }
        assert_equal 2, id
      end
      result = pool.query("select 1 as id, 2 as id")
      assert_equal [[{ "id" => 2 }], [{ "id" => 2 }]], [result.hashes, result.each_hash.to_a]
      assert_equal([2, { "id" => 2 }], [pool.stream("select 1 as id, 2 as id").first[:id],
                                        pool.stream("select 1 as id, 2 as id", as: :hash).first])
    end
  end

  DOORS = {
    query: ->(pool, sql) { pool.query(sql) }, batch: ->(pool, sql) { pool.batch { _1.query(sql) } },
    session: ->(pool, sql) { pool.session { |session| session.query(sql) } }, stream: ->(pool, sql) { pool.stream(sql).to_a },
    stream_in_transaction: ->(pool, sql) { pool.transaction { |transaction| transaction.stream(sql).to_a } },
    thread: ->(pool, sql) { Thread.new { pool.query(sql) }.value }
  }.freeze

  DOORS.each do |door, ask|
    define_method("test_a_warning_names_both_tables_by_#{door}") do
      on_tables do |pool, one, other|
        sql = "select a.*, b.* from #{one} a join #{other} b using (id)"
        expected = "ringspun: #{one} and #{other} have a column id each in this result; by name there is only that of " \
                   "#{other}: name one of them with `as`\n"
        assert_equal expected, verbose(true) { ask.call(pool, sql) }[1].lines.first
      end
    end
  end

  def test_no_warning_without_a_cause
    on_tables do |pool, one, other|
      assert_empty verbose(false) { pool.query("select a.*, b.* from #{one} a join #{other} b using (id)") }[1]
      assert_empty verbose(nil) { pool.query("select a.*, b.id from #{one} a join #{other} b using (id)") }[1]
      out = verbose(true) do
        assert_equal %w[id text text], pool.query("select * from #{one} a join #{other} b using (id)").columns
        pool.query("select a.id, b.id as other from #{one} a join #{other} b using (id)")
        pool.query("select 1, 2, id from #{one}")
      end[1]
      assert_equal 1, out.lines.size
      assert_match(/column text/, out)
    end
  end

  # By one connection: a pool opens another one when that is slow.
  def test_a_warning_comes_once_for_a_statement
    on_tables do |pool, one, other|
      sql = "select a.id, b.id from #{one} a join #{other} b using (id)"
      out = verbose(true) { pool.session { |session| 4.times { session.query(sql) } } }[1]
      assert_equal 1, out.lines.size
    end
  end

  private

  def on_tables
    on_pool(lanes: 1) { |pool| with_table(pool, 1) { |one| with_table(pool, 1) { |other| yield pool, one, other } } }
  end

  def verbose(value)
    before = $VERBOSE
    capture_io do
      $VERBOSE = value
      yield
    end
  ensure
    $VERBOSE = before
  end
end
