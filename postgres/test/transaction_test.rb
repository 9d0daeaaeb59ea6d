# frozen_string_literal: true

require "postgres_helper"

# When a transaction is committed, and when not: in a strand and in a plain thread.
# servers: all
class PostgresTransactionTest < Minitest::Test
  include OnPool
  include NoNames

  def in_strand = on_pool { |pool| with_table(pool) { |table| yield pool, table } }

  def in_thread
    pool = pool()
    Thread.new { with_table(pool) { |table| yield pool, table } }.tap { |thread| thread.report_on_exception = false }.value
  ensure
    pool.close
  end

  def self.both(name, &test)
    %i[in_strand in_thread].each do |place|
      define_method("test_#{name}_#{place}") { __send__(place) { |pool, table| instance_exec(pool, table, &test) } }
    end
  end

  both :it_is_committed_when_the_block_returns do |pool, table|
    assert_equal 42, pool.transaction { |t| t.execute("insert into #{table} values (1)") && 42 }
    assert_equal [1], ids(pool, table)
  end

  both :it_is_committed_by_next do |pool, table|
    pool.transaction do |t|
      t.execute("insert into #{table} values (1)")
      next
    end
    assert_equal [1], ids(pool, table)
  end

  both :it_is_rolled_back_by_an_exception_throw_and_break do |pool, table|
    insert = ->(t) { t.execute("insert into #{table} values (1)") }
    assert_raises(RuntimeError) { pool.transaction { |t| insert.call(t) && raise("x") } }
    assert_raises(Interrupt) { pool.transaction { |t| insert.call(t) && raise(Interrupt) } }
    assert_equal(:thrown, catch(:out) { pool.transaction { |t| insert.call(t) && throw(:out, :thrown) } })
    pool.transaction { |t| insert.call(t) && break }
    assert_empty ids(pool, table)
  end

  ENDS = ["commit", "end work", "abort", "rollback", "/* all */ ROLLBACK and chain", "prepare transaction 'one'"].freeze

  both :no_statement_ends_it do |pool, table|
    assert_raises(RuntimeError) do
      pool.transaction do |t|
        ENDS.each do |sql|
          [-> { t.query(sql) }, -> { t.prepare(sql).query }, -> { t.stream(sql) { flunk } }, -> { t.script("select 1; #{sql}") },
           -> { t.batch { |batch| batch.query(sql) } }, -> { t.transaction { |inner| inner.query(sql) } }].each do |asked|
            assert_match(/no statement ends/, assert_raises(Ringspun::UsageError, sql, &asked).message)
          end
        end
        t.execute("insert into #{table} values (1)")
        raise "no"
      end
    end
    assert_empty ids(pool, table)
  end

  both :savepoints_of_one_s_own_are_as_usual do |pool, table|
    pool.transaction do |t|
      t.query("savepoint a")
      t.execute("insert into #{table} values (1)")
      t.query("rollback work to savepoint a")
      t.script("savepoint b; insert into #{table} values (2); rollback to b; insert into #{table} values (3)")
    end
    assert_equal [3], ids(pool, table)
  end

  both :a_session_ends_its_own_transactions do |pool, table|
    pool.session do |s|
      s.transaction { |t| t.execute("insert into #{table} values (1)") }
      s.query("begin")
      s.execute("insert into #{table} values (2)")
      s.query("commit")
      assert_raises(RuntimeError) { s.transaction { raise "no" } }
      s.script("begin; insert into #{table} values (3); commit")
    end
    assert_equal [1, 2, 3], ids(pool, table)
  end

  both :nobody_else_sees_it_before do |pool, table|
    pool.transaction do |t|
      t.execute("insert into #{table} values (1)")
      assert_empty ids(pool, table)
    end
    assert_equal [1], ids(pool, table)
  end

  both :a_failed_statement_makes_the_commit_an_error do |pool, table|
    assert_raises(Postgres::TransactionRolledBack) do
      pool.transaction do |t|
        t.execute("insert into #{table} values (1)")
        assert_raises(Postgres::DivisionByZero) { t.query("select 1/0") }
      end
    end
    assert_empty ids(pool, table)
  end

  both :a_savepoint_takes_back_what_was_done_in_it do |pool, table|
    pool.transaction do |t|
      t.execute("insert into #{table} values (1)")
      assert_raises(Postgres::UniqueViolation) { t.transaction { |u| u.execute("insert into #{table} values (1)") } }
      t.transaction { |u| u.execute("insert into #{table} values (2)") && break }
      assert_equal :kept, t.transaction { |u| u.execute("insert into #{table} values (3)") && :kept }
      t.transaction(join: true) { |u| u.execute("insert into #{table} values (4)") }
    end
    assert_equal [1, 3, 4], ids(pool, table)
  end

  both :it_is_run_again_when_it_could_not_be_serialized do |pool, table|
    attempts = 0
    pool.transaction(retry: 2) do |t|
      t.execute("insert into #{table} values ($1)", attempts += 1)
      t.query("do $$ begin raise sqlstate '40001'; end $$") if attempts < 3
    end
    assert_equal [3, [3]], [attempts, ids(pool, table)]
    assert_raises(Postgres::DeadlockDetected) { pool.transaction { |t| t.query("do $$ begin raise sqlstate '40P01'; end $$") } }
  end

  both :the_timeout_is_for_all_attempts_together do |pool, _table|
    assert_raises(Ringspun::TimeoutError) do
      pool.transaction(timeout: 0.1, retry: 1_000) { |t| t.query("do $$ begin raise sqlstate '40001'; end $$") }
    end
  end

  # On a server that is always faster than our look at the clock.
  def test_no_further_attempt_begins_after_the_deadline
    attempts = 0
    late = assert_raises(Ringspun::TimeoutError) do
      Postgres::Transaction.again(1_000, Postgres.now - 1) do
        attempts += 1
        raise Postgres::SerializationFailure, "40001"
      end
    end
    assert_equal [1, Postgres::SerializationFailure], [attempts, late.cause.class]
    assert_match(/not committed \(attempts: 1\)/, late.message)
  end

  both :a_statement_in_the_midst_of_a_stream_is_refused do |pool, _table|
    seen = 0
    pool.transaction do |t|
      t.stream("select generate_series(1, 2000)") do |row|
        seen += row[0]
        [-> { t.query("select 1") }, -> { t.batch { |b| b.query("select 1") } }, -> { t.stream("select 1") {} }].each do |asks|
          next unless (row[0] % 700) == 1

          assert_match(/in the midst of a stream: read it to its end first, or ask the pool/,
                       assert_raises(Ringspun::UsageError, &asks).message)
        end
      end
      assert_equal 1, t.query_value("select 1")
    end
    assert_equal 2_001_000, seen
  end

  both :what_it_takes do |pool, _table|
    modes = pool.transaction(isolation: :serializable, read_only: true, deferrable: true) do |t|
      %w[isolation read_only deferrable].map { |name| t.query_value("show transaction_#{name}") }
    end
    assert_equal %w[serializable on on], modes
    { { isolation: :chaos } => /isolation: expected one of :read_committed.*got :chaos/,
      { retry: -1 } => /retry: expected how often/ }.each do |options, message|
      assert_match message, assert_raises(Ringspun::UsageError) { pool.transaction(**options) {} }.message
    end
    error = assert_raises(Ringspun::UsageError) { pool.transaction { |t| t.transaction(retry: 3) {} } }
    assert_match(/retry: for the outermost transaction only/, error.message)
    assert_raises(Ringspun::UsageError) { pool.transaction }
  end

  both :after_its_end_it_is_refused do |pool, _table|
    kept = pool.transaction { |t| t }
    assert_match(/this transaction has ended/, assert_raises(Ringspun::UsageError) { kept.query("select 1") }.message)
  end

  both :the_connection_is_clean_afterwards do |pool, _table|
    catch(:out) { pool.transaction { |t| t.query("select 1") && throw(:out) } }
    pool.transaction { |t| t.execute("set application_name = 'left'") }
    refute_equal "left", pool.session { |s| s.query_value("show application_name") }
    assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
  end

  both :a_session_goes_on_after_a_transaction_that_was_rolled_back do |pool, table|
    pool.session do |s|
      assert_raises(RuntimeError) { s.transaction { |t| t.execute("insert into #{table} values (1)") && raise("x") } }
      s.execute("insert into #{table} values (2)")
      assert_raises(Postgres::DivisionByZero) { s.transaction { |t| t.query("select 1/0") } }
      s.transaction { |t| t.execute("insert into #{table} values (3)") }
      assert_raises(Postgres::SerializationFailure) do
        s.transaction(retry: 1) { |t| t.query("do $$ begin raise sqlstate '40001'; end $$") }
      end
      s.transaction { |t| t.stream("select generate_series(1, 2000)") { break } && break }
      s.execute("insert into #{table} values (4)")
    end
    assert_equal [2, 3, 4], ids(pool, table)
  end

  both :a_session_goes_on_after_a_transaction_whose_time_is_over do |pool, table|
    pool.session do |s|
      assert_raises(Ringspun::TimeoutError) do
        s.transaction(timeout: 0.05) { |t| t.execute("insert into #{table} values (1)") && t.query("select pg_sleep(60)") }
      end
      s.execute("insert into #{table} values (2)")
    end
    assert_equal [2], ids(pool, table)
  end

  both :a_session_goes_on_after_a_transaction_that_had_no_time_to_begin do |pool, table|
    20.times do |number|
      pool.session do |s|
        assert_raises(Ringspun::TimeoutError) { s.transaction(timeout: 0) { flunk } }
        s.execute("insert into #{table} values ($1)", number)
      end
    end
    assert_equal [*0...20], ids(pool, table)
  end

  both :a_transaction_in_the_midst_of_a_session_s_stream_is_refused do |pool, _table|
    pool.session do |s|
      seen = 0
      s.stream("select generate_series(1, 2000)") do |row|
        seen += row[0]
        next unless (row[0] % 700) == 1

        assert_match(/in the midst of a stream/, assert_raises(Ringspun::UsageError) { s.transaction { flunk } }.message)
      end
      assert_equal [2_001_000, 1], [seen, s.query_value("select 1")]
    end
  end

  both :a_session_is_made_anew do |pool, _table|
    pool.session { |s| s.query("select set_config('ringspun.mark', 'left', false), pg_advisory_lock(7)") }
    pool.session do |s|
      assert_includes [nil, ""], s.query_value("select current_setting('ringspun.mark', true)")
      assert_equal 0, s.query_value("select count(*) from pg_locks where locktype = 'advisory' and objid = 7")
    end
  end

  def test_it_is_rolled_back_when_its_strand_is_cancelled
    in_strand do |pool, table|
      machine = Ringspun::Machine.current
      inserted = false
      strand = machine.spin do
        pool.transaction do |t|
          inserted = t.execute("insert into #{table} values (1)")
          machine.sleep
        end
      end
      await(machine) { inserted }
      strand.terminate
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_equal [[], 1], [ids(pool, table), pool.metrics[:idle]]
    end
  end

  def test_its_time_is_over
    in_strand do |pool, table|
      assert_raises(Ringspun::TimeoutError) do
        pool.transaction(timeout: 0.05) do |t|
          t.execute("insert into #{table} values (1)")
          t.query("select pg_sleep(1000)")
        end
      end
      assert_empty ids(pool, table)
      nil until running(pool).empty? # somebody else cancels the statement
    end
  end

  def test_it_goes_on_after_a_statement_that_took_too_long_in_a_savepoint
    in_strand do |pool, table|
      pool.transaction do |t|
        t.execute("insert into #{table} values (1)")
        assert_raises(Ringspun::TimeoutError) { t.transaction { |u| u.query("select pg_sleep(60)", timeout: 0.05) } }
        t.execute("insert into #{table} values (2)")
      end
      assert_equal [1, 2], ids(pool, table)
    end
  end

  def test_a_connection_that_ends_meanwhile_is_told
    in_strand do |pool, table|
      error = assert_raises(Postgres::ConnectionLost) do
        pool.transaction do |t|
          t.execute("insert into #{table} values (1)")
          pool.query("select pg_terminate_backend($1)", t.query_value("select pg_backend_pid()"))
          t.query("select 1")
        end
      end
      # By the server, or by the pooler before it.
      assert_match(/terminating connection|server conn(ection closed| crashed)/, error.message)
      assert_equal [[], 0], [ids(pool, table), pool.metrics[:connections]]
    end
  end
end
