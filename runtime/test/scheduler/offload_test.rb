# frozen_string_literal: true

require "test_helper"
require "timeout"
require "support/scheduled"

# Ringspun.offload, and the hook of newer Rubies that uses it.
class SchedulerOffloadTest < Minitest::Test
  include Scheduled

  def test_the_value
    assert_everywhere(:value) { Ringspun.offload { :value } }
    here = nil
    assert_both(true) { (here = Thread.current).then { Ringspun.offload { Thread.current != here } } }
  end

  def test_the_error
    assert_everywhere([Failure, "there"]) do
      error_of { Ringspun.offload { raise Failure, "there" } }.then { |error| [error.class, error.message] }
    end
    assert_both(SystemExit) { error_of { Ringspun.offload { exit } }.class }
  end

  def test_where_it_is_simply_called
    assert_equal(Thread.current, Ringspun.offload { Thread.current })
    simulate { assert_equal Thread.current, Ringspun.offload { Thread.current } }
    assert_equal(true, with_scheduler { Ringspun.offload { Thread.current }.equal?(Thread.current) })
  end

  def test_without_a_block
    assert_raises(Ringspun::UsageError) { Ringspun.offload }
    assert_both(Ringspun::UsageError) { error_of { Ringspun.offload }.class }
  end

  # The block waits for what only another strand does.
  def test_others_run_meanwhile
    assert_both(:from_a_strand) do
      queue = Thread::Queue.new
      Fiber.schedule { queue << :from_a_strand }
      Ringspun.offload { queue.pop }
    end
  end

  def test_several_at_once
    assert_both([0, 1, 2]) do
      queues = Array.new(4) { Thread::Queue.new }
      got = []
      all = Array.new(3) { |i| schedule { got << Ringspun.offload { (queues[i + 1] << queues[i].pop).then { i } } } }
      queues.first << :passed_on
      join(*all)
      got.sort
    end
  end

  def test_no_more_than_the_limit_at_once
    with_limit(2) do
      assert_both([2, 10]) do
        lock = Thread::Mutex.new
        running = most = done = 0
        all = Array.new(10) do
          schedule do
            Ringspun.offload do
              lock.synchronize { most = [most, running += 1].max }
              5.times { Thread.pass }
              sleep(0.001)
              lock.synchronize { running -= 1 }
            end
            done += 1
          end
        end
        join(*all)
        [most, done]
      end
    end
  end

  # A pool has grown by the limit that it had; a new process's, or ractor's, starts anew.
  def with_limit(limit, &block)
    assert_predicate(in_child do
      Ringspun.offload_limit = limit
      instance_exec(&block)
    end, :success?)
  end

  def test_the_limit
    assert_operator Ringspun.offload_limit, :>, 0
    [0, -1, 1.5, nil, "2"].each do |bad|
      error = assert_raises(Ringspun::UsageError) { Ringspun.offload_limit = bad }
      assert_match(/positive Integer/, error.message)
    end
    with_limit(3) { assert_equal 3, Ringspun.offload_limit }
  end

  def test_many
    assert_both(Array.new(200) { |i| i * 2 }) do
      got = []
      join(*Array.new(200) { |i| schedule { got << Ringspun.offload { i * 2 } } })
      got.sort
    end
  end

  def test_inside_another
    assert_both(%i[inner outer]) { Ringspun.offload { [Ringspun.offload { :inner }, :outer] } }
  end

  # It runs to its end; the cancellation meets the next wait.
  def test_a_cancellation_while_it_runs
    assert_both([:value, Ringspun::Cancelled]) do
      started, release = Array.new(2) { Thread::Queue.new }
      outcome = []
      strand = machine.spin do
        outcome << Ringspun.offload { (started << true).then { release.pop } }
        sleep
      rescue Ringspun::Cancelled => e
        outcome << e.class
        raise
      end
      started.pop
      machine.terminate(strand)
      sleep(0.001)
      release << :value
      error_of { strand.join }
      outcome
    end
  end

  def test_a_timeout_while_it_runs
    assert_both([:value, Timeout::Error]) do
      release = Thread::Queue.new
      outcome = []
      Fiber.schedule { sleep(0.003).then { release << :value } }
      error = error_of do
        Timeout.timeout(0.001) do
          outcome << Ringspun.offload { release.pop }
          sleep
        end
      end
      outcome << error.class
    end
  end

  def test_after_a_fork
    Ringspun.run { Ringspun.offload {} }
    status = in_child { assert_equal(:in_the_child, Ringspun.run { Ringspun.offload { :in_the_child } }) }
    assert_predicate status, :success?
    assert_equal(:in_the_parent, Ringspun.run { Ringspun.offload { :in_the_parent } })
  end

  def test_a_fork_while_it_runs
    Ringspun.run do
      release = Thread::Queue.new
      waiting = schedule { Ringspun.offload { release.pop } }
      status = in_child { assert_equal(:in_the_child, Ringspun.offload { :in_the_child }) }
      assert_predicate status, :success?
      release << true
      join(waiting)
    end
  end

  def test_in_a_ractor
    answer = child(<<~RUBY)
      Warning[:experimental] = false
      puts Ractor.new { Ringspun.run { Ringspun.offload { "in a ractor" } } }.take
    RUBY
    assert_equal ["in a ractor\n", ""], [answer.out, answer.err]
  end

  # --- the hook ---

  def test_blocking_operation_wait
    assert_both([nil, true]) do
      ran_on = nil
      here = Thread.current
      [Fiber.scheduler.blocking_operation_wait(-> { ran_on = Thread.current }), ran_on != here]
    end
  end
end
