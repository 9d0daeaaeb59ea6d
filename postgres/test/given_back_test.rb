# frozen_string_literal: true

require "postgres_helper"

# What comes for a thread while one of its connections is given back, or while the pool is closed: no connection is lost, what is
# not done closes it, and what has come is not swallowed.
# servers: all
class PostgresGivenBackTest < Minitest::Test
  include OnPool
  include NoNames

  Mine = Class.new(RuntimeError)
  LANE, CONNECTIONS = %i[Lane Connections].map { |name| Postgres.const_get(name) }
  LIBRARY = File.expand_path("../lib", __dir__)

  WAYS = { killed: :kill.to_proc, interrupted: ->(thread) { thread.raise(Mine) },
           out_of_memory: ->(_) { raise NoMemoryError } }.freeze

  # In a run there is no mask: it would be that of other strands too.
  WAYS.each do |name, come|
    define_method("test_a_thread_with_a_run_that_is_#{name}_while_it_gives_one_back") do
      with_pool(max: 1) do |pool|
        thread = quiet_thread do
          Ringspun.run { at_call(LANE, :leave_notices, come) { pool.transaction { |t| t.query("select 1") } } }
        end
        end_of(thread)
        assert_equal 0, pool.metrics[:connections] - pool.metrics[:idle]
        assert_equal 2, quiet_thread { Ringspun.run { pool.session { |session| session.query_value("select 2") } } }.value
      end
    end
  end

  # Of a statement that nothing is known of, on a connection that is open. Outside of a run.
  def test_the_main_program_that_something_is_raised_in_at_each_step_of_a_statement
    with_pool(max: 1, lanes: 1) do |pool|
      pool.session { |session| session.query("select 1") }
      pool.query("select 1")
      (1..).each do |step|
        reached = raised = false
        begin
          at_step(step, -> { reached = true }) { ask_aside(pool, :try_idle, "select 1") }
        rescue Mine
          raised = true
        end
        break unless reached

        assert raised, "it was swallowed at step #{step}"
        assert_equal 0, pool.metrics[:connections] - pool.metrics[:idle], "step #{step}"
        pool.session { |session| session.query("select 1") }
      end
    end
  end

  # A connection that must be made clean: what comes meanwhile comes out.
  def test_what_is_raised_in_the_main_program_while_a_connection_is_made_clean
    with_pool(max: 1) do |pool|
      assert_raises(Mine) do
        at_call(CONNECTIONS, :settle, ->(thread) { thread.raise(Mine) }) do
          ask_aside(pool, :try_use, "begin")
        end
      end
      assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
      assert_equal "I", pool.session { |s| s.instance_variable_get(:@lane).status }
    end
  end

  # The others are closed all the same, and that one by the next who closes the pool.
  def test_a_connection_that_cannot_be_closed
    on_pool(max: 3) do |pool, machine|
      all_inside = Ringspun::Condition.new
      count = 0
      machine.await(Array.new(3) do
        machine.spin { pool.session { (count += 1) == 3 ? all_inside.broadcast : all_inside.wait } }
      end)
      assert_raises(NoMemoryError) { at_call(LANE, :close, ->(_) { raise NoMemoryError }) { pool.close } }
      await(machine) { others <= 1 }
      pool.close
      await(machine) { others.zero? }
    end
  end

  # As at Ctrl-C, where a plain thread has used the pool too: its connections are closed as well.
  def test_a_pool_that_is_closed_by_a_strand_that_is_cancelled
    pool = pool()
    Ringspun.run do |machine|
      used = Ringspun::Channel.new(1)
      strand = machine.spin { use_and_close(pool, used, machine) }
      used.pop
      strand.terminate
      assert_raises(Ringspun::TerminatedError) { strand.join }
      await(machine) { others.zero? }
    end
  ensure
    pool.close
  end

  private

  def ask_aside(pool, way, sql) = pool.connections.__send__(way, nil) { |lane| lane.query(sql, [], nil, false, true) }

  def use_and_close(pool, used, machine)
    pool.query("select 1")
    Thread.new { pool.query("select 1") }.join
    used.push(true)
    machine.sleep
  ensure
    pool.close
  end

  # At the next call of that method.
  def at_call(owner, name, come)
    trace = TracePoint.new(:call) do |at|
      next unless at.method_id == name && at.defined_class == owner

      trace.disable
      meet(come)
    end
    trace.enable(target_thread: Thread.current) { yield }
  end

  def at_step(step, reached)
    trace = TracePoint.new(:return, :b_return) do |at|
      next unless at.path.start_with?(LIBRARY) && (step -= 1).zero?

      reached.call
      Thread.current.raise(Mine)
    end
    trace.enable(target_thread: Thread.current) { yield }
  end

  # From another thread, as far as it can: its own error is at once.
  def meet(come)
    me = Thread.current
    failure = nil
    other = Thread.new do
      come.call(me)
    rescue NoMemoryError => failure
      nil
    end
    Thread.pass while other.alive?
    raise failure if failure
  end

  def end_of(thread)
    thread.value
  rescue Mine, NoMemoryError
    nil
  end

  def others
    look do |other|
      other.query_value("select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
    end
  end
end
