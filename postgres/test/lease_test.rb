# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"
require "support/scripted_server/copying"

# Strands, evaluations and Enumerators that outlive the block that had their connection: they are refused, and nothing of theirs
# comes to whoever has the connection next.
class PostgresLeaseTest < Minitest::Test
  include OnScriptedPool

  Postgres = Ringspun::Postgres
  ENDED = /has ended.*; use it inside of its block only, and await there what you begin with it/

  def server_class = CopyingServer

  # The next user, on the same connection.
  def with_next(pool)
    pool.session do |session|
      yield session
      assert_equal "own", session.query_value("select echo $1", "own")
    end
    assert_equal [1, 1], pool.metrics.values_at(:connections, :idle)
  end

  # Commits what it inserts before and after the block.
  def commit_around(pool, server)
    with_next(pool) do |session|
      session.transaction do |t|
        t.transaction do |inner|
          inner.execute("insert $1", "a")
          yield
          inner.execute("insert $1", "b")
        end
      end
    end
    assert_equal %w[a b], server.committed
  end

  # In the midst of the block it waits until it may go on.
  #
  # @return [Array(Ringspun::Strand, Ringspun::Queue)]
  def outlive(machine)
    begun, go_on = Array.new(2) { Ringspun::Queue.new }
    strand = machine.spin do
      yield -> { begun.push(true) && go_on.pop }
    rescue Ringspun::Error, KeyError => error
      error
    end
    begun.pop
    [strand, go_on]
  end

  def end_of((strand, go_on)) = go_on.push(true) && strand.await

  def assert_ended(error, kind = nil)
    assert_kind_of Ringspun::UsageError, error
    assert_match ENDED, error.message
    assert_match(/\Athis #{kind} has ended/, error.message) if kind
  end

  # --- transactions ---

  def test_a_transaction_does_not_go_on_in_the_next_one
    on_pool(max: 1) do |pool, machine, server|
      left = pool.session do |session|
        outlive(machine) do |pause|
          session.transaction { |t| t.execute("insert $1", "1") && pause.call && t.execute("insert $1", "2") }
        end
      end
      commit_around(pool, server) { assert_ended end_of(left), "transaction" }
    end
  end

  def test_a_transaction_is_not_committed_in_the_next_one
    on_pool(max: 1) do |pool, machine, server|
      left = pool.session do |session|
        outlive(machine) { |pause| session.transaction { |t| t.execute("insert $1", "1") && pause.call } }
      end
      commit_around(pool, server) { assert_ended end_of(left), "transaction" }
    end
  end

  def test_the_rollback_of_a_transaction_does_not_come_to_the_next_one
    on_pool(max: 1) do |pool, machine, server|
      left = pool.session do |session|
        outlive(machine) { |pause| session.transaction { |t| t.execute("insert $1", "1") && pause.call && raise(KeyError) } }
      end
      commit_around(pool, server) { assert_kind_of KeyError, end_of(left) }
    end
  end

  def test_the_rollback_of_a_savepoint_does_not_come_to_the_next_one
    on_pool(max: 1) do |pool, machine, server|
      left = nil
      assert_raises(IOError) do
        pool.transaction do |outer|
          left = outlive(machine) do |pause|
            outer.transaction { |t| t.execute("insert $1", "1") && pause.call && raise(KeyError) }
          end
          raise IOError
        end
      end
      commit_around(pool, server) { assert_kind_of KeyError, end_of(left) }
    end
  end

  def test_a_retry_does_not_begin_in_the_next_one
    on_pool(max: 1) do |pool, machine, server|
      left = pool.session do |session|
        outlive(machine) do |pause|
          Postgres::Transaction.define_singleton_method(:sleep) { |_| pause.call }
          session.transaction(retry: 1) { |t| t.execute("fail $1, $2", "x", "40001") }
        end
      end
      commit_around(pool, server) { assert_ended end_of(left), "session" }
    end
  ensure
    Postgres::Transaction.singleton_class.remove_method(:sleep)
  end

  def test_evaluations
    on_pool(max: 1) do |pool, _machine, server|
      begun, go_on = Array.new(2) { Ringspun::Queue.new }
      evaluation = pool.session do |session|
        session.async.transaction { |t| begun.push(true) && go_on.pop && t.execute("insert $1", "1") }.tap { begun.pop }
      end
      commit_around(pool, server) do
        go_on.push(true)
        assert_ended assert_raises(Ringspun::UsageError) { evaluation.await_result }, "transaction"
      end
    end
  end

  # As soon as the block has returned: it would come behind the COMMIT, and stay.
  def test_a_statement_behind_the_commit
    on_pool(max: 1) do |pool, machine, server|
      left = nil
      pool.transaction do |t|
        t.execute("insert $1", "1")
        left = machine.spin { assert_raises(Ringspun::UsageError) { t.execute("insert $1", "2") } }
      end
      assert_ended left.await
      assert_equal %w[1], server.committed
    end
  end

  # It is the session's, and would take back what its next transaction does.
  def test_a_savepoint_that_outlives_its_transaction_in_the_same_session
    on_pool(max: 1) do |pool, machine, server|
      pool.session do |session|
        left = session.transaction { |t| outlive(machine) { |pause| t.transaction { pause.call && raise(KeyError) } } }
        session.transaction do |t|
          t.transaction do |inner|
            inner.execute("insert $1", "a")
            assert_kind_of KeyError, end_of(left)
          end
        end
        session.query("BEGIN")
        session.query("COMMIT") # as that one has not said that there is a transaction which no statement ends
      end
      assert_equal %w[a], server.committed
    end
  end

  # --- streams and COPYs ---

  ROWS = ["rows $1, $2", "first", 2000].freeze

  def test_an_enumerator_gets_no_rows_of_the_next_one
    on_pool(max: 1) do |pool|
      kept = nil
      pool.session { |session| (kept = session.stream(*ROWS, as: :array)).next }
      with_next(pool) do |session|
        mine = session.stream("rows $1, $2", "second", 3000, as: :array)
        seen = [mine.next]
        theirs = []
        assert_ended assert_raises(Ringspun::UsageError) { loop { theirs << kept.next.first } }, "session"
        loop { seen << mine.next }
        assert_equal [{ "second" => 3000 }, %w[first]], [seen.map(&:first).tally, theirs.uniq]
      end
    end
  end

  def test_a_stream_that_is_left_does_not_end_the_next_one
    on_pool(max: 1) do |pool, machine|
      left = pool.session { |session| outlive(machine) { |pause| session.stream(*ROWS) { pause.call && break } } }
      with_next(pool) do |session|
        seen = 0
        session.stream("rows $1, $2", "second", 3000) { end_of(left) if (seen += 1) == 1 }
        assert_equal 3000, seen
      end
    end
  end

  LINE = "#{"x" * 70_000}\n".freeze # more than is kept

  def test_a_copy_puts_no_rows_into_the_next_one
    [->(copy, _) { copy << LINE }, ->(copy, _) { copy << "few\n" }, ->(*) { raise KeyError }].each do |goes_on|
      on_pool(max: 1) do |pool, machine, server|
        left = pool.session do |session|
          outlive(machine) { |pause| session.copy_in("copy t (a) from stdin") { |copy| goes_on.call(copy, pause.call) } }
        end
        with_next(pool) do |session|
          copied = session.copy_in("copy t (a) from stdin") do |copy|
            copy << "1\n"
            error = end_of(left)
            assert_ended error unless error.is_a?(KeyError)
            copy << "2\n"
          end
          assert_equal [2, %w[1 2]], [copied, server.committed]
        end
      end
    end
  end

  def test_a_copy_takes_no_rows_of_the_next_one
    on_pool(max: 1) do |pool, machine, server|
      server.lines = 200
      server.pause = ->(what) { machine.sleep(0.01) if what == :row }
      left = pool.session { |session| outlive(machine) { |pause| session.copy_out("copy t (a) to stdout") { pause.call } } }
      with_next(pool) do |session|
        seen = []
        session.copy_out("copy t (a) to stdout") { |(line)| (seen << line).one? && assert_ended(end_of(left), "session") }
        assert_equal Array.new(200, &:to_s), seen
      end
    end
  end

  # --- calls that are under way ---

  def begin_to(machine, session, seconds)
    session.async.query_value("work $1, $2", "late", seconds).tap { machine.sleep(1) }
  end

  def test_a_statement_that_is_under_way_is_waited_for
    on_pool(max: 1) do |pool, machine|
      evaluation = pool.session { |session| begin_to(machine, session, "3") }
      with_next(pool) { assert_equal "late", evaluation.await_result }
    end
  end

  # What it waits for must not be freed by the end of the session.
  def test_a_stream_that_is_under_way_is_waited_for
    on_pool(max: 1) do |pool, machine|
      seen = []
      evaluation = pool.session do |session|
        session.async.stream("work $1, $2", "late", "3", as: :array) { |row| seen.concat(row) }.tap { machine.sleep(1) }
      end
      with_next(pool) do
        assert_ended assert_raises(Ringspun::UsageError) { evaluation.await_result }, "session"
        assert_equal %w[late], seen
      end
    end
  end

  # Nothing of it was sent.
  def test_one_that_has_not_begun
    on_pool(max: 1) do |pool, _machine, server|
      evaluation = pool.transaction { |t| t.async.execute("insert $1", "1") }
      assert_ended assert_raises(Ringspun::UsageError) { evaluation.await_result }, "transaction"
      assert_empty server.committed
    end
  end

  def test_a_statement_that_takes_too_long_ends_with_the_connection
    on_pool(max: 1) do |pool, machine, server|
      before = machine.now
      evaluation = pool.session { |session| begin_to(machine, session, "60") }
      assert_in_delta 6, machine.now - before, 0.5
      with_next(pool) { nil }
      error = assert_raises(Postgres::ConnectionLost) { evaluation.await_result }
      assert_match(/the block that had it has ended, and what was begun there was not awaited/, error.message)
      assert_equal 1, server.backends.count { |backend| !backend.busy? }
    end
  end

  # It is cancelled as any other.
  def test_a_statement_whose_strand_is_cancelled_meanwhile
    on_pool(max: 1) do |pool, machine|
      before = machine.now
      machine.scope do |scope|
        scope.spin { pool.session { |session| scope.spin { session.query("work $1, $2", "late", "60") } && machine.sleep } }
        scope.spin { machine.sleep(1) && scope.cancel }
      end
      with_next(pool) { nil }
      assert_in_delta 1, machine.now - before, 0.5
    end
  end

  def test_one_that_is_observed
    told = []
    on_pool(max: 1, on_statement: told.method(:push)) do |pool, machine, server|
      left = pool.session do |session|
        outlive(machine) { |pause| session.transaction { |t| pause.call && t.query("echo $1", "x") } }
      end
      commit_around(pool, server) { assert_ended end_of(left) }
    end
    assert_equal 1, told.count { |execution| execution.error.is_a?(Ringspun::UsageError) && execution.connection.nil? }
  end

  def test_what_it_says_of_itself
    on_pool(max: 1) do |pool, machine|
      kept = nil
      left = pool.session { |s| outlive(machine) { |pause| s.transaction { |t| (kept = t) && pause.call } } }
      assert_equal "#<Ringspun::Postgres::Transaction ended>", kept.inspect
      assert_ended end_of(left)
    end
  end
end
