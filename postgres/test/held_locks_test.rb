# frozen_string_literal: true

require "postgres_helper"
require "pg"

# Callers that hold a lock and ask the pool meanwhile, themselves or by others, beside statements that wait for that lock: nobody
# waits for somebody who waits for him. Gates and the server's own view decide when each goes on.
class PostgresHeldLocksTest < Minitest::Test
  include OnPool
  include NoNames

  ADD = "set n = n + $1 where id = 1"

  [1, 2, 4].each do |lanes|
    define_method("test_a_holder_of_a_lock_asks_the_pool_meanwhile_with_#{lanes}_lanes") do
      on_pool(lanes:) do |pool, machine|
        with_row(pool) do |table|
          waiting = nil
          pool.transaction do |t|
            t.execute("update #{table} #{ADD}", 1)
            waiting = machine.spin { pool.execute("update #{table} #{ADD}", 10) }
            await_waiter(machine, table)
            assert_equal [42] * 8, Array.new(8) { pool.query_value("select 42") }
          end
          waiting.await
          assert_equal 11, pool.query_value("select n from #{table}")
        end
      end
    end

    # The holder does not ask itself: it waits for a strand that does.
    define_method("test_a_holder_of_a_lock_awaits_a_strand_that_asks_the_pool_with_#{lanes}_lanes") do
      on_pool(lanes:) do |pool, machine|
        with_row(pool) do |table|
          asking = Ringspun::Channel.new(1)
          third = machine.spin { asking.pop && pool.query_value("select 43") }
          waiting = nil
          pool.transaction do |t|
            t.execute("update #{table} #{ADD}", 1)
            waiting = Array.new(3) { machine.spin { pool.execute("update #{table} #{ADD}", 10) } }
            await_waiter(machine, table)
            asking.push(true)
            assert_equal 43, third.await
          end
          machine.await(waiting)
          assert_equal 31, pool.query_value("select n from #{table}")
        end
      end
    end
  end

  def test_a_quick_statement_that_meets_a_lock_holds_up_nobody
    on_pool do |pool, machine|
      with_row(pool) do |table|
        40.times { pool.execute("update #{table} #{ADD}", 0) }
        waiting = nil
        pool.transaction do |t|
          t.execute("update #{table} #{ADD}", 1)
          waiting = Array.new(4) { machine.spin { pool.execute("update #{table} #{ADD}", 10) } }
          await_waiter(machine, table)
          40.times { assert_equal 42, pool.query_value("select 42") }
        end
        machine.await(waiting)
        assert_equal 41, pool.query_value("select n from #{table}")
      end
    end
  end

  def test_plain_threads_that_hold_locks_and_ask_meanwhile
    with_pool do |pool|
      with_row(pool, 3) do |table|
        threads = Array.new(8) { |number| Thread.new { 12.times { |turn| lock_and_ask(pool, table, number + turn) } } }
        threads.each(&:value)
        assert_equal 8 * 12 * 2, pool.query_value("select sum(n)::int from #{table}")
      end
    end
  end

  def test_machines_in_threads_that_hold_locks_and_ask_meanwhile
    with_pool do |pool|
      with_row(pool, 3) do |table|
        threads = Array.new(3) do
          Thread.new do
            Ringspun.run do |machine|
              strands = Array.new(5) do |number|
                machine.spin { 6.times { |turn| lock_and_ask(pool, table, number + turn) } }
              end
              machine.await(strands)
            end
          end
        end
        threads.each(&:value)
        assert_equal 3 * 5 * 6 * 2, pool.query_value("select sum(n)::int from #{table}")
      end
    end
  end

  def test_a_slow_statement_holds_up_nobody
    on_pool(lanes: 1) do |pool, machine|
      capture_io do
        slow = machine.spin { pool.query("select pg_sleep(1000)") }
        look { |other| await(machine) { running(other).any? { |sql| sql.include?("pg_sleep(1000)") } } }
        quick = Array.new(100) { |number| machine.spin { pool.query_value("select $1::int", number) } }
        assert_equal (0...100).to_a, machine.await(quick)
        assert_predicate slow, :alive?
        slow.terminate
        assert_raises(Ringspun::TerminatedError) { slow.await }
        look { |other| await(machine) { running(other).empty? } } # for the server's next test
      end
    end
  end

  # A server reads its own tables as a connection begins, and waits for who locks them.
  def test_a_connection_that_begins_waits_for_a_lock_of_the_server_as_others_do
    url = "postgres://ringspun@/postgres?host=#{Servers.postgres.folder}"
    PG.connect(url) do |holder|
      PG.connect(url) do |watcher|
        holder.exec("begin; lock table pg_catalog.pg_db_role_setting in access exclusive mode")
        Ringspun.run do |machine|
          pool = Postgres::Pool.new(url)
          asking = Array.new(3) { |number| machine.spin { pool.query_value("select $1::int", number) } }
          await(machine) { watcher.exec("select 1 from pg_locks where not granted").any? || asking.none?(&:alive?) }
          holder.exec("rollback")
          assert_equal [0, 1, 2], machine.await(asking)
        ensure
          pool.close
        end
      end
    end
  end

  # The role, the database or the URL may have one.
  def test_a_lock_timeout_of_the_users_own_is_kept
    on_pool(options: "-c lock_timeout=40") do |pool|
      with_row(pool) do |table|
        pool.transaction do |t|
          t.execute("update #{table} #{ADD}", 1)
          error = assert_raises(Postgres::LockNotAvailable) { pool.execute("update #{table} #{ADD}", 10) }
          refute_predicate error, :in_doubt?
          assert_equal "40ms", t.query_value("show lock_timeout")
        end
        assert_equal 1, pool.query_value("select n from #{table}")
      end
    end
  end

  # It fails at once, and is not run again.
  def test_a_lock_that_is_not_waited_for_is_the_users
    on_pool do |pool|
      with_row(pool) do |table|
        pool.transaction do |t|
          t.execute("update #{table} #{ADD}", 1)
          assert_raises(Postgres::LockNotAvailable) { pool.query("select 1 from #{table} where id = 1 for update nowait") }
        end
        assert_equal 0, pool.metrics[:lock_waits]
      end
    end
  end

  private

  def with_row(pool, rows = 1)
    name = "locks_#{SecureRandom.hex(6)}"
    pool.execute("create table #{name} (id int primary key, n int not null)")
    pool.execute("insert into #{name} select g, 0 from generate_series(1, $1::int) g", rows)
    yield name
  ensure
    pool.execute("drop table if exists #{name}")
  end

  # Until the server has one that waits for the lock of the row. A transaction would see the same activity again and again.
  def await_waiter(machine, table)
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like $1"
    look { |other| await(machine) { other.query_value(waiting, "update #{table}%").positive? } }
  end

  # All lock rows in no order: each holds one only.
  def lock_and_ask(pool, table, number)
    pool.transaction do |t|
      t.execute("update #{table} set n = n + 1 where id = $1", (number % 3) + 1)
      assert_equal 42, pool.query_value("select 42")
    end
    pool.execute("update #{table} set n = n + 1 where id = $1", (number % 3) + 1)
  end
end
