# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Scheduler#run in a strand: it waits for what that strand has scheduled. At the root it waits for all: end_test.rb.
class SchedulerRunTest < Minitest::Test
  include Scheduled

  # In a run, a simulated one, a run inside another, and a scheduled fiber.
  def everywhere(&block)
    Ringspun.run(&block)
    simulate(&block)
    Ringspun.run { Ringspun.run(&block) }
    in_fiber(&block)
  end

  # One that ends only later, and is no concern of whoever calls run.
  def beside
    gate = Thread::Queue.new
    fiber = Fiber.schedule { gate.pop }
    machine.spin { yield }.join
    assert_predicate fiber, :alive?
    gate << :open
  end

  def test_it_waits_for_what_the_strand_has_scheduled_and_for_nothing_else
    everywhere do
      beside do
        seen = []
        3.times { |i| Fiber.schedule { (3 - i).times { machine.yield }.then { seen << i } } }
        Fiber.scheduler.run
        assert_equal [0, 1, 2], seen.sort
      end
    end
  end

  def test_and_for_what_those_have_scheduled_also_when_they_have_ended
    everywhere do
      beside do
        seen = []
        gate = Thread::Queue.new
        Fiber.schedule do
          Fiber.schedule { Fiber.schedule { gate.pop.then { seen << :inner } }.then { machine.yield } }
          Fiber.schedule { gate.pop.then { seen << :inner } }
        end
        Fiber.schedule { 3.times { machine.yield }.then { 2.times { gate << 1 } } }
        Fiber.scheduler.run
        assert_equal %i[inner inner], seen
      end
    end
  end

  def test_with_nothing_scheduled_it_returns
    everywhere { beside { assert_nil Fiber.scheduler.run } }
  end

  def test_siblings_that_both_call_it
    everywhere do
      seen = []
      callers = Array.new(2) do |i|
        schedule { Fiber.schedule { machine.yield.then { seen << i } }.then { Fiber.scheduler.run } }
      end
      join(*callers)
      assert_equal [0, 1], seen.sort
    end
  end

  def test_from_within_a_fiber_of_the_strand
    everywhere do
      beside do
        seen = []
        Fiber.new(blocking: false) do
          Fiber.schedule { machine.yield.then { seen << :scheduled } }
          Fiber.scheduler.run
        end.resume
        assert_equal [:scheduled], seen
      end
    end
  end

  def test_it_is_cancelled_like_any_wait
    everywhere do
      beside do
        gate = Thread::Queue.new
        waiting = machine.spin { Fiber.schedule { gate.pop }.then { Fiber.scheduler.run } }
        until_parked(waiting)
        assert_equal "what it has scheduled to end", waiting.waits_for
        waiting.terminate
        assert_raises(Ringspun::TerminatedError) { waiting.join }
        gate << :open
      end
    end
  end

  def test_errors_of_what_it_waits_for_are_told_as_ever
    told = []
    Ringspun.run(on_error: ->(error, _) { told << error.message }) do
      Fiber.schedule { machine.yield.then { raise Failure, "of a fiber" } }
      Fiber.scheduler.run
    end
    assert_equal ["of a fiber"], told
  end

  def test_in_a_forked_child_those_of_the_parent_are_no_concern
    assert_child "child's own\nran\nparent's\n", <<~'RUBY'
      Ringspun.run do |machine|
        gate = Ringspun::Queue.new
        Fiber.schedule { gate.pop && puts("parent's") }
        pid = fork do
          Fiber.schedule { machine.sleep(0.001).then { puts "child's own" } }
          Fiber.scheduler.run
          puts "ran"
          $stdout.flush
        end
        machine.waitid(pid)
        gate << 1
      end
    RUBY
  end
end
