# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/contended_locks"
require "support/on_scripted_pool"
require "support/notifying_server"

# A strand that is terminated while it uses a pool whose locks a thread has just then. What it has to take back is taken back all
# the same, wherever that is: each program is run once for each two sections under a lock, the one at which its strand is
# terminated, and the one at which the lock is held.
class PostgresContendedLocksTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres
  MAX = 3

  def server_class = NotifyingServer

  # How many sections after the one at which a strand is terminated the lock is held at most.
  FAR = 8

  # @yieldparam pool [Pool]
  # @yieldparam machine [Machine]
  def each_two_sections(before: nil, only: false, &)
    count = (1..).find do |terminate_at|
      contended = (terminate_at..terminate_at + FAR).take_while { |contend_at| at(terminate_at, contend_at, before, only, &) }
      contended.empty?
    end
    assert_operator count, :>, 2, "no section was met"
  end

  # @return [Boolean] whether the section `contend_at` was met
  def at(terminate_at, contend_at, before, only)
    reached = false
    on_pool(max: MAX, checkout_timeout: 0.5) do |pool, machine, server|
      after = before&.call(pool, machine, server)
      locks = nil
      outcome = outcome_of(machine.spin do
        locks = ContendedLocks.new(pool, terminate_at, contend_at, (machine.running if only))
        yield pool, machine
      end)
      locks.let_go
      machine.sleep(10)
      where = "terminated at section #{terminate_at}, the lock held at #{contend_at}"
      assert_kind_of Ringspun::TerminatedError, outcome, where if outcome.is_a?(Exception) && !outcome.is_a?(Ringspun::Error)
      assert_empty locks.faults, where
      assert_whole(pool, machine, server, where)
      after&.call
      reached = locks.reached?
    end
    reached
  end

  # Nobody has one, nobody opens one, and all can be had at once.
  def assert_whole(pool, machine, server, where)
    metrics = pool.metrics.first(3).to_h
    assert_equal({ connections: metrics[:idle], idle: metrics[:idle], waiting: 0 }, metrics, where)
    assert_equal metrics[:idle], server.backends.size - server.listening.size, where
    assert_equal 0, pool.opener.instance_variable_get(:@opening), where
    assert_equal %w[0 1 2], all_at_once(pool, machine), where unless pool.closed?
  end

  def all_at_once(pool, machine)
    all_inside = Ringspun::Condition.new
    inside = 0
    machine.await(Array.new(MAX) do |number|
      machine.spin do
        pool.session do |session|
          (inside += 1) == MAX ? all_inside.broadcast : all_inside.wait(timeout: 5)
          session.query_value("select echo $1", number.to_s)
        end
      end
    end)
  end

  def test_a_session
    each_two_sections { |pool| pool.session { |session| session.query_value("select echo $1", "a") } }
  end

  def test_a_session_on_a_connection_that_is_open
    each_two_sections(before: ->(pool, *) { pool.session { nil } }) { |pool| pool.session { |s| s.query("select echo $1", "a") } }
  end

  def test_one_that_waits_for_a_connection
    all = lambda do |pool, machine, _|
      Array.new(MAX) { machine.spin { pool.session { machine.sleep(0.2) } } }
      machine.sleep(0.1)
      nil
    end
    each_two_sections(before: all) { |pool| pool.session { |session| session.query("select echo $1", "a") } }
  end

  # An Enumerator's strand has ended, and others look for what it has.
  def test_one_that_takes_back_what_nobody_will_give_back
    left = lambda do |pool, machine, _|
      kept = Array.new(MAX) { pool.stream("rows $1, $2", "a", 20, as: :array) }
      machine.spin { kept.each(&:next) }.await
      machine.sleep(1)
      -> { kept.clear }
    end
    capture_io { each_two_sections(before: left) { |pool| pool.session { |session| session.query("select echo $1", "a") } } }
  end

  def test_a_statement_that_goes_on_a_connection_of_its_own
    each_two_sections { |pool| pool.connections.try_use(1) { |lane| lane.status } }
  end

  def test_a_statement_that_goes_on_one_that_is_open
    open = ->(pool, *) { pool.session { nil } }
    each_two_sections(before: open) { |pool| pool.connections.try_idle(1) { |lane| lane.status } }
  end

  def test_a_statement_that_finds_none_free
    all = lambda do |pool, machine, _|
      MAX.times { machine.spin { pool.session { machine.sleep(2) } } }
      machine.sleep(1)
      nil
    end
    each_two_sections(before: all) { |pool| pool.connections.try_use(1) { |lane| lane.status } }
  end

  # One that nobody uses makes room for a shared one that does not move.
  def test_a_shared_connection_that_is_lent
    shared = Object.new
    each_two_sections(before: ->(pool, machine, _) { all_at_once(pool, machine) && nil }) do |pool|
      pool.connections.lend(shared)
    ensure
      pool.connections.end_loan(shared)
    end
  end

  # A subscription of the policy :wait that is left behind would hold up all others.
  def test_a_subscription
    listen = lambda do |pool, _, server|
      other = pool.listen("c")
      -> { assert_heard(server, other) }
    end
    each_two_sections(before: listen, only: true) { |pool, machine| pool.listen("c", queue: 1, policy: :wait) { machine.yield } }
  end

  def assert_heard(server, other)
    10.times { |number| server.notify("c", number.to_s) }
    assert_equal (0..9).map(&:to_s), Array.new(10) { other.pop(timeout: 1).payload }
    other.close
  end

  def test_the_end_of_the_pool
    each_two_sections(before: ->(pool, machine, _) { all_at_once(pool, machine) && nil }) { |pool| pool.close }
  end

  def test_the_error_of_a_block_that_is_cancelled_comes_out
    on_pool(max: 1) do |pool, machine|
      error = assert_raises(KeyError) do
        machine.scope do |scope|
          pool.session do
            scope.cancel
            @locks = ContendedLocks.new(pool, nil, 1)
            raise KeyError, "the block's"
          end
        end
      end
      assert_equal "the block's", error.message
      @locks.let_go
      assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  # As all of the above would.
  def test_a_section_that_switches_strands_is_seen
    on_pool do |pool, machine|
      locks = ContendedLocks.new(pool, nil, 0)
      machine.spin { nil }
      pool.connections.instance_variable_get(:@lock).synchronize { machine.yield }
      assert_match(/\Afiber_switch/, locks.faults.first)
    end
  end

  def test_a_section_that_closes_a_connection_is_seen
    on_pool do |pool|
      lane = pool.session { |session| session.instance_variable_get(:@lane) }
      locks = ContendedLocks.new(pool, nil, 0)
      pool.connections.instance_variable_get(:@lock).synchronize { lane.close }
      assert_match(/\Acall close/, locks.faults.first)
      seen = locks.faults.size
      lane.close
      assert_equal seen, locks.faults.size
    end
  end
end
