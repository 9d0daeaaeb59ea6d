# frozen_string_literal: true

require "postgres_helper"
require "support/seeds"

# What becomes of a statement that nobody waits for any more, and of those before and behind it.
# servers: all
class PostgresCancelTest < Minitest::Test
  include OnPool
  include NoNames

  SLEEP = "select pg_sleep(60)"

  def test_a_statement_whose_time_is_over_is_cancelled_on_the_server
    on_pool(lanes: 1) do |pool, machine|
      assert_raises(Ringspun::TimeoutError) { pool.query(SLEEP, timeout: 0.01) }
      assert_equal 1, pool.query_value("select 1")
      await(machine) { look { |other| running(other) }.empty? }
    end
  end

  def test_one_of_a_strand_that_is_cancelled_too
    on_pool(lanes: 1) do |pool, machine|
      strand = machine.spin { pool.query(SLEEP) }
      await(machine) { look { |other| running(other) } == [SLEEP] }
      strand.terminate
      assert_raises(Ringspun::TerminatedError) { strand.await }
      await(machine) { look { |other| running(other) }.empty? }
      assert_equal 1, pool.query_value("select 1")
    end
  end

  def test_an_evaluation_that_is_concluded_too
    on_pool(lanes: 1) do |pool, machine|
      evaluation = pool.async.query(SLEEP)
      await(machine) { look { |other| running(other) } == [SLEEP] }
      evaluation.conclude_to(:enough)
      assert_equal :enough, evaluation.await_result
      await(machine) { look { |other| running(other) }.empty? }
    end
  end

  def test_one_of_a_thread_that_is_killed_too
    pool = pool()
    thread = Thread.new { pool.query(SLEEP) }
    sleep 0.001 until look { |other| running(other) } == [SLEEP]
    thread.kill.join
    sleep 0.001 until look { |other| running(other) }.empty?
    assert_equal 1, Thread.new { pool.query_value("select 1") }.value
  ensure
    pool.close
  end

  # pgx #2534, bun #33370: https://github.com/jackc/pgx/issues/2534 https://github.com/oven-sh/bun/issues/33370
  def test_a_cancellation_meets_no_other_statement
    on_pool(lanes: 1) do |pool, machine|
      random = Random.new(Minitest.seed)
      Seeds.part(150).times do |number|
        be_late(pool, random.rand * 0.002)
        strands = Array.new(3) { |more| machine.spin { pool.query_value("select $1::int", (number * 3) + more) } }
        assert_equal Array.new(3) { |more| (number * 3) + more }, machine.await(strands)
      end
    end
  end

  def test_nor_the_next_of_the_same_session
    on_pool { |pool| assert_next_is_right(pool) }
  end

  def test_nor_the_next_of_a_session_in_a_thread
    pool = pool()
    Thread.new { assert_next_is_right(pool) }.join
  ensure
    pool.close
  end

  def test_one_with_others_behind_it_goes_on_and_they_get_their_answers
    on_pool(lanes: 1) do |pool, machine|
      pool.query("select 1")
      others = nil
      holding(LOCK) do
        first = machine.spin { pool.query(LOCK, timeout: 0.02) }
        others = Array.new(3) { |number| machine.spin { pool.query_value("select $1::int", number) } }
        assert_raises(Ringspun::TimeoutError) { first.await }
      end
      assert_equal [0, 1, 2], machine.await(others)
    end
  end

  # What comes later than a second does not go behind it, or it would keep the server at what nobody wants.
  def test_one_that_others_have_to_wait_for_is_cancelled
    on_pool(lanes: 1, max: 1) do |pool, machine|
      pool.session do
        first = machine.spin { pool.query(SLEEP) }
        since = "select count(*) from pg_stat_activity where query = $1 and now() - query_start > interval '1.1 s'"
        await(machine) { look { |other| other.query_value(since, SLEEP) } == 1 }
        others = Array.new(3) { |number| machine.spin { pool.query_value("select $1::int", number, timeout: 30) } }
        machine.yield
        first.terminate
        assert_raises(Ringspun::TerminatedError) { first.await }
        assert_equal [0, 1, 2], machine.await(others)
      end
    end
  end

  # More than may be under way at once, behind one that the server has and does not answer. Where that takes long they wait for it
  # before they are sent, for nobody else has a connection for them. What waits for a lock would go to a connection of its own.
  def test_one_that_was_not_sent_yet_never_runs
    on_pool(lanes: 1, max: 1) do |pool, machine|
      with_table(pool) do |table|
        others = pool.session do
          first = machine.spin { assert_raises(Postgres::QueryCanceled) { pool.query(SLEEP) } }
          await(machine) { look { |other| running(other) } == [SLEEP] }
          strands = Array.new(300) { |number| machine.spin { pool.execute("insert into #{table} values ($1)", number) } }
          machine.yield
          strands.last(20).each(&:terminate).each { |strand| assert_raises(Ringspun::TerminatedError) { strand.await } }
          look { |other| other.query("select pg_cancel_backend(pid) from pg_stat_activity where query = $1", SLEEP) }
          [first, *strands.first(280)]
        end
        machine.await(*others)
        assert_equal (0...280).to_a, ids(pool, table)
      end
    end
  end

  def test_a_batch_is_cancelled_as_a_whole
    on_pool(lanes: 1) do |pool, machine|
      with_table(pool) do |table|
        assert_raises(Ringspun::TimeoutError) do
          pool.batch(timeout: 0.02) do |batch|
            batch.query("insert into #{table} values (1)")
            batch.query(SLEEP)
            batch.query("insert into #{table} values (2)")
          end
        end
        await(machine) { look { |other| running(other) }.empty? }
        assert_empty ids(pool, table)
      end
    end
  end

  def test_a_stream_that_is_left_while_the_server_works
    on_pool do |pool, machine|
      pool.session { |session| session.query("select 1") }
      sql = "select g, pg_sleep(case when g = 3 then 60 else 0 end) from generate_series(1, 10) g"
      assert_raises(Ringspun::TimeoutError) { pool.stream(sql, timeout: 0.05) {} }
      await(machine) { look { |other| running(other) }.empty? }
      assert_equal 1, pool.metrics[:connections]
    end
  end

  def test_a_stream_that_is_left_in_a_transaction_leaves_it_whole
    on_pool do |pool|
      with_table(pool) do |table|
        pool.transaction do |t|
          t.execute("insert into #{table} values (1)")
          assert_equal [1, 2], t.stream("select g from generate_series(1, 100000) g", as: :array).first(2).flatten
          t.execute("insert into #{table} values (2)")
        end
        assert_equal [1, 2], ids(pool, table)
      end
    end
  end

  def test_a_thousand_strands_with_deadlines_by_chance
    on_pool(lanes: 2, max: 5) do |pool, machine|
      random = Random.new(Minitest.seed)
      strands = Array.new(1000) do |number|
        seconds = random.rand * 0.2
        machine.spin { answer_or_late(pool, number, seconds) }
      end
      answers = machine.await(strands)
      assert_empty(answers.each_with_index.reject { |answer, number| answer == :late || answer == number })
      assert_equal({ connections: pool.metrics[:idle], idle: pool.metrics[:idle], waiting: 0 }, pool.metrics.first(3).to_h)
      assert_equal [1, 2], [pool.query_value("select 1"), pool.session { |session| session.query_value("select 2") }]
      await(machine) { look { |other| running(other) }.empty? }
      pool.close
      assert_nobody_left(machine)
    end
  end

  private

  def assert_next_is_right(pool)
    random = Random.new(Minitest.seed)
    pool.session do |session|
      50.times do |number|
        be_late(session, random.rand * 0.002)
        assert_equal number, session.query_value("select $1::int", number)
      end
    end
  end

  def be_late(client, seconds)
    client.query("select pg_sleep($1)", 0.001, timeout: seconds)
  rescue Ringspun::TimeoutError
    nil
  end

  # One of fifty takes longer. Some are batches, and some have a connection of their own.
  def answer_or_late(pool, number, seconds)
    asked = ["select $1::int + 0 * length(pg_sleep($2)::text)", number, number % 50 == 0 ? 0.01 : 0]
    case number % 10
    when 7 then pool.transaction(timeout: seconds) { |t| t.query_value(*asked) }
    when 8 then pool.batch(timeout: seconds) { |batch| batch.query(*asked) }.first.value
    when 9 then pool.stream(*asked, timeout: seconds, as: :array) { |row| return row.first }
    else pool.query_value(*asked, timeout: seconds)
    end
  rescue Ringspun::TimeoutError, Postgres::PoolTimeoutError
    :late
  end
end
