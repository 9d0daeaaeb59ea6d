# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"

# What strands wait that share connections with slow statements and locks. Time is virtual.
class PostgresSharingTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres

  SLOW = 9 # of the ten connections that a pool has by default
  QUICK = 100

  QUICK_SQL = "select work $1, $2, 'quick'"

  [1, 2, 4].each do |lanes|
    define_method("test_statements_beside_unknown_ones_that_take_long_with_#{lanes}_lanes") do
      worst = on_pool(lanes:) { |pool, machine| worst_beside(pool, machine) { slow_by_its_text(pool, _1) } }.value
      assert_operator worst, :<=, 0.05
    end

    define_method("test_statements_that_are_unknown_as_well_beside_those_with_#{lanes}_lanes") do
      worst = on_pool(lanes:) { |pool, machine| worst_beside(pool, machine, known: false) { slow_by_its_text(pool, _1) } }.value
      assert_operator worst, :<=, 0.05
    end

    define_method("test_statements_beside_those_that_are_known_to_take_long_with_#{lanes}_lanes") do
      worst = on_pool(lanes:) do |pool, machine|
        20.times { pool.query("select work $1, $2", "slow", "0.5") }
        worst_beside(pool, machine) { pool.query("select work $1, $2", "slow", "30") }
      end.value
      assert_operator worst, :<=, 0.05
    end

    define_method("test_statements_beside_quick_ones_that_meet_a_lock_with_#{lanes}_lanes") do
      worst = on_pool(lanes:) do |pool, machine|
        know(pool, "await $1, $2", "0")
        worst_beside(pool, machine) { assert_equal "x", pool.query_value("await $1, $2", "x", "30") }
      end.value
      assert_operator worst, :<=, 0.15
    end
  end

  # Nothing else would be sent behind what may wait so long.
  def test_a_server_behind_a_pooler_that_knows_no_lock_timeout_gets_nothing_behind_a_write
    worst = on_pooler do |pool, machine, server|
      know(pool, "await $1, $2", "0")
      worst_beside(pool, machine) { pool.query("await $1, $2", "x", "30") }.tap { assert_equal 0, pool.metrics[:lock_waits] }
                                                                          .tap { refute_empty server.backends }
    end.value
    assert_operator worst, :<=, 0.05
  end

  # It takes the setting as the connection begins, and the server never hears of it.
  def test_a_pooler_that_drops_a_lock_timeout_gets_nothing_behind_a_write_either
    worst = on_pooler(DroppingPooler) do |pool, machine|
      know(pool, "await $1, $2", "0")
      worst_beside(pool, machine) { pool.query("await $1, $2", "x", "30") }.tap { assert_equal 0, pool.metrics[:lock_waits] }
    end.value
    assert_operator worst, :<=, 0.05
  end

  def test_what_has_met_a_lock_is_counted_and_runs_once_on_a_connection_of_its_own
    on_pool(lanes: 1) do |pool, machine|
      know(pool, "await $1, $2", "0")
      began = machine.now
      assert_equal "a", pool.query_value("await $1, $2", "a", "3")
      assert_in_delta 3.01, machine.now - began, 0.01
      assert_equal [1, 1], pool.metrics.values_at(:lock_waits, :connections)
    end
  end

  def test_a_batch_that_has_met_a_lock_runs_on_a_connection_of_its_own
    on_pool(lanes: 1) do |pool, _, server|
      results = pool.batch { |batch| batch.query("insert $1", "x").query("await $1, $2", "a", "3") }
      assert_equal ["a", ["x"], 1], [results.last.value, server.committed, pool.metrics[:lock_waits]]
    end
  end

  def test_what_was_held_up_is_counted_and_said_once_in_a_while
    on_pool(lanes: 1) do |pool, machine|
      know(pool, "select echo $1")
      said = /\Aringspun: "work \$1, \$2" took 2\.0 s on a shared connection, and 3 others went to other ones .*\n\z/
      assert_output("", said) do
        slow = machine.spin { pool.query("work $1, $2", "slow", "2") }
        machine.yield
        3.times { machine.spin { pool.query("select echo $1", "a") } }
        slow.await
      end
      assert_equal 3, pool.metrics[:held_up]
    end
  end

  # So nobody waits for ever for somebody who waits for him.
  def test_who_finds_all_connections_taken_is_told_who_has_them
    on_pool(lanes: 1, max: 1) do |pool, machine|
      capture_io do
        slow = machine.spin { pool.query("work $1, $2", "slow", "30") }
        pool.session do
          machine.yield
          error = assert_raises(Postgres::PoolTimeoutError) { pool.query("select echo $1", "a") }
          assert_match(/no connection within 5 s: all 1 are in use.*sharing_test\.rb.*a shared one: "work \$1, \$2" for 5\.\d s/m,
                       error.message)
          refute_predicate error, :in_doubt?
        end
        slow.await
      end
    end
  end

  def test_what_was_not_sent_before_its_deadline_is_not_in_doubt
    on_pool(lanes: 1, max: 1) do |pool, machine|
      capture_io do
        slow = machine.spin { pool.query("work $1, $2", "slow", "30") }
        pool.session do
          machine.yield
          [0.01, 1].each do |timeout|
            error = assert_raises(Ringspun::TimeoutError) { pool.query("select echo $1", "a", timeout:) }
            refute_predicate error, :in_doubt?
            refute_match(/may have taken effect/, error.message)
          end
        end
        slow.await
      end
    end
  end

  def test_what_was_sent_and_not_answered_before_its_deadline_is_in_doubt
    on_pool do |pool|
      error = assert_raises(Ringspun::TimeoutError) { pool.query("work $1, $2", "slow", "30", timeout: 1) }
      assert_predicate error, :in_doubt?
    end
  end

  # One in a transaction would end before others that it may commit in its midst.
  def test_what_may_commit_in_its_midst_never_comes_to_a_shared_connection
    on_pool do |pool|
      pool.query("select echo $1", "a")
      assert_raises(Postgres::SyntaxError) { pool.execute("call $1", "x") }
      assert_equal 1, pool.metrics[:connections]
    end
  end

  private

  # Often enough to be known as quick.
  def know(pool, sql, *rest) = 40.times { pool.query(sql, "x", *rest) }

  # Nobody has used that text before.
  def slow_by_its_text(pool, number) = pool.query("select work $1, $2, #{number}", "slow", "30")

  # @return [Float] seconds that the last of many quick statements took
  def worst_beside(pool, machine, known: true)
    known ? know(pool, QUICK_SQL, "0") : pool.session { nil }
    worst = 0
    capture_io do
      slow = Array.new(SLOW) { |number| machine.spin { yield number } }
      quick = Array.new(QUICK) do |number|
        machine.spin do
          began = machine.now
          assert_equal number.to_s, pool.query_value(QUICK_SQL, number.to_s, "0")
          worst = [worst, machine.now - began].max
        end
      end
      machine.await(quick)
      assert slow.all?(&:alive?)
      machine.await(slow)
    end
    worst
  end

  # As PgBouncer does.
  class Pooler < ScriptedServer
    private

    def talk(stream)
      return super unless @settings[stream].key?("lock_timeout")

      body = "SFATAL\0C08P01\0Munsupported startup parameter: lock_timeout\0\0"
      stream.write("E", [body.bytesize + 4].pack("N"), body)
    end
  end

  # As PgBouncer does with `ignore_startup_parameters`.
  class DroppingPooler < ScriptedServer
    private

    def talk(stream)
      @settings[stream].delete("lock_timeout")
      super
    end
  end
  private_constant :Pooler, :DroppingPooler

  def on_pooler(server_class = Pooler, **, &)
    @server_class = server_class
    on_pool(**, &)
  end

  def server_class = @server_class || super
end
