# frozen_string_literal: true

require_relative "strands"

# What tests of the fiber scheduler share.
module Scheduled
  include Strands

  # Runs the block on a thread of its own that has this scheduler, and answers the block's value when the thread has ended,
  # and with it all that the block has scheduled.
  def with_scheduler(scheduler = Ringspun::Scheduler.new, &block)
    thread = start_with(scheduler, &block)
    thread.value
  ensure
    thread&.kill&.join
  end

  # The thread alone. What it ends with is the test's to look at.
  def start_with(scheduler = Ringspun::Scheduler.new)
    Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(scheduler)
      yield scheduler
    end
  end

  # The block's value, from a fiber that Fiber.schedule has made on such a thread.
  def in_fiber(scheduler = Ringspun::Scheduler.new)
    value = nil
    with_scheduler(scheduler) { Fiber.schedule { value = yield } }
    value
  end

  # Runs the block in a scheduled fiber and in Ringspun.run.
  def assert_both(expected, &block)
    assert_value expected, "set_scheduler", in_fiber(&block)
    assert_value expected, "Ringspun.run", Ringspun.run(&block)
  end

  # And in a simulation: for what waits neither for other threads nor for the system.
  def assert_everywhere(expected, &block)
    assert_both(expected, &block)
    assert_value expected, "simulation", simulate(&block).value
  end

  # Like Fiber.schedule, but answers what {#join} waits for. Others may be ready all the time meanwhile, and a simulated clock
  # stands still as long as they are: asking again and again whether a fiber is alive is no way to wait for it.
  def schedule
    done = Thread::Queue.new
    Fiber.schedule do
      yield
    ensure
      done.close
    end
    done
  end

  def join(*scheduled) = scheduled.each(&:pop)

  # Until that thread waits. What it waits for is known to the test.
  def until_stopped(thread)
    Thread.pass until thread.stop?
    thread
  end

  private

  def assert_value(expected, way, actual)
    assert_equal [expected], [actual], way
  end
end
