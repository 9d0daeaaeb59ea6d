# frozen_string_literal: true

require "test_helper"
require "monitor"
require "support/scheduled"

# Thread::Mutex, Thread::ConditionVariable and Monitor, between strands and between threads.
class SchedulerLockTest < Minitest::Test
  include Scheduled

  # --- Thread::Mutex ---

  def test_synchronize
    assert_everywhere([false, :value]) { Thread::Mutex.new.synchronize { [Fiber.current.blocking?, :value] } }
  end

  def test_whoever_waits_has_the_lock_in_turn
    assert_everywhere([0, 0, 1, 1, 2, 2, 3, 3]) do
      mutex = Thread::Mutex.new
      order = []
      4.times do |i|
        Fiber.schedule do
          mutex.synchronize { (order << i).then { sleep(0.001) }.then { order << i } }
        end
      end
      mutex.synchronize { order }
    end
  end

  def test_never_two_at_once
    assert_everywhere([200, 0]) do
      mutex = Thread::Mutex.new
      inside = together = done = 0
      fibers = Array.new(20) do
        schedule do
          10.times do
            mutex.synchronize do
              together += 1 if (inside += 1) > 1
              sleep(0)
              inside -= 1
            end
            done += 1
          end
        end
      end
      join(*fibers)
      [done, together]
    end
  end

  def test_what_a_thread_holds
    mutex = Thread::Mutex.new
    mutex.lock
    waiting = Thread::Queue.new
    thread = start_with do
      order = []
      Fiber.schedule { (waiting << true).then { mutex.synchronize { order << :locked } } }
      Fiber.schedule { order << :other }
      order
    end
    waiting.pop
    until_stopped(thread)
    mutex.unlock
    assert_equal %i[other locked], thread.value
    refute_predicate mutex, :locked?
  end

  def test_what_a_strand_holds
    mutex = Thread::Mutex.new
    holding, release = Array.new(2) { Thread::Queue.new }
    thread = start_with { Fiber.schedule { mutex.synchronize { (holding << true).then { release.pop } } } }
    holding.pop
    waiter = until_stopped(Thread.new { mutex.synchronize { :locked } })
    release << true
    assert_equal :locked, waiter.value
    thread.value
  end

  def test_between_two_threads_with_schedulers
    mutex = Thread::Mutex.new
    inside = together = 0
    threads = Array.new(2) do
      start_with do
        5.times do
          Fiber.schedule do
            20.times do
              mutex.synchronize do
                together += 1 if (inside += 1) > 1
                sleep(0)
                inside -= 1
              end
            end
          end
        end
      end
    end
    threads.each(&:value)
    assert_equal [0, 0], [inside, together]
  end

  def test_wrong_use
    assert_everywhere([ThreadError] * 3) do
      mutex = Thread::Mutex.new
      errors = [error_of { mutex.unlock }, error_of { mutex.synchronize { mutex.lock } }]
      Fiber.schedule { mutex.synchronize { sleep(0) } }
      [*errors, error_of { mutex.unlock }].map(&:class)
    end
  end

  def test_the_root_of_the_thread_cannot_wait_for_its_own_strand
    answer = child(<<~RUBY)
      Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(Ringspun::Scheduler.new)
        mutex = Thread::Mutex.new
        Fiber.schedule { mutex.synchronize { puts("locked").then { sleep(0.001) } } }
        mutex.lock
      end.join
    RUBY
    assert_equal ["locked\n", false], [answer.out, answer.status.success?]
    assert_match(/lock already owned by another fiber/, answer.err)
  end

  # --- one that gives up at the moment when it is its turn ---

  # The holder, the one that gives up, the last waiter; the block says how the middle one gives up.
  def last_waiter_gets_the_lock(order)
    mutex = Thread::Mutex.new
    mutex.lock
    outcome = []
    middle = machine.spin do
      mutex.synchronize { outcome << :locked }
    rescue Failure, Ringspun::Cancelled => e
      outcome << e.class
    end
    machine.yield
    last = schedule { mutex.synchronize { outcome << :last } }
    order.each { |step| step == :unlock ? mutex.unlock : yield(middle) }
    join(last)
    error_of { middle.join }
    outcome << mutex.locked?
  end

  # Before the unlock: it is out of the list by the time its hook is left, if the unlock comes later than that. If not, the unlock
  # wins: it has the lock and gives it on.
  def test_a_waiter_that_is_cancelled
    cancel = ->(strand) { machine.terminate(strand) }
    assert_everywhere([:locked, :last, false]) { last_waiter_gets_the_lock(%i[unlock give_up], &cancel) }
    assert_everywhere([:locked, :last, false]) { last_waiter_gets_the_lock(%i[give_up unlock], &cancel) }
  end

  def test_a_waiter_in_which_something_is_raised
    raising = ->(strand) { machine.schedule(strand, Failure.new) }
    assert_everywhere([:locked, :last, false]) { last_waiter_gets_the_lock(%i[unlock give_up], &raising) }
    assert_everywhere([:locked, :last, false]) { last_waiter_gets_the_lock(%i[give_up unlock], &raising) }
  end

  def test_a_waiter_that_has_given_up_before
    assert_everywhere([Ringspun::Cancelled, :last, false]) do
      last_waiter_gets_the_lock(%i[give_up unlock]) { |strand| machine.terminate(strand) && error_of { strand.join } }
    end
  end

  # The unlock comes from another thread, at whatever moment: the last waiter always gets the lock.
  def test_waiters_that_give_up_while_another_thread_unlocks
    mutex = Thread::Mutex.new
    rounds = GCStress::WANTED ? 3 : 200
    go, gone = Array.new(2) { Thread::Queue.new }
    unlocker = Thread.new do
      while go.pop
        mutex.lock
        gone << true
        Thread.pass while mutex.instance_variable_get(:@hold)
        mutex.unlock
      end
    end
    locked = 0
    with_scheduler do
      Fiber.schedule do
        rounds.times do
          mutex.instance_variable_set(:@hold, true)
          go << true
          gone.pop
          impatient = machine.spin { error_of { mutex.synchronize { sleep(0) } } }
          last = machine.spin { mutex.synchronize { locked += 1 } }
          until_parked(impatient, last)
          mutex.instance_variable_set(:@hold, false)
          machine.terminate(impatient)
          machine.join(last)
          error_of { impatient.join }
        end
        go << nil
      end
    end
    unlocker.join
    assert_equal rounds, locked
  end

  # --- Thread::ConditionVariable ---

  def test_signal
    assert_everywhere([0, 1, 2]) do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      order = []
      fibers = Array.new(3) { |i| schedule { mutex.synchronize { condition.wait(mutex).then { order << i } } } }
      3.times { mutex.synchronize { condition.signal }.then { sleep(0.001) } }
      join(*fibers)
      order
    end
  end

  def test_one_waiter_many_times
    assert_everywhere(3) do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      signalled = 0
      waiter = schedule { mutex.synchronize { 3.times { condition.wait(mutex).then { signalled += 1 } } } }
      3.times { mutex.synchronize { condition.signal }.then { sleep(0.001) } }
      join(waiter)
      signalled
    end
  end

  def test_broadcast
    assert_everywhere([5, true]) do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      woken = 0
      fibers = Array.new(5) { schedule { mutex.synchronize { condition.wait(mutex) && woken += 1 } } }
      condition.broadcast
      join(*fibers)
      [woken, !mutex.locked?]
    end
  end

  def test_wait_with_a_timeout
    assert_everywhere([true, true]) do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      mutex.synchronize { [condition.wait(mutex, 0.001).then { true }, mutex.owned?] }
    end
  end

  def test_a_wait_that_is_signalled_does_not_last_until_its_timeout
    elapsed = simulate do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      Fiber.schedule { sleep(1).then { condition.signal } }
      mutex.synchronize { condition.wait(mutex, 100) }
    end.elapsed
    assert_in_delta 1, elapsed, 0.01
  end

  # Between the unlock and the sleep somebody else may signal: that is not lost.
  def test_signals_from_another_thread
    mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
    turns = GCStress::WANTED ? 20 : 2_000
    turn = :strand
    thread = Thread.new do
      turns.times do
        mutex.synchronize do
          condition.wait(mutex) until turn == :thread
          turn = :strand
          condition.signal
        end
      end
    end
    with_scheduler do
      Fiber.schedule do
        turns.times do
          mutex.synchronize do
            condition.wait(mutex) until turn == :strand
            turn = :thread
            condition.signal
          end
        end
      end
    end
    thread.join
    assert_equal :strand, turn
  end

  def test_a_waiter_that_is_cancelled_holds_the_lock_while_it_unwinds
    assert_everywhere([true, false]) do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      owned = nil
      waiter = machine.spin do
        mutex.synchronize do
          condition.wait(mutex)
        ensure
          owned = mutex.owned?
        end
      end
      machine.yield
      machine.terminate(waiter)
      error_of { waiter.join }
      [owned, mutex.locked?]
    end
  end

  def test_fiber_raise_in_a_waiter
    error = nil
    with_scheduler do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      fiber = Fiber.schedule { error = error_of { mutex.synchronize { condition.wait(mutex) } } }
      fiber.raise(Failure)
    end
    assert_kind_of Failure, error
  end

  # --- Monitor ---

  def test_monitor_is_reentrant_and_excludes
    assert_everywhere([0, 0, 1, 1, 2, 2]) do
      monitor = Monitor.new
      order = []
      fibers = Array.new(3) do |i|
        schedule do
          monitor.synchronize { monitor.synchronize { (order << i).then { sleep(0.001) }.then { order << i } } }
        end
      end
      join(*fibers)
      order
    end
  end

  def test_monitor_condition
    assert_everywhere(%i[waits signals woken]) do
      monitor = Monitor.new
      condition = monitor.new_cond
      order = []
      waiter = schedule do
        monitor.synchronize do
          monitor.synchronize { (order << :waits).then { condition.wait } }
          order << :woken
        end
      end
      monitor.synchronize { (order << :signals).then { condition.signal } }
      join(waiter)
      order
    end
  end

  def test_monitor_between_a_strand_and_a_thread
    monitor = Monitor.new
    condition = monitor.new_cond
    item = nil
    waiting = Thread::Queue.new
    thread = Thread.new do
      waiting.pop
      monitor.synchronize { (item = :made).then { condition.signal } }
    end
    assert_equal(:made, in_fiber do
      monitor.synchronize do
        waiting << true
        condition.wait_until { item }
        item
      end
    end)
    thread.join
  end
end
