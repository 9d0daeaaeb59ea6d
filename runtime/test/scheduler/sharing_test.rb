# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Strands of the machine's own API and fibers of Fiber.schedule on one machine, with queues and locks of either kind.
class SchedulerSharingTest < Minitest::Test
  include Scheduled

  STARTS = {
    spin: ->(test, &block) { test.machine.spin(&block) },
    schedule: ->(test, &block) { test.schedule(&block) }
  }.freeze

  def start(how, &block) = STARTS.fetch(how).call(self, &block)
  def await(one) = one.is_a?(Ringspun::Strand) ? one.join : join(one)

  [Thread::Queue, Ringspun::Queue].each do |queue_class|
    STARTS.keys.product(STARTS.keys).each do |from, to|
      define_method(:"test_#{queue_class.name.tr(":", "_").downcase}_from_#{from}_to_#{to}") do
        assert_everywhere((0..9).to_a) do
          queue = queue_class.new
          got = []
          taker = start(to) { 10.times { got << queue.pop } }
          pusher = start(from) { 10.times { |i| (queue << i).then { sleep(0.001) if i == 5 } } }
          [taker, pusher].each { |one| await(one) }
          got
        end
      end
    end
  end

  [Thread::SizedQueue, Ringspun::SizedQueue].each do |queue_class|
    define_method(:"test_#{queue_class.name.tr(":", "_").downcase}") do
      assert_everywhere((0..19).to_a) do
        queue = queue_class.new(2)
        got = []
        all = [start(:spin) { 10.times { |i| queue << i } }, start(:schedule) { (10..19).each { |i| queue << i } },
               start(:schedule) { 10.times { got << queue.pop } }, start(:spin) { 10.times { got << queue.pop } }]
        all.each { |one| await(one) }
        got.sort
      end
    end
  end

  [Thread::Mutex, Ringspun::Mutex].each do |mutex_class|
    define_method(:"test_#{mutex_class.name.tr(":", "_").downcase}") do
      assert_everywhere([0, 60]) do
        mutex = mutex_class.new
        inside = together = entered = 0
        all = STARTS.keys.cycle.first(6).map do |how|
          start(how) do
            10.times do
              mutex.synchronize do
                together += 1 if (inside += 1) > 1
                how == :spin ? machine.yield : sleep(0)
                inside -= 1
                entered += 1
              end
            end
          end
        end
        all.each { |one| await(one) }
        [together, entered]
      end
    end
  end

  def test_a_scheduled_fiber_is_a_strand
    assert_everywhere([true, :done, "a Thread::Queue"]) do
      queue = Thread::Queue.new
      strand = nil
      Fiber.schedule { (strand = machine.running).then { queue.pop } }
      seen = [machine.strands.include?(strand)]
      waits_for = strand.waits_for
      queue << :done
      [*seen, strand.await, waits_for]
    end
  end

  def test_the_machines_waits_in_a_scheduled_fiber
    assert_everywhere([:told, Ringspun::TimeoutError, 3]) do
      got = []
      strand = nil
      fiber = schedule do
        strand = machine.running
        got << machine.park << error_of { machine.timeout(0.001) { machine.sleep } }.class
        got << machine.scope { |scope| scope.spin { machine.yield.then { 3 } }.await }
      end
      machine.schedule(strand, :told)
      join(fiber)
      got
    end
  end

  def test_a_scheduled_fiber_is_terminated
    assert_everywhere([Ringspun::Cancelled, false]) do
      strand = error = nil
      fiber = Fiber.schedule { (strand = machine.running).then { error = error_of { sleep } } }
      machine.terminate(strand)
      sleep(0.001)
      [error.class, fiber.alive?]
    end
  end

  def test_a_scope_does_not_govern_what_is_scheduled_inside
    assert_everywhere(%i[left ended]) do
      order = []
      fiber = nil
      Ringspun.scope { |scope| (fiber = schedule { sleep(0.001).then { order << :ended } }).then { scope.cancel } }
      order << :left
      join(fiber)
      order
    end
  end

  def test_the_error_of_one_that_is_awaited_is_not_told_again
    _, said = capture_io do
      assert_both([Failure]) do
        strand = nil
        Fiber.schedule { (strand = machine.running).then { sleep(0) }.then { raise Failure } }
        [error_of { strand.await }.class]
      end
    end
    assert_empty said
  end

  def test_stock_calls_in_strands_of_the_machines_own
    order = []
    with_scheduler do
      Fiber.schedule {} # so that the machine is the scheduler's
      machine.spin { sleep(0.002).then { order << :slept } }
      machine.spin { Thread.new { sleep(0.001) }.join.then { order << :joined } }
    end
    assert_equal %i[joined slept], order.sort
  end
end
