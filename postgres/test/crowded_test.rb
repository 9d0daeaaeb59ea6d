# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"

# More strands ask than a server can serve within `checkout_timeout`. Time is virtual.
class PostgresCrowdedTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres

  CROWD = 300

  def test_writes_that_have_met_a_lock_wait_for_a_connection_as_long_as_others_get_one
    on_pool do |pool, machine|
      assert_equal CROWD, crowd(machine) { |number| pool.query_value("await $1, $2", number, "1") }
      assert_operator machine.now, :>, 25 # as long as ten connections take for them
    end
  end

  def test_statements_that_are_sent_one_at_a_time_wait_as_long_as_others_get_a_connection
    on_pool(pipelining: false) do |pool, machine|
      assert_equal CROWD, crowd(machine) { |number| pool.query_value("work $1, $2", number, "1") }
    end
  end

  def test_batches_that_are_sent_one_at_a_time_do_so_too
    on_pool(pipelining: false, max: 2) do |pool, machine|
      each = ->(number) { pool.batch { |batch| batch.query("work $1, $2", number, "1") }.first.value }
      assert_equal 20, crowd(machine, 20, &each)
    end
  end

  def test_slow_statements_wait_and_are_counted_once_as_held_up
    on_pool do |pool, machine|
      capture_io { assert_equal CROWD, crowd(machine) { |number| pool.query_value("work $1, $2", number, "0.3") } }
      assert_operator pool.metrics[:held_up], :<=, CROWD
    end
  end

  # Its place is taken by nobody, for all connections are busy with others that get their turn.
  def test_slow_statements_beside_a_shared_connection_that_does_not_move
    on_pool(lanes: 1, max: 2) do |pool, machine|
      40.times { pool.query("select work $1, $2", "x", "0") } # known as quick
      capture_io do
        stuck = Array.new(2) { machine.spin { pool.query("select work $1, $2", "x", "200") } }
        machine.sleep(0.1)
        assert_equal 60, crowd(machine, 60) { |number| pool.query_value("work $1, $2", number, "0.5") }
        assert stuck.any?(&:alive?)
        machine.await(stuck)
      end
    end
  end

  # One asks whether it is alive, and nothing is sent behind that.
  def test_a_connection_that_was_quiet_and_does_not_answer
    on_pool(lanes: 1) do |pool, machine, server|
      40.times { pool.query("select echo $1", "x") } # known as quick
      server.backends.each { |backend| backend.define_singleton_method(:take) { |*| fall_silent } }
      machine.sleep(3)
      errors = Array.new(3) do
        machine.spin { assert_raises(Ringspun::TimeoutError) { pool.query("select echo $1", "x", timeout: 1) } }.tap { machine.sleep(0.01) }
      end
      assert_equal [false] * 3, machine.await(errors).map(&:in_doubt?)
    end
  end

  # So nobody waits for ever for somebody who waits for him.
  def test_one_for_whom_nobody_gives_a_connection_back_is_told_so
    on_pool(pipelining: false, max: 2) do |pool, machine|
      slow = machine.spin { pool.query("work $1, $2", "a", "8") }
      pool.session do
        machine.yield
        began = machine.now
        error = assert_raises(Postgres::PoolTimeoutError) { pool.query("select echo $1", "a") }
        assert_in_delta 5, machine.now - began, 1
        refute_match(/meanwhile/, error.message)
      end
      slow.await
    end
  end

  def test_the_timeout_of_a_statement_counts_all_the_same
    on_pool(pipelining: false, max: 1) do |pool, machine|
      began = machine.now
      waiting = Array.new(20) { |number| machine.spin { pool.query_value("work $1, $2", number.to_s, "1") } }
      machine.yield
      assert_raises(Postgres::PoolTimeoutError) { pool.query("select echo $1", "a", timeout: 7.5) }
      assert_in_delta 7.5, machine.now - began, 0.1
      machine.await(waiting)
    end
  end

  # Who asks for a connection of his own has said for how long.
  def test_transactions_wait_for_checkout_timeout_and_are_told_what_to_set
    on_pool do |pool, machine|
      errors = []
      crowd(machine) do |number|
        pool.transaction { |transaction| transaction.query_value("work $1, $2", number, "0.3") }
      rescue Postgres::PoolTimeoutError => error
        errors << error.message
        nil
      end
      assert_includes 120..150, errors.size
      assert_match(/^\d+ others got one meanwhile, and \d+ wait: raise max: or checkout_timeout:, or ask less at once\.$/,
                   errors.last)
    end
  end

  private

  # @return [Integer] how many got their own answer
  def crowd(machine, size = CROWD)
    machine.await(Array.new(size) { |number| machine.spin { yield(number.to_s) == number.to_s } }).count(true)
  end
end
