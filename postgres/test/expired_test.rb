# frozen_string_literal: true

require "postgres_helper"

# What has no time left is not sent: so it has not taken effect, and the error says so.
# servers: all
class PostgresExpiredTest < Minitest::Test
  include OnPool
  include NoNames

  INSERT = "insert into %s values (1, 'late')"

  CALLS = {
    query: ->(db, table) { db.query(format(INSERT, table), timeout: 0) },
    again: ->(db, table) { db.query(format(INSERT, table), timeout: -1) },
    prepared: ->(db, table) { db.prepare(format(INSERT, table)).query(timeout: 0) },
    binary: ->(db, table) { db.query("insert into #{table} values (1, $1)", "\\x".b, timeout: 0) },
    batch: ->(db, table) { db.batch(timeout: 0) { |batch| batch.execute(format(INSERT, table)) } },
    stream: ->(db, table) { db.stream("#{format(INSERT, table)} returning id", timeout: 0) { flunk } },
    script: ->(db, table) { db.script(format(INSERT, table), timeout: 0) },
    copy_in: ->(db, table) { db.copy_in("copy #{table} from stdin", [[1, "late"]], timeout: 0) },
    copy_in_bytes: ->(db, table) { db.copy_in("copy #{table} from stdin", "1\tlate\n", timeout: 0) },
    copy_out: ->(db, table) { db.copy_out("copy #{table} to stdout", timeout: 0) { flunk } },
    insert_many: ->(db, table) { db.insert_many(table, [[1, "late"]], columns: %i[id text], timeout: 0) },
    insert_many_by_copy: ->(db, table) { db.insert_many(table, [[1, "late"]], columns: %i[id text], by: :copy, timeout: 0) },
    transaction: ->(db, table) { db.transaction(timeout: 0) { |t| t.execute(format(INSERT, table)) } }
  }.freeze

  def assert_unsent(client, table)
    CALLS.each do |name, call|
      error = assert_raises(Ringspun::TimeoutError, name.to_s) { call.call(client, table) }
      assert_equal [Postgres::StatementTimeoutError, false], [error.class, error.in_doubt?], "#{name}: #{error.message}"
      assert_equal 0, client.query_value("select count(*) from #{table}"), name
    end
  end

  def test_in_a_strand
    on_pool { |pool| with_table(pool) { |table| assert_unsent(pool, table) } }
  end

  def test_in_the_main_thread
    with_pool { |pool| with_table(pool) { |table| assert_unsent(pool, table) } }
  end

  def test_in_another_thread
    with_pool { |pool| Thread.new { with_table(pool) { |table| assert_unsent(pool, table) } }.join }
  end

  def test_in_a_session
    on_pool { |pool| with_table(pool) { |table| pool.session { |s| assert_unsent(s, table) } } }
  end

  def test_in_a_session_of_another_thread
    with_pool { |pool| Thread.new { with_table(pool) { |table| pool.session { |s| assert_unsent(s, table) } } }.join }
  end

  # A statement without time left would be answered all the same where the server is quick, and the COMMIT would be in doubt.
  def test_a_transaction_whose_time_is_over_between_two_statements
    on_pool do |pool, machine|
      with_table(pool) do |table|
        error = assert_raises(Postgres::StatementTimeoutError) do
          pool.transaction(timeout: 1) do |t| # must pass
            t.execute("insert into #{table} values (1)")
            machine.sleep(1)
            t.execute("insert into #{table} values (2)")
          end
        end
        refute_predicate error, :in_doubt?
        assert_empty ids(pool, table)
      end
    end
  end

  def test_a_transaction_whose_time_is_over_before_its_commit
    on_pool do |pool, machine|
      with_table(pool) do |table|
        error = assert_raises(Postgres::StatementTimeoutError) do
          pool.transaction(timeout: 1) do |t| # must pass
            t.execute("insert into #{table} values (1)")
            machine.sleep(1)
          end
        end
        refute_predicate error, :in_doubt?
        assert_empty ids(pool, table)
      end
    end
  end

  # Rows that are there already are not given any more. What was sent is in doubt.
  def assert_late(seconds)
    seen = 0
    error = assert_raises(Postgres::StatementTimeoutError) { yield(seconds, -> { sleep(seconds) if (seen += 1) == 1 }) }
    assert_operator seen, :<, 5000
    assert_predicate error, :in_doubt?
  end

  STREAMED = "select generate_series(1, 5000)"

  def assert_late_streams(pool)
    assert_late(1) { |timeout, slow| pool.stream(STREAMED, timeout:) { slow.call } } # must pass
    assert_late(1) { |timeout, slow| pool.copy_out("copy (#{STREAMED}) to stdout", timeout:) { slow.call } } # must pass
  end

  def test_a_stream_whose_block_takes_too_long
    on_pool { |pool| pool.session { nil } || assert_late_streams(pool) }
  end

  def test_a_stream_whose_block_takes_too_long_in_another_thread
    with_pool { |pool| Thread.new { pool.session { nil } || assert_late_streams(pool) }.join }
  end
end
