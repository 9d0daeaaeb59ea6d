# frozen_string_literal: true

require "test_helper"
require "monitor"
require "timeout"
require "support/scheduled"

# ConditionVariable#wait, Mutex#sleep and Monitor's conditions take the lock again before they return or raise, however long
# another strand holds it: what follows is inside the critical section.
class SchedulerLockAgainTest < Minitest::Test
  include Scheduled

  # A lock, with the ways to wait without it.
  class Place
    def initialize
      @mutex = Thread::Mutex.new
      @condition = Thread::ConditionVariable.new
    end

    def synchronize(&) = @mutex.synchronize(&)
    def owned? = @mutex.owned?
    def wait = @condition.wait(@mutex)
    def wait_for_long = @condition.wait(@mutex, 3600)
    def sleep = @mutex.sleep
    def sleep_for_long = @mutex.sleep(3600)
    def signal = @condition.signal
  end

  # The same of Monitor.
  class MonitorPlace
    def initialize
      @monitor = Monitor.new
      @condition = @monitor.new_cond
    end

    def synchronize(&) = @monitor.synchronize { @monitor.synchronize(&) }
    def owned? = @monitor.mon_owned?
    def wait = @condition.wait
    def wait_for_long = @condition.wait(3600)
    def signal = @condition.signal
  end

  WAITS = { Place => %i[wait wait_for_long sleep sleep_for_long], MonitorPlace => %i[wait wait_for_long] }.freeze

  # How a limit ends the wait that the block is, and with what.
  LIMITS = {
    "timeout" => [Ringspun::TimeoutError, ->(machine, &wait) { machine.timeout(0.001, &wait) }], # must pass
    "scope" => [Ringspun::TimeoutError, ->(machine, &wait) { machine.scope(deadline: 0.001) { wait.call } }], # must pass
    "Timeout" => [Timeout::Error, ->(_, &wait) { Timeout.timeout(0.001, &wait) }] # must pass
  }.freeze

  CUTS = {
    "terminate" => [Ringspun::TerminatedError, ->(machine, strand, _) { machine.terminate(strand) }],
    "interrupt" => [KeyError, ->(_, _, fiber) { Fiber.scheduler.fiber_interrupt(fiber, KeyError.new("cut")) }]
  }.freeze

  WAITS.each do |kind, waits|
    waits.each do |wait|
      LIMITS.each do |name, (error, limit)|
        define_method("test_#{kind.name[/\w+\z/]}_#{wait}_within_#{name}") do
          assert_both_machines([error, [true]]) do |machine|
            held_meanwhile(machine, kind.new) { |place| limit.call(machine) { place.public_send(wait) } }
          end
        end
      end

      CUTS.each do |name, (error, cut)|
        define_method("test_#{kind.name[/\w+\z/]}_#{wait}_cut_by_#{name}") do
          assert_both_machines([error, [true]]) do |machine|
            cut_it = ->(strand, fiber) { cut.call(machine, strand, fiber) }
            held_meanwhile(machine, kind.new, cut_it) { |place| place.public_send(wait) }
          end
        end
      end
    end
  end

  # What was signalled has come: the cancellation waits for the next wait.
  def test_one_that_is_cancelled_after_its_signal
    [Place, MonitorPlace].each do |kind|
      assert_both_machines([Ringspun::TerminatedError, %i[waited true]]) do |machine|
        place = kind.new
        steps = []
        cut = lambda do |strand, _|
          place.signal
          machine.yield
          machine.terminate(strand)
        end
        error, = held_meanwhile(machine, place, cut) do
          place.wait
          steps << :waited << place.owned?.to_s.to_sym
          machine.sleep
        end
        [error, steps]
      end
    end
  end

  private

  def assert_both_machines(expected, &)
    assert_equal expected, Ringspun.run(&), "a real machine"
    assert_equal expected, simulate(&).value, "simulation"
  end

  # A strand waits by the block; another one holds its lock while the wait is cut. What the strand ends by, and whether it had the
  # lock in its `ensure`.
  def held_meanwhile(machine, place, cut = nil, &)
    strand = nil
    strand, fiber, owned = waiting(machine, place, &) until strand&.state == :parked
    place.synchronize do
      cut&.call(strand, fiber)
      machine.sleep(0.01)
      assert_empty owned, "it goes on without the lock"
    end
    [error_of { strand.await }.class, owned]
  end

  # Where the limit has passed before the wait began, it is done.
  def waiting(machine, place)
    owned = []
    fiber = nil
    strand = machine.spin do
      place.synchronize do
        fiber = Fiber.current
        yield place
      ensure
        owned << place.owned?
      end
    end
    machine.yield until fiber && strand.state != :ready
    error_of { strand.await } if strand.state == :done
    [strand, fiber, owned]
  end
end
