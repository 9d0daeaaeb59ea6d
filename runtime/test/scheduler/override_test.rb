# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Subclasses of Ringspun::Scheduler whose hooks wait for something of their own before they call ours, or after it. What CRuby
# sends meanwhile must not get lost, and not be taken for something else.
class SchedulerOverrideTest < Minitest::Test
  include Scheduled

  SINK = IO.pipe

  # Each waits in its own way: for time, for its next turn, for a descriptor.
  WAYS = {
    sleeps: -> { Ringspun::Machine.current.sleep(0.002) },
    yields: -> { Ringspun::Machine.current.yield },
    writes: -> { 40.times { SINK.last.syswrite("x") }.then { SINK.first.readpartial(100) } }
  }.freeze

  def self.before(way)
    Class.new(Ringspun::Scheduler) do
      define_method(:block) { |*arguments| way.call.then { super(*arguments) } }
      define_method(:kernel_sleep) { |*arguments| way.call.then { super(*arguments) } }
    end
  end

  WAYS.each do |name, way|
    define_method(:"test_an_item_while_block_#{name}") do
      assert_equal(:item, in_fiber(self.class.before(way).new) do
        queue = Thread::Queue.new
        machine.spin { queue << :item }
        queue.pop
      end)
    end

    define_method(:"test_an_item_of_another_thread_while_block_#{name}") do
      queue = Thread::Queue.new
      scheduler = Class.new(self.class.before(way)) do
        define_method(:block) do |*arguments|
          thread = Thread.new { queue << :item }
          way.call while thread.alive?
          super(*arguments)
        end
      end
      assert_equal(:item, in_fiber(scheduler.new) { queue.pop })
    end

    define_method(:"test_a_place_while_block_#{name}") do
      assert_equal(2, in_fiber(self.class.before(way).new) do
        queue = Thread::SizedQueue.new(1).push(1)
        machine.spin { queue.pop }
        queue.push(2).pop
      end)
    end

    define_method(:"test_a_lock_while_block_#{name}") do
      assert_equal(:locked, in_fiber(self.class.before(way).new) do
        mutex = Thread::Mutex.new.lock
        got = Thread::Queue.new
        Fiber.schedule { mutex.synchronize { got << :locked } }
        mutex.unlock
        got.pop
      end)
    end

    define_method(:"test_a_thread_while_block_#{name}") do
      assert_equal([:value, :value], in_fiber(self.class.before(way).new) do
        [nil, 1000].map do |limit|
          thread = Thread.new { Thread.stop.then { :value } }
          machine.spin { until_stopped(thread).run.then { nil while thread.alive? } }
          thread.join(limit).value
        end
      end)
    end

    define_method(:"test_a_condition_while_kernel_sleep_#{name}") do
      assert_equal(:signalled, in_fiber(self.class.before(way).new) do
        mutex, condition = Thread::Mutex.new, Thread::ConditionVariable.new
        machine.spin { condition.signal }
        mutex.synchronize { condition.wait(mutex) && :signalled }
      end)
    end
  end

  # In a fiber which has not waited yet, so that the machine has not seen it.
  def test_an_item_for_a_fiber_inside_of_the_strand_s
    queue = Thread::Queue.new
    scheduler = Class.new(Ringspun::Scheduler) do
      define_method(:block) do |*arguments|
        thread = Thread.new { queue << :item }
        nil while thread.alive?
        super(*arguments)
      end
    end
    assert_equal(:item, in_fiber(scheduler.new) { Enumerator.new { |items| items << queue.pop }.next })
  end

  # The method may come by a module as well.
  def test_a_module_before_the_hook
    way = Module.new { def block(*) = Ringspun::Machine.current.sleep(0.002).then { super } }
    assert_equal(:item, in_fiber(Ringspun::Scheduler.new.extend(way)) do
      queue = Thread::Queue.new
      machine.spin { queue << :item }
      queue.pop
    end)
  end

  # --- what comes too late ---

  # The hook has ended for its time that is up, and its override waits: the item is there, and the unblock for nobody.
  def late_item(scheduler)
    in_fiber(scheduler) do
      queue = Thread::Queue.new
      Fiber.schedule { machine.sleep(0.002).then { queue << :item } }
      [queue.pop(timeout: 0.001), yield]
    end
  end

  AFTER = Class.new(Ringspun::Scheduler) { def block(*) = super.tap { Ringspun::Machine.current.sleep(0.005) } }

  def test_a_late_unblock_does_not_end_the_sleep_of_a_mutex
    slept = late_item(AFTER.new) do
      before = machine.now
      Thread::Mutex.new.then { |mutex| mutex.synchronize { mutex.sleep(0.02) } }
      machine.now - before
    end
    assert_equal [:item, true], [slept.first, slept.last >= 0.02]
  end

  def test_a_late_unblock_does_not_end_the_wait_for_an_item_or_a_thread
    queue = Thread::Queue.new
    ended = late_item(AFTER.new) { [queue.pop(timeout: 0.001), Thread.new { :value }.value] }
    assert_equal [:item, [nil, :value]], ended
  end

  # Without an override nobody is on the way to the hook.
  def test_without_an_override_an_unblock_of_one_that_sleeps_is_for_nobody
    elapsed = simulate do
      slept = nil
      fiber = Fiber.schedule { machine.sleep(1).then { slept = Fiber.scheduler.block(:something, 4) } }
      Fiber.scheduler.unblock(:something, fiber)
      machine.sleep(10)
      refute slept
    end.elapsed
    assert_in_delta 10, elapsed, 0.01
  end
end
