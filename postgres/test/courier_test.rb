# frozen_string_literal: true

require "postgres_helper"

# The thread of a pool that asks for plain threads: what its callers get when it is busy, and when it ends under them.
class PostgresCourierTest < Minitest::Test
  include OnPool
  include AnyBackend

  TIMED = {
    query: ->(client) { client.query("select 1", timeout: 0.05) },
    batch: ->(client) { client.batch(timeout: 0.05) { |batch| batch.query("select 1") } },
    stream: ->(client) { client.stream("select 1", timeout: 0.05) { |_| nil } },
    transaction: ->(client) { client.transaction(timeout: 0.05) { |t| t.query("select 1") } }
  }.freeze

  # It passes from the call on, and not from when the courier comes to it.
  TIMED.each do |name, call|
    define_method("test_the_timeout_of_a_#{name}_while_the_courier_is_busy") do
      with_pool do |pool|
        assert_late(pool) { quiet_thread { call.call(pool) } }
      end
    end
  end

  TIMED.slice(:batch, :stream).each do |name, call|
    define_method("test_the_timeout_of_a_#{name}_of_a_session_while_the_courier_is_busy") do
      in_a_session(call) { |pool, thread| assert_late(pool, &thread) }
    end
  end

  # Its thread asks by itself.
  { query: ->(client) { client.query_value("select 1") },
    transaction: ->(client) { client.transaction { |t| t.query_value("select 1") } } }.each do |name, call|
    define_method("test_a_#{name}_of_a_session_while_the_courier_is_busy") do
      answers = Thread::Queue.new
      in_a_session(->(client) { answers << call.call(client) }) do |pool, thread|
        while_busy(pool) { thread.call && assert_equal(1, answers.pop) }
        thread.call.join
      end
    end
  end

  # Between the two looks the machine's clock may pass the end.
  def test_a_time_that_is_over_while_the_courier_looks_at_the_clock
    Ringspun::Simulation.run(faults: false) do |machine|
      machine.sleep(1e9)
      assert_equal 0, Postgres.const_get(:Courier).left(Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60)
    end
  end

  Mine = Class.new(RuntimeError)
  FILES = %w[courier.rb courier/question.rb].map { |name| File.expand_path("../lib/ringspun/postgres/#{name}", __dir__) }
  CALLS = {
    query: ->(pool) { pool.query_value("select 1") },
    second_query: ->(pool) { Array.new(2) { pool.query_value("select 1") }.last },
    session: ->(pool) { pool.session { |session| session.query_value("select 1") } }
  }.freeze

  # No caller waits for ever, and no place in the pool is lost.
  CALLS.each do |name, call|
    define_method("test_a_courier_that_is_killed_at_each_step_of_a_#{name}") do
      at_each_step(call) do |caller|
        assert_equal 1, caller.value
      rescue Postgres::ConnectionLost
        pass
      end
    end

    # Who is interrupted gets that, or has had its answer before.
    define_method("test_a_courier_that_is_killed_while_who_waits_for_a_#{name}_is_interrupted") do
      at_each_step(call, ->(caller) { caller.raise(Mine) }) do |caller|
        assert_equal 1, caller.value
      rescue Mine
        pass
      end
    end

    define_method("test_a_courier_that_is_killed_with_who_waits_for_a_#{name}") do
      at_each_step(call, :kill.to_proc) { |caller| assert_includes [nil, 1], caller.value }
    end
  end

  # So that its own error is what it raises.
  def test_who_leaves_after_the_courier_hears_no_more_of_it
    with_pool do |pool|
      quiet_thread do
        pool.session do |session|
          courier_of(pool).instance_variable_get(:@thread).kill.join
          lane = session.instance_variable_get(:@lane)
          assert_equal [nil, nil, true], [lane.orphaned, lane.close, lane.lost?]
        end
      end.join
    end
  end

  # In the midst of an answer, which must not be what ends the courier.
  def test_a_courier_that_is_killed_as_it_makes_an_answer
    with_pool do |pool|
      thread, made_by = courier_of(pool).instance_variable_get(:@thread), nil
      trace = TracePoint.new(:call) do |at|
        next unless at.method_id == :error_of

        made_by = caller
        thread.kill
      end
      2.times { quiet_thread { assert_raises(Postgres::Error) { pool.query("select 1 / 0") } }.join } # from now on it is known
      know_as_quick(pool, "select 1 / 0")
      courier_of(pool).lanes.define_singleton_method(:for_thread) { nil } # or the thread makes its answer itself
      trace.enable(target_thread: thread)
      asking = quiet_thread { pool.query("select 1 / 0") }
      assert_predicate assert_raises(Postgres::ConnectionLost) { asking.value }, :in_doubt?
      assert_includes made_by.join, "attend"
    ensure
      trace.disable
    end
  end

  private

  def courier_of(pool) = pool.__send__(:courier)

  # @yieldparam thread [Proc] lets the call begin, and returns its thread
  def in_a_session(call)
    with_pool do |pool|
      ready, go_on = Array.new(2) { Thread::Queue.new }
      thread = quiet_thread { pool.session { |session| (ready << true) && go_on.pop && call.call(session) } }
      ready.pop
      yield pool, -> { (go_on << true) && thread }
    end
  end

  def while_busy(pool)
    held, go_on = Array.new(2) { Thread::Queue.new }
    holder = quiet_thread { courier_of(pool).call { Fiber.blocking { (held << true) && go_on.pop } } }
    held.pop
    yield
  ensure
    go_on << true
    holder.join
  end

  # @yieldreturn [Thread] that has called, or is about to
  def assert_late(pool)
    caller = nil
    while_busy(pool) do
      caller = yield
      wait_until { courier_of(pool).instance_variable_get(:@errands).size == 1 }
      due = Postgres.now + 0.05
      wait_until { Postgres.now > due }
    end
    error = assert_raises(Ringspun::TimeoutError) { caller.value }
    assert_equal "the time was over before the server was asked", error.message
  end

  # Kills the courier at each of its steps, one after the other.
  #
  # @yieldparam caller [Thread]
  def at_each_step(call, interrupt = nil, &)
    (1..).find { |step| with_pool(max: 1) { |pool| !killed_at?(step, pool, call, interrupt, &) } }
  end

  # @return [Boolean] false: there are not so many
  def killed_at?(step, pool, call, interrupt)
    thread = courier_of(pool).instance_variable_get(:@thread)
    gate = Thread::Queue.new
    caller = quiet_thread { gate.pop && call.call(pool) }
    reached = false
    trace = killing_at(step) { (reached = true) && interrupt&.call(caller) }
    trace.enable(target_thread: thread)
    gate << true
    yield caller
    trace.disable
    return false unless reached

    thread.join
    assert_silent { assert_equal 1, quiet_thread { CALLS[:session].call(pool) }.value }
    assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
  end

  def killing_at(step)
    TracePoint.new(:call, :b_call, :return, :b_return, :line) do |at|
      next unless FILES.include?(at.path) && (step -= 1).zero?

      yield
      Thread.current.kill
    end
  end
end
