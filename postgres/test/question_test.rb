# frozen_string_literal: true

require "postgres_helper"

# What is asked of shared connections for plain threads that do not ask by themselves, as over TLS, and which the lane answers
# without a strand for each.
# servers: all
class PostgresQuestionTest < Minitest::Test
  include OnPool
  include NoNames

  SLEEP = "select pg_sleep(60)"

  def test_statements_of_threads_lie_with_a_lane
    with_open_lane do |pool|
      lanes = pool.__send__(:courier).lanes
      strands = 0
      lanes.define_singleton_method(:query) { |*arguments| (strands += 1) && super(*arguments) }
      threads = Array.new(4) { |thread| quiet_thread { Array.new(50) { |number| ask(pool, (thread * 50) + number) } } }
      assert_equal [*0...200], threads.flat_map(&:value)
      assert_operator strands, :<, 200 # as where the machine is so busy that one is slow
    end
  end

  def test_an_error_is_raised_where_the_thread_has_called
    with_open_lane do |pool|
      error = assert_raises(Postgres::SyntaxError) { quiet_thread { pool.query("nonsense") }.value }
      assert_includes error.backtrace.first(8).join, "client.rb"
      assert_raises(Ringspun::UsageError) { quiet_thread { pool.query("select $1", Object.new) }.value }
      assert_raises(Postgres::UnsafeSessionState) { quiet_thread { pool.query("begin") }.value }
      assert_equal 1, quiet_thread { ask(pool, 1) }.value
    end
  end

  def test_whatever_a_parameter_raises_is_of_its_caller_and_of_nobody_else
    parameter = Class.new { def to_json(*) = raise(NotImplementedError) }.new
    with_open_lane do |pool|
      courier = pool.__send__(:courier)
      assert_raises(NotImplementedError) { quiet_thread { pool.query("select $1::json", { a: parameter }) }.value }
      assert_equal 1, quiet_thread { ask(pool, 1) }.value
      assert_same courier, pool.__send__(:courier)
    end
  end

  # As an answer is made of what the server has said: the kill is no answer.
  def test_a_courier_that_is_killed_while_it_makes_an_answer
    with_open_lane do |pool|
      trace = TracePoint.new(:call) { |at| Thread.current.kill if at.method_id == :error_of }
      caller = trace.enable(target_thread: pool.__send__(:courier).instance_variable_get(:@thread)) do
        quiet_thread { pool.query("select 1 / 0") }.tap { |thread| wait_until { !thread.alive? } }
      end
      assert_raises(Postgres::ConnectionLost) { caller.value }
    end
  end

  # Its caller was killed between the answer and here.
  def test_one_that_nobody_waits_for_is_not_asked_anew
    on_lane do |_, machine|
      question = Postgres.const_get(:Courier).const_get(:Question).new(nil, SLEEP, [], nil, false, true)
      question.give_up
      assert_nil question.answer(machine, :again)
    end
  end

  def test_one_whose_time_is_over_is_cancelled_on_the_server
    with_open_lane do |pool|
      error = assert_raises(Ringspun::TimeoutError) { quiet_thread { pool.query(SLEEP, timeout: 0.05) }.value }
      assert_match(/the server has not answered before the deadline/, error.message)
      assert_equal 1, quiet_thread { ask(pool, 1) }.value
      wait_until { look { |other| running(other) }.empty? }
    end
  end

  def test_one_that_is_late_leaves_the_answers_to_others
    with_open_lane do |pool|
      others = nil
      holding(LOCK) do
        late = quiet_thread { pool.query(LOCK, timeout: 0.02) }
        others = Array.new(3) { |number| quiet_thread { ask(pool, number, timeout: 60) } }
        assert_raises(Ringspun::TimeoutError) { late.value }
      end
      assert_equal [0, 1, 2], others.map(&:value)
    end
  end

  def test_a_connection_that_ends
    with_open_lane do |pool|
      sleeping = quiet_thread { pool.query(SLEEP) }
      wait_until { look { |other| running(other) } == [SLEEP] }
      again = quiet_thread { pool.query_value("select 7", idempotent: true) }
      look { |other| end_others(other) }
      assert_predicate assert_raises(Postgres::ConnectionLost) { sleeping.value }, :in_doubt?
      assert_equal [7, 8], [again.value, quiet_thread { ask(pool, 8) }.value]
    end
  end

  def test_a_statement_whose_columns_have_changed
    with_open_lane do |pool|
      quiet_thread do
        with_table(pool, 1) do |table|
          3.times { pool.query("select * from #{table}") }
          pool.execute("alter table #{table} add column more int default 5")
          asking = Array.new(5) { quiet_thread { pool.query("select * from #{table}").rows } }
          assert_equal [[[1, "1", 5]]] * 5, asking.map(&:value)
        end
      end.join
    end
  end

  # Before anything has left.
  def test_a_lane_that_ends_with_what_it_was_asked
    on_lane do |lane|
      assert_nil lane.post("select 1", [], false, :asker)
      lane.close
      assert_equal [[:asker, :lost]], answers(lane)
      assert_equal :lost, lane.post("select 1", [], false, :asker)
    end
  end

  def test_what_is_withdrawn_is_answered_by_nobody
    on_lane do |lane|
      assert_nil lane.post("select 1", [], false, :unsent)
      assert_kind_of Ringspun::TimeoutError, lane.withdraw(:unsent)
      assert_empty answers(lane)
      assert_nil lane.post("select 2", [], false, :sent)
      Ringspun::Machine.current.yield
      assert_nil lane.post("select 3", [], false, :answered)
      assert_kind_of Ringspun::TimeoutError, lane.withdraw(:sent)
      assert_equal([:answered], answers(lane).map(&:first))
      assert_nil lane.withdraw(:answered)
    end
  end

  # Where another strand reads, and where nobody does.
  def test_a_strand_that_reads_takes_the_answers_for_others
    on_lane do |lane, machine|
      reading = machine.spin { lane.query("select 1", [], nil, false, true) }
      machine.yield
      3.times { |number| assert_nil lane.post("select $1::int", [number], false, number) }
      assert_equal [0, 1, 2], answers(lane).map { |_, result| result.value }.map(&:to_i)
      reading.await
    end
  end

  private

  def ask(pool, number, **) = pool.query_value("select $1::int", number, **)

  # The first statement of a pool waits for a connection, in a strand.
  def with_open_lane
    with_pool(lanes: 1) do |pool|
      quiet_thread { pool.query("select 1") }.join
      pool.__send__(:courier).lanes.define_singleton_method(:for_thread) { nil }
      yield pool
    end
  end

  # Of one user, so that it refuses nothing, however long the server takes.
  def on_lane
    on_pool do |pool, machine|
      lane = Postgres.const_get(:Lane).open(pool.config, pool.canceller, shared: false)
      yield lane, machine
    ensure
      lane&.close
    end
  end

  # @return [Array] of all that was posted
  def answers(lane)
    answers = []
    nil while lane.attend { |*answer| answers << answer }
    answers
  end
end
