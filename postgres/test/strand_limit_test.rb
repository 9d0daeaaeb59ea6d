# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"
require "support/notifying_server"

# A machine that has no place for one more strand beside its run, when a pool needs one. The caller hears of that where it is the
# caller's affair, and everything goes on when there is place again. Each program is run once for each such strand.
class PostgresStrandLimitTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres
  FULL = "no place for one more strand"

  def server_class = NotifyingServer

  # Takes the place from one strand beside the run.
  class Limit
    def initialize(machine, at)
      @machine = machine
      @at = at
      @asked = 0
      limit = self
      machine.define_singleton_method(:spin_beside) { |**options, &block| limit.take && super(**options, &block) }
    end

    def take = (@asked += 1) == @at ? raise(Ringspun::LimitError, FULL) : true

    def reached? = @asked >= @at

    def end = @machine.singleton_class.remove_method(:spin_beside)
  end
  private_constant :Limit

  # @yieldreturn [Object]
  # @return [Array<Object>] what came out, each time
  def at_each_strand(before: nil, **options)
    (1..).each_with_object([]) do |at, outcomes|
      reached = false
      on_pool(lanes: 1, max: 2, checkout_timeout: 0.5, **options) do |pool, machine, server|
        before&.call(pool, machine)
        limit = Limit.new(machine, at)
        outcomes << outcome_of(machine.spin { yield pool, machine })
        reached = limit.reached?
        limit.end
        machine.sleep(20)
        assert_goes_on(pool, machine, server, at)
      end
      return outcomes unless reached
    end
  end

  def assert_goes_on(pool, machine, server, at)
    assert_equal "next", machine.timeout(5) { pool.query_value("select echo $1", "next") }, at
    machine.await(Array.new(2) { machine.spin { pool.session { |session| session.query("select echo $1", "a") } } })
    metrics = pool.metrics.first(3).to_h
    assert_equal({ connections: metrics[:idle], idle: metrics[:idle], waiting: 0 }, metrics, at)
    machine.timeout(5) { pool.listen("c", &:itself) }
    pool.close
    machine.sleep(1)
    assert_empty server.backends, at
  end

  def test_the_first_statement
    outcomes = at_each_strand { |pool| pool.query_value("select echo $1", "a") }
    assert_kind_of Ringspun::LimitError, outcomes.first
    assert_equal "a", outcomes.last
  end

  # The error of the timeout stands, and not that there was no place for the strand that cancels the statement.
  def test_a_statement_whose_time_is_over
    open = ->(pool, _) { pool.query("select echo $1", "a") }
    outcomes = at_each_strand(before: open) { |pool| pool.query("select work $1, $2", "a", "3", timeout: 0.1) }
    assert_operator outcomes.size, :>, 1
    outcomes.each { |outcome| assert_kind_of Postgres::StatementTimeoutError, outcome }
  end

  def test_a_statement_of_a_session_whose_time_is_over
    outcomes = at_each_strand do |pool|
      pool.session { |session| session.query("select work $1, $2", "a", "3", timeout: 0.1) }
    end
    assert_operator outcomes.size, :>, 1
    outcomes.each { |outcome| assert_kind_of Postgres::StatementTimeoutError, outcome }
  end

  # Those that nobody needs yet.
  def test_the_least_number_of_connections
    outcomes = at_each_strand(min: 2) { |pool| pool.session { |session| session.query_value("select echo $1", "a") } }
    assert_operator outcomes.size, :>, 1
    assert_equal ["a"], outcomes.uniq
  end

  # The strand that lets it answer what it was asked.
  def test_a_shared_connection_that_has_lived_long_enough
    old = lambda do |pool, machine|
      pool.query("select echo $1", "a")
      machine.sleep(100)
    end
    outcomes = at_each_strand(before: old, max_lifetime: 60) { |pool| pool.query_value("select echo $1", "a") }
    assert_operator outcomes.size, :>, 2
    assert_equal "a", outcomes.last
  end

  # The strand that looks whether a statement is to go elsewhere.
  def test_a_statement_behind_one_that_takes_long
    known = lambda do |pool, machine|
      60.times { pool.query("select echo $1", "a") }
      machine.spin { pool.query("select work $1, $2", "b", "0") }.await
    end
    outcomes = nil
    capture_io { outcomes = at_each_strand(before: known) { |pool, machine| ask_slow_and_quick(pool, machine) } }
    assert_operator outcomes.size, :>, 1
    assert_equal [%w[slow quick]], outcomes.uniq
  end

  def ask_slow_and_quick(pool, machine)
    slow = machine.spin { pool.query_value("select work $1, $2", "slow", "2") }
    machine.yield
    machine.await([slow, machine.spin { pool.query_value("select echo $1", "quick") }])
  end

  def test_the_strand_that_listens
    outcomes = at_each_strand { |pool| pool.listen("c") { :heard } }
    assert_kind_of Ringspun::LimitError, outcomes.first
    assert_equal :heard, outcomes.last
  end
end
