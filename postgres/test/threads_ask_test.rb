# frozen_string_literal: true

require "postgres_helper"
require "timeout"

# Plain threads that ask a shared connection by themselves, and read for each other.
# servers: all
class PostgresThreadsAskTest < Minitest::Test
  include OnPool
  include NoNames

  Mine = Class.new(RuntimeError)

  # Stays where it was sent. What waits for a lock is asked again elsewhere, and is in no doubt between.
  SLEEP = "select pg_sleep(60)"

  def test_a_lone_thread_needs_no_courier
    with_open_pool do |pool|
      errands = count(pool.__send__(:courier), :send_out)
      asked = quiet_thread { Array.new(50) { |number| ask(pool, number) } }
      assert_equal [*0...50], asked.value
      assert_operator errands.size, :<, 50 # as where the machine is so busy that the connection was quiet for long
    end
  end

  def test_several_threads_need_no_courier
    with_open_pool do |pool|
      40.times { pool.config.sharing.histories.note("select $1::int", 0) }
      errands = count(pool.__send__(:courier), :send_out)
      threads = Array.new(4) { |thread| quiet_thread { Array.new(50) { |number| ask(pool, (thread * 50) + number) } } }
      assert_equal [*0...200], threads.flat_map(&:value)
      assert_operator errands.size, :<, 200
    end
  end

  # Only plain threads: a scheduler's fibers wait as the scheduler has them.
  def test_a_fiber_of_another_scheduler_asks_the_courier
    require "async"
    with_open_pool do |pool|
      errands = count(pool.__send__(:courier), :send_out)
      assert_equal 7, quiet_thread { Sync { ask(pool, 7) } }.value
      assert_equal 1, errands.size
    end
  end

  def test_two_threads_on_one_connection = two_threads([]) { |_| nil }

  # The reader and who waits behind it, of which one leaves: the other has its answer.
  { raise: [->(thread) { thread.raise(Mine) }, Mine], kill: [:kill.to_proc, nil] }.each do |way, (leave, error)|
    { first: [0], second: [1], both: [0, 1], both_the_last_first: [1, 0] }.each do |who, places|
      define_method("test_#{way}_of_the_#{who}_of_two_threads") do
        two_threads(places) do |thread|
          leave.call(thread)
          error ? assert_raises(error) { thread.value } : assert_nil(thread.value)
        end
      end
    end
  end

  def test_a_limit_of_the_first_of_two_threads
    on_lane do |lane|
      second = nil
      while_held do
        first = asking(lane, LOCK, seconds: 0.05)
        second = asking(lane, "select 2")
        assert_predicate assert_raises(Ringspun::TimeoutError) { first.value }, :in_doubt?
        assert_equal [2, true], [lane.pending, second.alive?]
      end
      assert_equal 2, second.value.value
      assert_idle(lane)
    end
  end

  def test_a_limit_that_is_over_at_once
    on_lane do |lane|
      assert_equal :busy, quiet_thread { lane.ask("select 1", [], 0, false) }.value
      assert_equal 0, lane.pending
    end
  end

  def test_a_strand_behind_a_thread
    on_lane do |lane, bell, machine|
      thread = strand = nil
      while_held do
        thread = asking(lane, LOCK)
        strand = machine.spin { lane.query("select 2", [], nil, false, true) }
        wait_until { lane.pending == 2 }
      end
      assert_equal 1, thread.value.size
      bell.wait.each(&:rouse)
      assert_equal 2, strand.await.value
      assert_idle(lane)
    end
  end

  def test_a_strand_behind_a_thread_that_is_killed
    on_lane do |lane, bell, machine|
      strand = nil
      while_held do
        thread = asking(lane, LOCK)
        strand = machine.spin { lane.query("select 2", [], nil, false, true) }
        wait_until { lane.pending == 2 }
        thread.kill.join
        bell.wait.each(&:rouse)
      end
      assert_equal 2, strand.await.value
      assert_idle(lane)
    end
  end

  def test_a_thread_behind_a_strand_that_is_cancelled
    on_lane do |lane, _, machine|
      thread = nil
      while_held do
        strand = machine.spin { lane.query(LOCK, [], nil, false, true) }
        wait_until { lane.pending == 1 }
        thread = asking(lane, "select 2")
        strand.terminate
        machine.yield
      end
      assert_equal 2, thread.value.value
      assert_idle(lane)
    end
  end

  # What has come of a message stays for whoever reads next.
  def test_a_thread_behind_a_strand_that_had_read_a_part
    on_lane do |lane, _, machine|
      strand = threads = nil
      while_held do
        strand = machine.spin { lane.query("#{LOCK}, repeat('x', 3000000)", [], nil, false, true) }
        wait_until { lane.pending == 1 }
        threads = Array.new(3) { |number| quiet_thread { lane.ask("select #{number}, repeat('y', 300000)", [], nil, false) } }
        wait_until { lane.pending == 4 }
      end
      assert_equal 3_000_000, strand.await.rows.first[1].size
      assert_equal [0, 1, 2], threads.map { |thread| thread.value.value }
      assert_idle(lane)
    end
  end

  def test_a_statement_and_an_answer_that_do_not_fit_into_the_socket
    with_open_pool do |pool|
      text = "äöü " * 1_000_000
      assert_equal text.size, quiet_thread { pool.query_value("select length($1::text)", text) }.value
      2.times { assert_equal text, quiet_thread { pool.query_value("select $1::text", text) }.value }
      assert_equal 3, quiet_thread { ask(pool, 3) }.value
    end
  end

  def test_many_rows
    with_open_pool do |pool|
      rows = quiet_thread { pool.query("select n, repeat('x', n % 50) from generate_series(1, 20000) n").rows }.value
      assert_equal [20_000, [20_000, ""]], [rows.size, rows.last.to_a]
    end
  end

  def test_the_pool_is_closed_while_a_thread_reads
    with_open_pool do |pool|
      threads = Array.new(2) { quiet_thread { pool.query(SLEEP) } }
      wait_until { look { |other| running(other) }.count(SLEEP) == 2 }
      pool.close
      threads.each { |thread| assert_predicate assert_raises(Postgres::ConnectionLost) { thread.value }, :in_doubt? }
      look { |other| end_others(other) }
    end
  end

  def test_the_courier_is_killed_while_a_thread_reads
    with_open_pool do |pool|
      thread = quiet_thread { pool.query(SLEEP) }
      wait_until { look { |other| running(other) }.include?(SLEEP) }
      pool.__send__(:courier).instance_variable_get(:@thread).kill.join
      assert_predicate assert_raises(Postgres::ConnectionLost) { thread.value }, :in_doubt?
      look { |other| end_others(other) }
      assert_equal 5, quiet_thread { ask(pool, 5) }.value
    end
  end

  def test_a_fork_while_a_thread_reads
    with_open_pool do |pool|
      thread = nil
      while_held do
        thread = quiet_thread { pool.query(LOCK).size }
        wait_until { look { |other| running(other) }.include?(LOCK) }
        child = fork { exit!(quiet_thread { ask(pool, 7) }.value == 7 && pool.query_value("select 8") == 8) }
        assert_predicate Process.wait2(child).last, :success?
      end
      assert_equal 1, thread.value
      assert_equal 9, quiet_thread { ask(pool, 9) }.value
    end
  end

  CHANGES = "create or replace function changes_threads_style() returns text language sql as " \
            "$$ select set_config('DateStyle', 'German', false) $$"

  def test_what_is_left_in_the_session_is_refused
    with_open_pool do |pool|
      quiet_thread do
        pool.session { |session| session.execute(CHANGES) }
        assert_raises(Postgres::UnsafeSessionState) { pool.query("select changes_threads_style()") }
        assert_equal 5, ask(pool, 5)
      end.value
    end
  end

  private

  def ask(pool, number, **) = pool.query_value("select $1::int", number, **)

  # The first statement of a pool waits for a connection.
  def with_open_pool
    with_pool(lanes: 1) do |pool|
      quiet_thread { pool.query("select 1") }.join
      yield pool
    end
  end

  # @return [Array] to which each call is added
  def count(object, name)
    calls = []
    object.define_singleton_method(name) { |*all, **options, &block| (calls << all) && super(*all, **options, &block) }
    calls
  end

  # Of one user, so that no statement goes elsewhere, however long others take.
  def on_lane
    on_pool do |pool, machine|
      lane = Postgres.const_get(:Lane).open(pool.config, pool.canceller, shared: false)
      lane.bell = bell = Postgres.const_get(:Bell).new
      yield lane, bell, machine
    ensure
      lane&.close
    end
  end

  # @return [Thread] whose statement is sent
  def asking(lane, sql, seconds: nil)
    before = lane.pending
    quiet_thread { lane.ask(sql, [], seconds, false) }.tap { wait_until { lane.pending > before } }
  end

  # @param places [Array<Integer>] of those for which the block is called, while both wait
  def two_threads(places, &)
    on_lane do |lane|
      threads = []
      while_held do
        threads << asking(lane, LOCK) << asking(lane, "select 2")
        threads.values_at(*places).each(&)
      end
      (threads - threads.values_at(*places)).each { |thread| assert_equal 1, thread.value.size }
      assert_idle(lane)
    end
  end

  # In another thread, or the strands of this one's machine would stand still.
  def while_held
    held, go_on = Array.new(2) { Thread::Queue.new }
    holder = quiet_thread { holding(LOCK) { (held << true) && go_on.pop } }
    held.pop
    yield
  ensure
    go_on << true
    holder.join
  end

  # Nothing is left in it for whoever comes next.
  def assert_idle(lane)
    assert lane.ping(60)
    assert_equal 0, lane.pending
    answers = quiet_thread { Array.new(3) { |number| lane.ask("select #{number}", [], nil, false).value } }
    assert_equal [0, 1, 2], answers.value
  end
end
