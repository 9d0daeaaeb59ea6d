# frozen_string_literal: true

require "test_helper"
require "timeout"
require "support/scheduled"

# Timeout.timeout, which a scheduler does without a thread.
class SchedulerTimeoutTest < Minitest::Test
  include Scheduled

  Own = Class.new(StandardError)

  def test_it_is_raised_at_the_wait_inside
    assert_everywhere([Timeout::Error, "execution expired", :inside]) do
      where = nil
      error = error_of do
        Timeout.timeout(0.001) do
          sleep
        rescue Timeout::ExitException, Timeout::Error
          where = :inside
          raise
        end
      end
      [error.class, error.message, where]
    end
  end

  def test_every_kind_of_wait
    assert_everywhere([Timeout::Error] * 6) do
      mutex, own, condition = Thread::Mutex.new, Thread::Mutex.new, Thread::ConditionVariable.new
      queue, full = Thread::Queue.new, Thread::SizedQueue.new(1)
      full << 1
      holding = schedule { mutex.synchronize { queue.pop } }
      waits = [proc { sleep(1000) }, proc { mutex.lock }, proc { queue.pop }, proc { full << 2 },
               proc { own.synchronize { condition.wait(own) } },
               proc { own.synchronize { condition.wait(own, 1000) } }]
      errors = waits.map { |wait| error_of { Timeout.timeout(0.001, &wait) }.class }
      queue << :for_the_holder
      join(holding)
      errors
    end
  end

  def test_an_item_that_has_a_limit_of_its_own
    assert_both(Timeout::Error) { error_of { Timeout.timeout(0.001) { Thread::Queue.new.pop(timeout: 1000) } }.class }
  end

  def test_a_thread_to_end
    release = Thread::Queue.new
    assert_both([Timeout::Error, Timeout::Error]) do
      thread = Thread.new { release.pop }
      [proc { thread.join }, proc { thread.value }].map { |wait| error_of { Timeout.timeout(0.001, &wait) }.class }
    end
    release.close
  end

  def test_a_block_that_ends_in_time
    assert_everywhere([:value, [5], true, [0.001]]) do
      given = []
      [Timeout.timeout(1000) { sleep(0.001) && :value }, [Timeout.timeout(5) { |seconds| seconds }],
       Timeout.timeout(1) { true }, Timeout.timeout(0.001) { |seconds| given << seconds }]
    end
  end

  # Nor later: the next wait is as long as it was meant to be.
  def test_not_when_the_block_has_ended_in_time
    assert_everywhere(%i[value slept]) { [Timeout.timeout(0.001) { :value }, sleep(0.003) && :slept] }
    elapsed = simulate { 100.times { Timeout.timeout(0.5) {} }.then { sleep(10) } }.elapsed
    assert_in_delta 10, elapsed, 0.01
  end

  def test_not_where_nothing_waits
    assert_both(:computed) do
      Timeout.timeout(0.0001) do
        before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) - before > 0.001
        :computed
      end
    end
  end

  def test_at_the_next_wait_when_its_time_has_passed_already
    assert_everywhere([Timeout::Error, [:before]]) do
      order = []
      error = error_of do
        Timeout.timeout(0.000_001) do
          (order << :before).then { sleep(0.001) }
          order << :after
        end
      end
      [error.class, order]
    end
  end

  def test_ensure_blocks_may_wait
    assert_everywhere([Timeout::Error, %i[ensured waited]]) do
      order = []
      error = error_of do
        Timeout.timeout(0.001) do
          sleep
        ensure
          order << :ensured
          sleep(0.002)
          Ringspun::Queue.new.pop(timeout: 0.001)
          order << :waited
        end
      end
      [error.class, order]
    end
  end

  # CRuby's own raises an exception that only its ensure blocks see: a rescue of all errors does not keep it.
  def test_a_rescue_inside_and_more_waits_after_it
    assert_everywhere([%i[rescued slept], nil]) do
      value = nil
      error = error_of do
        value = Timeout.timeout(0.001, Own) do
          sleep
        rescue Own
          [:rescued, sleep(0.002) && :slept]
        end
      end
      [value, error]
    end
  end

  def test_with_a_class
    assert_everywhere([Own, "execution expired"]) { class_and_message { Timeout.timeout(0.001, Own) { sleep } } }
  end

  def test_with_a_class_and_a_message
    assert_everywhere([Own, "mine"]) { class_and_message { Timeout.timeout(0.001, Own, "mine") { sleep } } }
    assert_everywhere([Timeout::Error, "mine"]) { class_and_message { Timeout.timeout(0.001, nil, "mine") { sleep } } }
  end

  def class_and_message(&block) = error_of(&block).then { |error| [error.class, error.message] }

  def test_without_a_time
    assert_everywhere([:nil, :zero]) { [Timeout.timeout(nil) { sleep(0.001).then { :nil } }, Timeout.timeout(0) { :zero }] }
  end

  # As without a scheduler: due at once. (Newer versions of Timeout do not let a negative one come so far.)
  def test_times_at_the_end_of_the_scale
    assert_everywhere([Own, :never]) do
      scheduler = Fiber.scheduler
      [error_of { scheduler.timeout_after(-1, Own, "x") { sleep } }.class,
       scheduler.timeout_after(Float::INFINITY, Own, "x") { sleep(0.001).then { :never } }]
    end
  end

  def test_the_errors_of_the_block
    assert_everywhere([Failure, :thrown]) do
      [error_of { Timeout.timeout(1) { raise Failure } }.class, catch(:out) { Timeout.timeout(1) { throw :out, :thrown } }]
    end
  end

  # --- one inside another ---

  def nested(outer, inner, wait)
    error = error_of do
      Timeout.timeout(outer, Class.new(Own) { def self.name = "Outer" }) do
        Timeout.timeout(inner, Class.new(Own) { def self.name = "Inner" }) { sleep(wait) }
        :inner_ended
      rescue Own => e
        raise e if e.class.name == "Outer"

        sleep(0.0005)
        raise e
      end
    end
    error&.class&.name
  end

  def test_nested
    assert_everywhere("Inner") { nested(1000, 0.001, nil) }
    assert_everywhere("Outer") { nested(0.001, 1000, nil) }
    assert_everywhere(nil) { nested(1000, 1000, 0.001) }
  end

  # The outer one, whose block holds the other.
  def test_nested_and_both_due
    assert_everywhere("Outer") { nested(0.000_001, 0.000_001, 0.001) }
    assert_everywhere("Outer") { nested(0.001, 0.001, nil) }
  end

  # The times of several on one clock: where nobody else makes it late.
  def test_the_outer_one_is_due_after_the_inner_one
    simulate do
      order = []
      error_of do
        Timeout.timeout(0.003, Own) do
          begin
            Timeout.timeout(0.001) { sleep }
          rescue Timeout::Error
            order << :inner
          end
          sleep
        rescue Own
          order << :outer
        end
      end
      assert_equal %i[inner outer], order
    end
  end

  def test_one_after_the_other
    assert_everywhere([Timeout::Error] * 5) { Array.new(5) { error_of { Timeout.timeout(0.0005) { sleep } }.class } }
  end

  def test_each_strand_has_its_own
    simulate do
      order = []
      join(schedule { error_of { Timeout.timeout(0.001) { sleep } }.then { order << :a } },
           schedule { error_of { Timeout.timeout(0.004) { sleep } }.then { order << :b } },
           schedule { Timeout.timeout(0.01) { sleep(0.002) }.then { order << :slept } })
      assert_equal %i[a slept b], order
    end
  end

  def test_it_does_not_reach_what_is_scheduled_inside
    assert_everywhere(%i[timeout slept]) do
      order = []
      slept = nil
      error_of { Timeout.timeout(0.001) { (slept = schedule { sleep(0.002).then { order << :slept } }).then { sleep } } }
      order << :timeout
      join(slept)
      order
    end
  end

  # --- with scopes ---

  def test_inside_a_scope_that_is_cancelled
    assert_everywhere([Ringspun::Cancelled, nil]) do
      raised = nil
      value = Ringspun.scope do |scope|
        Fiber.schedule { scope.cancel }
        Timeout.timeout(1000) do
          sleep
        rescue Exception => e
          raised = e.class
          raise
        end
      end
      [raised, value]
    end
  end

  # Both are due: the scope is around the timeout, and so it is the scope's.
  def test_inside_a_scope_that_is_cancelled_when_it_is_due
    assert_everywhere(nil) do
      Ringspun.scope do |scope|
        Timeout.timeout(0.000_001, Own) do
          scope.cancel
          sleep(0.001)
        end
      end
    end
  end

  def test_around_a_scope
    assert_everywhere([Own, :unwound]) do
      unwound = nil
      error = error_of do
        Timeout.timeout(1, Own) do # by then the strand has begun
          Ringspun.scope do |scope|
            scope.spin do
              sleep
            ensure
              unwound = :unwound
            end
            sleep
          end
        end
      end
      [error.class, unwound]
    end
  end

  def test_around_a_shield
    assert_everywhere([Own, true]) do
      shielded = false
      error = error_of do
        Timeout.timeout(0.001, Own) do
          Ringspun.shield { sleep(0.003).then { shielded = true } }
          sleep
        end
      end
      [error.class, shielded]
    end
  end

  def test_the_machines_own_timeout_inside_and_around
    assert_everywhere([Ringspun::TimeoutError, Own]) do
      [error_of { machine.timeout(0.001) { Timeout.timeout(1000) { sleep } } }.class,
       error_of { Timeout.timeout(0.001, Own) { machine.timeout(1000) { sleep } } }.class]
    end
  end

  # --- with fibers of the program's own ---

  def test_around_an_enumerator
    assert_everywhere([1, Timeout::Error, 1]) do
      make = -> { Enumerator.new { |y| (y << 1).then { sleep(0.003) }.then { y << 2 } } }
      enumerator = make.call
      first = Timeout.timeout(1000) { enumerator.next }
      error = error_of { Timeout.timeout(0.001) { enumerator.next } }
      [first, error.class, make.call.next]
    end
  end

  # The generator is left in the middle of its timeout, which does not govern what its consumer does meanwhile.
  def test_inside_an_enumerator
    assert_everywhere([1, :slept, Timeout::Error]) do
      enumerator = Enumerator.new { |y| Timeout.timeout(0.001) { (y << 1).then { sleep } } }
      [enumerator.next, sleep(0.003) && :slept, error_of { enumerator.next }.class]
    end
  end

  # --- where no scheduler can help ---

  def test_at_the_root_of_the_thread
    assert_equal(%w[done], with_scheduler { [Timeout.timeout(1000) { "done" }] })
    assert_equal(Timeout::Error, with_scheduler { error_of { Timeout.timeout(0.001) { sleep } }.class })
  end

  def test_in_a_blocking_fiber
    assert_both(Timeout::Error) { Fiber.new(blocking: true) { error_of { Timeout.timeout(0.001) { sleep } }.class }.resume }
  end
end
