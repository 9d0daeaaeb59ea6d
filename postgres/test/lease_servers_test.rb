# frozen_string_literal: true

require "postgres_helper"

# As lease_test.rb, of strands and plain threads with a server of Postgres.
# servers: all
class PostgresLeaseServersTest < Minitest::Test
  include OnPool
  include NoNames

  ENDED = /has ended.*and await there what you begin with it/
  LOCK = 4711

  def setup
    super
    @begun, @go_on = Array.new(2) { Thread::Queue.new }
  end

  def insert(client, table, id) = client.execute("insert into #{table} values ($1)", id)

  # What a session's block begins and leaves.
  def begin_transaction(session, table)
    session.transaction { |t| insert(t, table, 1) && @begun.push(true) && @go_on.pop && insert(t, table, 2) }
    flunk "it is not committed"
  rescue Ringspun::UsageError => error
    error.message
  end

  # @yieldreturn [String] once the transaction of the next user has begun
  def assert_all_rolled_back(pool, table)
    assert_raises(IOError) do
      pool.transaction do |t|
        insert(t, table, 3)
        @go_on << true
        assert_match ENDED, yield
        insert(t, table, 4)
        raise IOError
      end
    end
    assert_empty ids(pool, table)
  end

  def test_an_evaluation_that_outlives_its_session
    on_pool(max: 1) do |pool|
      with_table(pool) do |table|
        evaluation = pool.session { |s| Ringspun.concurrently { begin_transaction(s, table) }.tap { @begun.pop } }
        assert_all_rolled_back(pool, table) { evaluation.await_result }
      end
    end
  end

  def test_a_thread_that_outlives_its_session
    with_pool(max: 1) do |pool|
      with_table(pool) do |table|
        quiet_thread do
          left = pool.session { |s| quiet_thread { begin_transaction(s, table) }.tap { @begun.pop } }
          assert_all_rolled_back(pool, table) { left.value }
        end.join
      end
    end
  end

  # The server is asked for the type of its parameter first, and the statement would come behind the ROLLBACK, and stay.
  # It answers when the transaction has ended: what it describes is locked until then.
  def test_an_evaluation_that_asks_for_types_as_its_transaction_ends
    on_pool(max: 2) do |pool, machine|
      with_table(pool) do |table|
        holder = machine.spin { hold_table(pool, table) }
        @begun.pop
        evaluation = nil
        assert_raises(IOError) do
          pool.transaction do |t|
            t.query("select 1")
            evaluation = t.async.execute("insert into #{table} select unnest(coalesce($1, array[7]))", [1])
            await(machine) { waited_for?(pool, table) }
            @go_on << true # for another strand, which is no sooner there than the ROLLBACK
            raise IOError
          end
        end
        holder.await
        assert_match(/this transaction has ended/, assert_raises(Ringspun::UsageError) { evaluation.await_result }.message)
        assert_empty ids(pool, table)
      end
    end
  end

  def hold_table(pool, table)
    pool.transaction { |t| t.query("lock table #{table}") && @begun.push(true) && @go_on.pop }
  end

  def waited_for?(pool, table)
    pool.query_value("select count(*) from pg_locks where not granted and relation = $1::regclass", table) == 1
  end

  SLOW = "select 7 from pg_sleep(0.2)"

  # A proxy may give each transaction another process of the server.
  def lane_of(session) = session.instance_variable_get(:@lane)

  # The machine of the main thread runs only while that waits. The end of the session waits for the call.
  # The connection stays.
  def test_an_evaluation_that_is_under_way_outside_of_a_run
    with_pool(max: 1) do |pool|
      lane = pool.session { |s| lane_of(s) }
      begun, unbegun = pool.session do |s|
        [s.async.query_value(SLOW).tap { Ringspun::Machine.current.sleep(0) }, s.async.query_value(SLOW)]
      end
      assert_equal 7, begun.await_result
      assert_match ENDED, assert_raises(Ringspun::UsageError) { unbegun.await_result }.message
      assert_same lane, pool.session { |s| lane_of(s) }
    end
  end

  # The hook has the connection once the session has given it back.
  def test_a_hook_that_asks_the_pool_while_a_rollback_outlives_its_session
    pool = nil
    hook = ->(call) { @begun.push(true) && @go_on.push(pool.session { |s| lane_of(s) }) if call.sql == "ROLLBACK" }
    on_pool(max: 1, on_statement: hook) do |made|
      pool = made
      lane, evaluation = pool.session do |s|
        failing = s.async.transaction { |t| t.query("select 1") && raise(IOError) }
        [lane_of(s), failing.tap { @begun.pop }]
      end
      assert_raises(IOError) { evaluation.await_result }
      assert_same lane, @go_on.pop
    end
  end

  def test_a_forked_child_waits_for_none_of_the_threads_that_it_has_not
    lease = Ringspun::Postgres.const_get(:Lease).new
    lease.calls << true
    _, status = Process.wait2(fork { exit!(lease.end) })
    assert_predicate status, :success?
  end

  ROWS = "select $1 from generate_series(1, 5000)"

  def assert_own_rows(pool)
    kept = nil
    pool.session { |s| (kept = s.stream(ROWS, "first", as: :array)).next }
    pool.session do |s|
      mine = s.stream(ROWS, "second", as: :array)
      seen = [mine.next]
      theirs = []
      assert_match ENDED, assert_raises(Ringspun::UsageError) { loop { theirs << kept.next } }.message
      loop { seen << mine.next }
      assert_equal [{ ["second"] => 5000 }, [["first"]]], [seen.tally, theirs.uniq]
    end
  end

  def test_an_enumerator_of_a_strand = on_pool(max: 1) { |pool| assert_own_rows(pool) }

  def test_an_enumerator_of_a_thread = with_pool(max: 1) { |pool| quiet_thread { assert_own_rows(pool) }.join }

  def test_an_enumerator_of_the_main_thread = with_pool(max: 1) { |pool| assert_own_rows(pool) }

  ASKED = {
    query: ->(s) { s.query_value("select 1 from pg_advisory_xact_lock($1)", LOCK) },
    stream: ->(s) { s.stream("select 1 from pg_advisory_xact_lock($1)", LOCK, as: :array).first.first }
  }.freeze

  # The block yields while another thread waits for a lock in the session of this one.
  def while_asked(pool, ask)
    pool.transaction do |other|
      ASKED[:query].call(other)
      session = nil
      owner = quiet_thread { pool.session { |s| quiet_thread { ask.call(session = s) }.tap { @begun.push(true) && @go_on.pop } } }
      @begun.pop
      wait_until { other.query_value("select count(*) from pg_locks where not granted and objid = $1", LOCK) == 1 }
      yield session, owner
    end
  end

  ASKED.each do |name, ask|
    # The session's end waits for it, and the connection stays.
    define_method("test_a_#{name}_of_a_thread_that_is_under_way") do
      with_pool(max: 2) do |pool|
        owner = quiet_thread do
          while_asked(pool, ask) do |session, owner|
            @go_on << true
            wait_until { session.over? }
            owner
          end
        end.value
        assert_equal [1, 2, 2], [owner.value.value, *pool.metrics.values_at(:connections, :idle)]
      end
    end

    # Which is closed when it takes too long: that does not wait behind it.
    define_method("test_a_#{name}_of_a_thread_whose_connection_is_closed") do
      with_pool(max: 2) do |pool|
        quiet_thread do
          while_asked(pool, ask) do |session, owner|
            session.instance_variable_get(:@lane).close("it took too long")
            @go_on << true
            assert_raises(Postgres::ConnectionLost) { owner.value.value }
          end
        end.join
        assert_equal [1, 1], pool.metrics.values_at(:connections, :idle)
      end
    end
  end
end
