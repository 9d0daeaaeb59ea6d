# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"

# What a shared connection takes, and what it does not. Time is virtual.
class PostgresLanesTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres

  ASKING = {
    query: ->(pool, nonce, **options) { pool.execute("insert $1", nonce, **options) },
    batch: ->(pool, nonce, **options) { pool.batch(**options) { |batch| batch.execute("insert $1", nonce) } }
  }.freeze
  private_constant :ASKING

  ASKING.each do |name, ask|
    define_method("test_a_#{name}_does_not_go_behind_what_was_not_answered") do
      on_pool(lanes: 1, max: 1, checkout_timeout: 60) do |pool, machine, server|
        slow = machine.spin { pool.query_value("work $1, $2", "slow", "10") }
        pool.session do
          machine.sleep(2)
          late = machine.spin { ask.call(pool, "late", timeout: 3) }
          asking = machine.spin { ask.call(pool, "patient") && machine.now }
          assert_match(/it was not sent/, assert_raises(Ringspun::TimeoutError) { late.await }.message)
          assert_empty server.committed
          slow.await
          assert_in_delta machine.now, asking.await, 0.1
          assert_equal ["patient"], server.committed
        end
      end
    end

    define_method("test_a_#{name}_takes_a_connection_that_is_given_back_meanwhile") do
      on_stuck_pool(lanes: 1, max: 1) do |pool, machine, server|
        asking = pool.session do
          machine.spin { ask.call(pool, "a") }.tap { machine.sleep(1.5) }
        end
        machine.timeout(1.1) { asking.await }
        assert_equal ["a"], server.committed
      end
    end

    define_method("test_a_#{name}_goes_to_another_lane_that_moves_or_opens_one") do
      on_stuck_pool(lanes: 2, max: 1) do |pool, machine, server|
        pool.session do
          3.times { |number| machine.timeout(0.5) { ask.call(pool, number) } }
          assert_equal [%w[0 1 2], 3], [server.committed, server.backends.size]
          assert_equal({ connections: 1, idle: 0, waiting: 0 }, pool.metrics.first(3).to_h)
        end
      end
    end
  end

  # On a connection for one user it would take effect, and be refused for what it has left.
  def test_a_batch_with_a_statement_for_one_session_is_refused_before_any_of_it_is_sent_anywhere
    on_stuck_pool(lanes: 1, max: 1) do |pool, _, server|
      assert_raises(Postgres::UnsafeSessionState) do
        pool.batch do |batch|
          batch.execute("insert $1", "a")
          batch.execute("set work_mem to 1")
        end
      end
      assert_empty server.committed
    end
  end

  # Those that were sent behind it hold up its cancellation; these do not.
  def test_those_that_wait_for_a_lane_that_moves_do_not_keep_the_server_at_what_nobody_wants
    on_pool(lanes: 1, max: 1, checkout_timeout: 60) do |pool, machine|
      slow = machine.spin { pool.query("work $1, $2", "slow", "1000", timeout: 10) }
      pool.session do
        machine.sleep(2)
        asking = Array.new(5) { |number| machine.spin { pool.query_value("echo $1", number.to_s) } }
        assert_raises(Ringspun::TimeoutError) { slow.await }
        assert_equal %w[0 1 2 3 4], machine.timeout(1) { machine.await(asking) }
      end
    end
  end

  # They take turns at the only connection there is.
  def test_those_that_wait_for_a_lane_that_moves_use_what_another_of_them_gives_back
    on_stuck_pool(lanes: 1, max: 1) do |pool, machine|
      asking = Array.new(20) { |number| machine.spin { pool.query_value("echo $1", number.to_s) } }
      assert_equal (0...20).map(&:to_s), machine.timeout(0.5) { machine.await(asking) }
    end
  end

  def test_a_slow_batch_goes_to_a_connection_for_one_user
    on_pool(lanes: 1) do |pool, machine|
      slow = -> { pool.batch { |batch| batch.query("work $1, $2", "slow", "0.5") } }
      3.times { slow.call }
      strand = machine.spin { slow.call }
      machine.yield
      assert_equal "a", machine.timeout(0.1) { pool.query_value("echo $1", "a") }
      strand.await
    end
  end

  # The limit is one for all that a call waits for.
  def test_the_time_of_a_call_counts_once_also_where_it_waits_for_a_lane
    on_stuck_pool(lanes: 1, max: 1) do |pool, machine|
      pool.session do
        began = machine.now
        assert_raises(Ringspun::TimeoutError) { pool.query("work $1, $2", "late", "10", timeout: 8) }
        assert_in_delta 8, machine.now - began, 0.1
      end
    end
  end

  def test_those_that_wait_for_a_lane_that_moves_are_told_that_the_pool_is_closed
    on_stuck_pool(lanes: 1, max: 1) do |pool, machine|
      asking = pool.session do
        machine.spin { pool.query("echo $1", "a") }.tap do
          machine.yield
          pool.close
        end
      end
      assert_raises(Ringspun::ClosedError) { machine.timeout(1) { asking.await } }
    end
  end

  LEAVING = {
    query: ->(pool, command) { pool.query("#{command} $1", "x") },
    batch: ->(pool, command) { pool.batch { |batch| batch.query("echo $1", "x").query("#{command} $1", "x") } }
  }.freeze
  private_constant :LEAVING

  LEAVING.to_a.product(%w[open alter]).each do |(name, leave), command|
    define_method("test_a_#{name}_that_leaves_what_others_would_meet_is_told_so_when_it_is_to_#{command}") do
      on_pool(lanes: 1) do |pool, machine, server|
        pool.query("echo $1", "a")
        offender = machine.spin { leave.call(pool, command) }
        behind = machine.spin { pool.execute("insert $1", "behind") }
        error = assert_raises(Postgres::UnsafeSessionState) { offender.await }
        assert_match(/left a transaction open, or changed the session.*use transaction .* or session/, error.message)
        behind.await # it was not sent before
        machine.sleep(0.1)
        refute_includes server.backends.map(&:process), 1 # with whose end the server rolls back what was begun
        pool.execute("insert $1", "next")
        assert_equal %w[behind next], server.committed
      end
    end

    define_method("test_a_#{name}_on_a_connection_for_one_user_is_told_so_as_well_when_it_is_to_#{command}") do
      on_pool(pipelining: false) do |pool, machine, server|
        assert_raises(Postgres::UnsafeSessionState) { leave.call(pool, command) }
        machine.sleep(0.1)
        assert_equal [["I"], { connections: 1, idle: 1, waiting: 0 }], [server.backends.map(&:status), pool.metrics.first(3).to_h]
        pool.execute("insert $1", "next")
        assert_equal ["next"], server.committed
      end
    end
  end

  # So it ends when it is one that nobody waits for any more.
  def test_what_others_would_meet_ends_with_the_connection_also_when_nobody_is_told
    on_pool(lanes: 1) do |pool, machine, server|
      pool.query("echo $1", "a")
      server.deaf = true # so that what is cancelled goes on
      gone = machine.spin { pool.batch { |batch| batch.query("work $1, $2", "x", "0.5").query("open $1", "x") } }
      machine.sleep(0.1)
      behind = machine.spin { pool.query_value("echo $1", "a") }
      gone.terminate
      assert_raises(Ringspun::TerminatedError) { gone.await }
      assert_equal "a", behind.await
      machine.sleep(1)
      refute_includes server.backends.map(&:process), 1
    end
  end

  # More requests end than are looked at at once.
  def test_a_batch_of_many_statements_that_fails_ends_nothing_else
    on_pool(lanes: 1) do |pool, machine, server|
      pool.query("echo $1", "a")
      failing = machine.spin do
        pool.batch { |batch| 1000.times { |number| batch.query(number.zero? ? "fail $1, $2" : "echo $1", "x", "23505") } }
      end
      behind = machine.spin { pool.query_value("echo $1", "behind") }
      assert_raises(Postgres::UniqueViolation) { failing.await }
      assert_equal ["behind", 1], [behind.await, server.backends.map(&:process).min]
    end
  end

  # As behind a pooler that loses what comes together with another statement.
  def test_a_server_that_answers_nothing_more_is_suspected_once_and_waited_for
    on_pool(lanes: 1) do |pool, machine|
      said = /\Aringspun: \S+ has answered nothing .* try pipelining: false\n(ringspun: "mute \$1" took .*\n)?\z/
      assert_output("", said) do
        40.times { pool.query("echo $1", "a") }
        together = [machine.spin { pool.query("echo $1", "a") }, machine.spin { pool.query("mute $1", "x", timeout: 30) }]
        behind = machine.spin { pool.query("echo $1", "b", timeout: 30) }
        machine.await([together.first, behind])
        assert_raises(Ringspun::TimeoutError) { together.last.await }
      end
    end
  end

  def test_a_server_that_works_long_is_not_suspected_where_it_has_answered_what_came_together_or_nothing_did
    on_pool(lanes: 1) do |pool, machine|
      assert_silent do
        assert_equal "a", pool.query_value("work $1, $2", "a", "20")
        2.times do
          work = %w[0 0 9].map { |seconds| machine.spin { pool.query_value("work $1, $2", "a", seconds) } }
          assert_equal %w[a a a], machine.await(work)
        end
      end
    end
  end

  private

  # The first statement of its lane has not been answered for a second, and is after five.
  def on_stuck_pool(**)
    on_pool(**) do |pool, machine, server|
      slow = machine.spin { pool.query("work $1, $2", "slow", "5") }
      machine.sleep(1.5)
      yield pool, machine, server
      pool.closed? ? assert_raises(Postgres::ConnectionLost) { slow.await } : slow.await
    end
  end
end
