# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Unblocks that nobody waits for: too many, too late, for the wrong fiber, from the wrong thread. CRuby may send them, and a
# program can.
class SchedulerUnblockTest < Minitest::Test
  include Scheduled

  STORM = GCStress::WANTED ? 20 : 2_000

  def test_of_a_fiber_that_is_not_known
    assert_everywhere([nil, nil]) do
      dead = Fiber.new {}.tap(&:resume)
      [Fiber.scheduler.unblock(:nothing, dead), Fiber.scheduler.unblock(:nothing, Fiber.new {})]
    end
  end

  def test_of_a_scheduler_that_has_never_run
    assert_nil Ringspun::Scheduler.new.unblock(:nothing, Fiber.current)
  end

  def test_of_a_scheduler_that_is_closed
    scheduler, fiber = with_scheduler { |own| [own, Fiber.schedule { sleep(0) }] }
    assert_nil scheduler.unblock(:nothing, fiber)
    assert_nil(Thread.new { scheduler.unblock(:nothing, fiber) }.value)
  end

  # A fiber that waits for something, and what it came back with, having been unblocked for no reason meanwhile.
  def undisturbed
    done = []
    fiber = Fiber.schedule { done << yield }
    10.times { Fiber.scheduler.unblock(:nothing, fiber) }
    sleep(0.001)
    10.times { Fiber.scheduler.unblock(:nothing, fiber) }
    assert_empty done
    -> { done.first }
  end

  def test_of_one_that_sleeps
    elapsed = simulate { join(schedule { 5.times { sleep(1) } }, schedule { unblock_often }) }.elapsed
    assert_in_delta 5, elapsed, 0.01
  end

  def unblock_often
    fiber = Fiber.schedule { sleep(2) }
    4.times { Fiber.scheduler.unblock(:nothing, fiber).then { sleep(0.1) } }
    assert_predicate fiber, :alive?
  end

  def test_of_one_that_waits_for_an_item
    assert_everywhere(:item) do
      queue = Thread::Queue.new
      answer = undisturbed { queue.pop }
      (queue << :item).then { sleep(0.001) }
      answer.call
    end
  end

  def test_of_one_that_waits_for_a_place
    assert_everywhere([1, 2]) do
      queue = Thread::SizedQueue.new(1)
      queue << 1
      undisturbed { queue << 2 }
      Array.new(2) { queue.pop }
    end
  end

  def test_of_one_that_waits_for_a_lock
    assert_everywhere([true, false]) do
      mutex = Thread::Mutex.new
      mutex.lock
      answer = undisturbed { mutex.synchronize { mutex.owned? } }
      mutex.unlock.then { sleep(0.001) }
      [answer.call, mutex.locked?]
    end
  end

  def test_of_one_that_waits_for_a_thread
    assert_everywhere(:value) do
      release = Thread::Queue.new
      thread = Thread.new { release.pop }
      answer = undisturbed { thread.value }
      release << :value
      thread.join # which may be woken first
      sleep(0.001) until answer.call
      answer.call
    end
  end

  def test_of_one_that_parks_or_waits_for_one_of_our_locks
    assert_everywhere([:told, :item, :locked]) do
      strand = nil
      told = undisturbed { (strand = machine.running).then { machine.park } }
      queue, mutex = Ringspun::Queue.new, Ringspun::Mutex.new
      item = undisturbed { queue.pop }
      mutex.lock
      locked = undisturbed { mutex.synchronize { :locked } }
      machine.schedule(strand, :told)
      queue << :item
      mutex.unlock
      sleep(0.001)
      [told, item, locked].map(&:call)
    end
  end

  def test_of_one_that_reads
    assert_both("bytes") do
      reader, writer = IO.pipe
      answer = undisturbed { reader.readpartial(10) }
      writer << "bytes"
      sleep(0.001) until answer.call
      answer.call
    ensure
      [reader, writer].each(&:close)
    end
  end

  # A condition's waiter is woken: that is what CRuby's own ones are, too.
  def test_of_one_that_waits_for_a_condition
    assert_everywhere([true, true]) do
      mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
      ready = false
      owned = nil
      fiber = Fiber.schedule do
        mutex.synchronize do
          condition.wait(mutex) until ready
          owned = mutex.owned?
        end
      end
      3.times { Fiber.scheduler.unblock(:nothing, fiber).then { sleep(0.001) } }
      (ready = true).then { condition.signal }
      sleep(0.001)
      [ready, owned]
    end
  end

  # --- before the wait ---

  def test_one_that_comes_before_the_wait_is_for_a_lock_and_not_for_a_sleep
    elapsed = simulate do
      Fiber.scheduler.unblock(:nothing, Fiber.current)
      sleep(5)
      assert Fiber.scheduler.block(:something, 1000)
    end.elapsed
    assert_in_delta 5, elapsed, 0.01
  end

  # It lives when it unblocks, and has no other unblock to send.
  def test_a_thread_that_ends_with_an_error_under_an_unblock_that_waits
    scheduler = Class.new(Ringspun::Scheduler) { def unblock(blocker, fiber) = super.then { sleep(0.001) } }.new
    error = in_fiber(scheduler) do
      thread = Thread.new do
        Thread.current.report_on_exception = false
        sleep(0.001)
        raise Failure
      end
      error_of { thread.join }
    end
    assert_kind_of Failure, error
  end

  def test_of_one_that_waits_for_a_thread_for_a_time
    assert_both([nil, true]) do
      thread = Thread.new { sleep }
      before = machine.now
      fiber = Fiber.current
      Fiber.schedule { 3.times { Fiber.scheduler.unblock(thread, fiber).then { sleep(0.001) } } }
      [thread.join(0.02), machine.now - before >= 0.02]
    ensure
      thread.kill.join
    end
  end

  def test_one_that_comes_before_the_wait_of_the_hook
    assert_everywhere([true, false]) do
      2.times { Fiber.scheduler.unblock(:nothing, Fiber.current) }
      [Fiber.scheduler.block(:something, 0.001), Fiber.scheduler.block(:something, 0.001)]
    end
  end

  # --- after the wait ---

  def test_a_stale_one_does_not_end_a_later_wait
    assert_both([:first, nil, false]) do
      queue = Thread::Queue.new
      got = []
      fiber = Fiber.schedule do
        got << queue.pop << queue.pop(timeout: 0.002)
        got << Fiber.scheduler.block(:something, 0.002)
      end
      queue << :first
      5.times { Fiber.scheduler.unblock(queue, fiber) }
      sleep(0.01)
      got
    end
  end

  def test_those_of_another_thread_that_come_too_late
    elapsed = nil
    with_scheduler do |scheduler|
      Fiber.schedule do
        fiber = Fiber.current
        before = machine.now
        20.times do
          blocked = Thread::Queue.new
          thread = Thread.new { (blocked.pop || true) && 5.times { scheduler.unblock(:nothing, fiber) } }
          blocked << true
          Thread.pass
          sleep(0.001)
          thread.join
        end
        elapsed = machine.now - before
      end
    end
    assert_operator elapsed, :>=, 0.02
  end

  # At every depth around the end of the stack. In a process of its own, whose fibers run out of C's stack and not of Ruby's.
  def test_of_a_wait_for_which_there_is_no_stack
    answer = child(<<~RUBY, env: { "RUBY_FIBER_VM_STACK_SIZE" => (1 << 25).to_s })
      def descend(pad) = pad.zero? ? [0].each { wait_and_descend } : [0].sum { descend(pad - 1) }

      def wait_and_descend
        begin
          Fiber.scheduler.block(:nothing, 0)
        rescue SystemStackError
          $refused = true
          raise
        end
        descend(0)
      end

      Ringspun.run do
        60.times do |pad|
          fiber = nil
          machine.spin { (fiber = Fiber.current).then { descend(pad) } }.join
        rescue SystemStackError
          Fiber.scheduler.unblock(:nothing, fiber)
        end
        puts $refused
      end
    RUBY
    assert_equal ["true\n", ""], [answer.out, answer.err]
  end

  # --- storms ---

  # Thread#pass, because the others would stand in line for the GVL behind a whole time slice of each such thread.
  def storm_of(scheduler, fibers)
    Thread.new do
      until yield
        fibers.each { |fiber| scheduler.unblock(:nothing, fiber) }
        Thread.pass
      end
    end
  end

  # From several threads, of fibers that wait for locks, items and time, or run.
  def test_a_storm_of_them
    queue = Thread::Queue.new
    got = []
    fibers = stop = nil
    started = Thread::Queue.new
    thread = start_with do |scheduler|
      fibers = Array.new(10) do |i|
        Fiber.schedule do
          while (item = queue.pop)
            got << item
            sleep(0) if i.even?
          end
        end
      end
      started << scheduler
    end
    scheduler = started.pop
    storm = Array.new(3) { storm_of(scheduler, fibers) { stop } }
    STORM.times { |n| (queue << n).then { Thread.pass if (n % 10).zero? } }
    queue.close
    thread.value
    stop = true
    storm.each(&:join)
    assert_equal Array.new(STORM) { |n| n }, got.sort
  end

  def test_a_storm_around_a_lock
    mutex = Thread::Mutex.new
    inside = together = entered = 0
    fibers = stop = nil
    started = Thread::Queue.new
    thread = start_with do |scheduler|
      fibers = Array.new(5) do
        Fiber.schedule do
          (STORM / 20).times do
            mutex.synchronize do
              together += 1 if (inside += 1) > 1
              sleep(0)
              entered += 1
              inside -= 1
            end
          end
        end
      end
      started << scheduler
    end
    scheduler = started.pop
    storm = Array.new(2) { storm_of(scheduler, fibers) { stop } }
    others = Array.new(2) { Thread.new { (STORM / 20).times { mutex.synchronize { Thread.pass } } } }
    thread.value
    stop = true
    [*storm, *others].each(&:join)
    assert_equal [STORM / 20 * 5, 0, false], [entered, together, mutex.locked?]
  end
end
