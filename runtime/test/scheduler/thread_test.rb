# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Threads beside a scheduler, and the end of one that has one.
class SchedulerThreadTest < Minitest::Test
  include Scheduled

  # --- waiting for a thread ---

  def test_value
    assert_everywhere(%i[other done]) do
      order = []
      release = Thread::Queue.new
      thread = Thread.new { release.pop.then { :done } }
      waiting = schedule { order << thread.value }
      order << :other
      release << true
      join(waiting)
      order
    end
  end

  def test_join_answers_the_thread
    assert_everywhere(true) { Thread.new {}.then { |thread| thread.join.equal?(thread) && thread.join(1).equal?(thread) } }
  end

  def test_join_with_a_timeout
    assert_both([nil, true]) do
      thread = Thread.new { sleep }
      [thread.join(0.001), thread.alive?]
    ensure
      thread.kill.join
    end
  end

  def test_join_with_a_timeout_that_is_not_needed
    assert_both(true) do
      release = Thread::Queue.new
      thread = Thread.new { release.pop }
      Fiber.schedule { sleep(0.001).then { release << true } }
      thread.join(1000).equal?(thread)
    end
  end

  def test_join_without_waiting
    assert_both([nil, nil, nil]) do
      thread = Thread.new { sleep }
      [thread.join(0), thread.join(-1), thread.join(-0.5)]
    ensure
      thread.kill.join
    end
  end

  def test_join_with_a_timeout_that_never_comes
    assert_both([true, true]) do
      [Float::INFINITY, 1 << 40].map do |seconds|
        release = Thread::Queue.new
        thread = Thread.new { release.pop }
        Fiber.schedule { sleep(0.001).then { release << true } }
        thread.join(seconds).equal?(thread)
      end
    end
  end

  def test_join_with_what_is_no_time
    assert_both(TypeError) do
      thread = Thread.new { sleep }
      error_of { thread.join("x") }.class
    ensure
      thread.kill.join
    end
  end

  def test_the_threads_error_is_raised_where_it_is_joined
    assert_everywhere([Failure, "of the thread"]) do
      thread = Thread.new do
        Thread.current.report_on_exception = false
        raise Failure, "of the thread"
      end
      error_of { thread.join }.then { |error| [error.class, error.message] }
    end
  end

  def test_many_wait_for_one
    assert_everywhere([:done] * 10) do
      release = Thread::Queue.new
      thread = Thread.new { release.pop.then { :done } }
      got = []
      waiting = Array.new(10) { schedule { got << thread.value } }
      release << true
      join(*waiting)
      got
    end
  end

  def test_one_waits_for_many
    assert_everywhere((0..19).to_a) { Array.new(20) { |i| Thread.new { Thread.pass.then { i } } }.map(&:value) }
  end

  def test_inside_a_blocking_fiber_the_thread_waits
    assert_both(:done) { Fiber.new(blocking: true) { Thread.new { sleep(0).then { :done } }.value }.resume }
  end

  def test_a_killed_thread
    assert_both([nil, false]) do
      thread = Thread.new { sleep }
      Fiber.schedule { thread.kill }
      [thread.value, thread.alive?]
    end
  end

  def test_a_thread_that_wakes_a_strand_of_the_one_that_joins_it
    assert_everywhere(%i[item joined]) do
      queue = Thread::Queue.new
      order = []
      taking = schedule { order << queue.pop }
      Thread.new { queue << :item }.join
      join(taking)
      order << :joined
    end
  end

  # --- its own end ---

  def test_the_end_of_the_thread_waits_for_its_strands
    finished = false
    thread = start_with { Fiber.schedule { sleep(0.01).then { finished = true } }.then { :done } }
    assert_equal [:done, true], [thread.value, finished]
  end

  def test_two_schedulers_side_by_side
    queues = Array.new(2) { Thread::Queue.new }
    rounds = GCStress::WANTED ? 10 : 500
    threads = queues.zip(queues.rotate).map do |mine, other|
      start_with { [].tap { |got| Fiber.schedule { rounds.times { |n| (other << n).then { got << mine.pop } } } } }
    end
    assert_equal [Array.new(rounds) { |n| n }] * 2, threads.map(&:value)
  end

  def test_kill_of_a_thread_whose_strands_wait
    unwound = []
    ready = Thread::Queue.new
    thread = start_with do
      3.times do |i|
        Fiber.schedule do
          ready << i
          sleep
        ensure
          unwound << i
        end
      end
    end
    3.times { ready.pop }
    until_stopped(thread)
    thread.kill.join
    assert_equal [0, 1, 2], unwound.sort
  end

  def test_raise_in_a_thread_whose_strands_wait
    unwound = []
    ready = Thread::Queue.new
    thread = start_with do
      Fiber.schedule do
        ready << true
        sleep
      ensure
        unwound << :strand
      end
    end
    ready.pop
    until_stopped(thread)
    thread.raise(Failure)
    assert_raises(Failure) { thread.join }
    assert_equal [:strand], unwound
  end

  # --- schedulers of the program's own ---

  class RaisingUnblock < Ringspun::Scheduler
    def unblock(blocker, fiber)
      super
      raise Strands::Failure, "in unblock"
    end
  end

  class SleepingUnblock < Ringspun::Scheduler
    def unblock(blocker, fiber)
      super
      sleep(0.001)
    end
  end

  class RaisingSleep < Ringspun::Scheduler
    def kernel_sleep(_duration = nil) = raise(Strands::Failure, "in kernel_sleep")
  end

  # Blocks the thread first, so that a signal for a condition comes before the wait for it.
  class LateSleep < Ringspun::Scheduler
    def kernel_sleep(...)
      Fiber.blocking { sleep(0.0001) }
      super
    end
  end

  class Recording < Ringspun::Scheduler
    attr_reader :calls

    %i[block unblock kernel_sleep fiber].each do |hook|
      define_method(hook) do |*arguments, &block|
        (@calls ||= []) << hook
        super(*arguments, &block)
      end
    end
  end

  # It is raised where the hook was called: in the thread that ended.
  def test_an_unblock_that_raises
    ended = false
    error = error_of do
      with_scheduler(RaisingUnblock.new) do
        Fiber.schedule do
          Thread.new { Thread.current.report_on_exception = false }.join
        ensure
          ended = true
        end
      end
    end
    assert ended
    assert_kind_of Failure, error
  end

  def test_an_unblock_that_raises_in_a_strand
    outcome = []
    with_scheduler(RaisingUnblock.new) do
      queue = Thread::Queue.new
      Fiber.schedule { outcome << queue.pop }
      Fiber.schedule { outcome << error_of { queue << :item }.class }
    end
    assert_equal [Failure, :item], outcome
  end

  def test_an_unblock_that_sleeps
    assert_equal(:value, in_fiber(SleepingUnblock.new) { Thread.new { sleep(0.001).then { :value } }.value })
  end

  def test_an_unblock_that_sleeps_in_a_strand
    got = []
    with_scheduler(SleepingUnblock.new) do
      queue = Thread::Queue.new
      Fiber.schedule { 3.times { got << queue.pop } }
      Fiber.schedule { 3.times { |i| queue << i } }
    end
    assert_equal [0, 1, 2], got
  end

  def test_a_sleep_that_raises
    error = assert_raises(Failure) { in_fiber(RaisingSleep.new) { sleep(0) } }
    assert_equal "in kernel_sleep", error.message
    assert_equal(Failure, in_fiber(RaisingSleep.new) { error_of { sleep }.class })
  end

  def test_a_sleep_that_raises_while_a_condition_is_waited_for
    mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
    error, owned = in_fiber(RaisingSleep.new) { mutex.synchronize { [error_of { condition.wait(mutex) }, mutex.owned?] } }
    assert_kind_of Failure, error
    assert owned
    refute_predicate mutex, :locked?
  end

  def test_a_signal_between_the_unlock_and_the_sleep
    mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
    rounds = GCStress::WANTED ? 2 : 50
    waiting = Thread::Queue.new
    # Once for each wait: one that is lost is missed for ever.
    signaller = Thread.new { mutex.synchronize { condition.signal } while waiting.pop }
    woken = 0
    with_scheduler(LateSleep.new) do
      Fiber.schedule do
        rounds.times do
          mutex.synchronize do
            waiting << true
            condition.wait(mutex)
            woken += 1
          end
        end
      end
    end
    waiting << nil
    signaller.join
    assert_equal rounds, woken
  end

  def test_a_signal_of_another_strand_between_the_unlock_and_the_sleep
    scheduler = Class.new(Ringspun::Scheduler) do
      attr_accessor :before_sleep

      def kernel_sleep(...) = before_sleep&.call.then { super }
    end.new
    mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
    assert_equal(:woken, in_fiber(scheduler) do
      scheduler.before_sleep = -> { (scheduler.before_sleep = nil).then { condition.signal } }
      mutex.synchronize { condition.wait(mutex) }
      :woken
    end)
  end

  def test_what_is_called
    scheduler = Recording.new
    in_fiber(scheduler) do
      queue = Thread::Queue.new
      Fiber.schedule { queue.pop }
      queue << 1
      sleep(0)
      Thread.new {}.join
    end
    assert_equal %i[fiber fiber block unblock kernel_sleep block unblock], scheduler.calls
  end
end
