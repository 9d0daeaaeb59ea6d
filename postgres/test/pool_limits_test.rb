# frozen_string_literal: true

require "postgres_helper"

# When all connections for one user at a time are in use, and when one is new.
# servers: all
class PostgresPoolLimitsTest < Minitest::Test
  include OnPool

  HERE = %r{\Ano connection within 0\.01 s: all 1 are in use \(max: 1\)\.
#<(?<who>[^>]*)> for \d+\.\d s, at .*/pool_limits_test\.rb:\d+:in }

  def exhaust(pool) = pool.session { |_| assert_raises(Postgres::PoolTimeoutError) { pool.session { |_| nil } } }

  def test_the_error_names_the_strand_that_has_it
    on_pool(max: 1, checkout_timeout: 0.01) do |pool|
      assert_match HERE, exhaust(pool).message
      assert_match(/\ARingspun::Strand:/, exhaust(pool).message[HERE, :who])
      assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  # How one can have a connection of one's own.
  WAYS = {
    session: ->(pool, &held) { pool.session { |_| held.call } },
    transaction: ->(pool, &held) { pool.transaction { |_| held.call } },
    stream: ->(pool, &held) { pool.stream("select 1") { |_| held.call } },
    stream_of_a_prepared_statement: ->(pool, &held) { pool.prepare("select 1").stream { |_| held.call } },
    enumerator: ->(pool, &held) { pool.stream("select 1").tap(&:next) && held.call },
    enumerator_of_a_prepared_statement: ->(pool, &held) { pool.prepare("select 1").stream.tap(&:next) && held.call },
    session_that_is_begun: ->(pool, &held) { pool.async.session { |_| held.call }.await_result }
  }.freeze
  private_constant :WAYS

  def assert_named(who, pool, way)
    said = nil
    WAYS[way].call(pool) { said = assert_raises(Postgres::PoolTimeoutError) { pool.session { |_| nil } }.message }
    assert_match HERE, said
    assert_match(/\A#{who}:/, said[HERE, :who])
  end

  WAYS.each_key do |way|
    define_method("test_the_error_names_the_strand_that_has_a_#{way}") do
      on_pool(max: 1, checkout_timeout: 0.01) { |pool| assert_named("Ringspun::Strand", pool, way) }
    end
  end

  WAYS.each_key do |way|
    next if way == :session_that_is_begun # strands only begin one

    define_method("test_the_error_names_the_thread_that_has_a_#{way}") do
      pool = pool(max: 1, checkout_timeout: 0.01)
      Thread.new { assert_named("Thread", pool, way) }.join
      assert_named("Thread", pool, way) unless way.start_with?("enumerator") # of the main program
    ensure
      pool.close
    end
  end

  def test_the_error_names_the_task_that_has_it
    require "async"
    pool = pool(max: 1, checkout_timeout: 0.01)
    Sync { assert_named("Fiber", pool, :session) }
  ensure
    pool.close
  end

  def test_the_time_of_the_call_counts_where_it_is_shorter
    on_pool(max: 1) do |pool|
      pool.session do |_|
        error = assert_raises(Postgres::PoolTimeoutError) { pool.session(timeout: 0.01) { |_| nil } }
        assert_match HERE, error.message
      end
    end
  end

  def test_the_first_statement_of_a_connection_is_cancelled_on_the_server
    on_pool do |pool, machine|
      assert_raises(Ringspun::TimeoutError) { pool.query("select pg_sleep(60), 'first'", timeout: 0.5) }
      look { |other| await(machine) { running(other).grep(/'first'/).empty? } }
    end
  end

  def test_a_statement_whose_columns_have_changed
    on_pool(lanes: 1) do |pool|
      with_table(pool, 1) do |table|
        3.times { assert_equal [[1, "1"]], pool.query("select * from #{table}").rows }
        pool.execute("alter table #{table} add column more int default 5")
        2.times { assert_equal [[1, "1", 5]], pool.query("select * from #{table}").rows }
      end
    end
  end

  def test_a_statement_whose_columns_have_changed_for_many_at_once
    on_pool(lanes: 1) do |pool, machine|
      with_table(pool, 1) do |table|
        3.times { pool.query("select * from #{table}") }
        pool.execute("alter table #{table} add column more int default 5")
        asking = Array.new(5) { machine.spin { pool.query("select * from #{table}").rows } }
        assert_equal [[[1, "1", 5]]] * 5, asking.map(&:await)
      end
    end
  end

  def test_who_waits_is_told_that_the_pool_is_closed
    on_pool(max: 1) do |pool, machine|
      waiting = nil
      pool.session do |_|
        waiting = machine.spin { assert_raises(Ringspun::ClosedError) { pool.session { |_| nil } } }
        await(machine) { pool.metrics[:waiting] == 1 }
        pool.close
      end
      assert_equal "the pool is closed", waiting.await.message
    end
  end
end
