# frozen_string_literal: true

# pass: crowds

require "test_helper"
require "support/scheduled"

# Fiber.schedule, and what becomes of what it starts.
class SchedulerFiberTest < Minitest::Test
  include Scheduled

  def test_without_a_scheduler_nothing_is_scheduled
    assert_raises(RuntimeError) { Fiber.schedule {} }
  end

  def test_without_a_block
    assert_everywhere(Ringspun::UsageError) { error_of { Fiber.schedule }.class }
  end

  def test_current_scheduler_is_for_fibers_that_may_wait
    scheduler = Ringspun::Scheduler.new
    outside, inside, blocking, nested = with_scheduler(scheduler) do
      seen = [Fiber.current_scheduler]
      Fiber.schedule do
        seen << Fiber.current_scheduler
        Fiber.new(blocking: true) { seen << Fiber.current_scheduler }.resume
        Fiber.new { seen << Fiber.current_scheduler }.resume
      end
      seen
    end
    assert_equal [nil, scheduler, nil, scheduler], [outside, inside, blocking, nested]
  end

  def test_a_scheduled_fiber_is_not_blocking
    assert_everywhere([false, 1, false]) do
      Fiber.schedule { @blocking = [Fiber.current.blocking?, Fiber.blocking(&:blocking?) && 1, Fiber.current.blocking?] }
      @blocking
    end
  end

  def test_it_starts_at_once_and_the_caller_goes_on_at_its_first_wait
    assert_everywhere(%i[first caller second caller_again end]) do
      order = []
      Fiber.schedule do
        order << :first
        sleep(0)
        order << :second
        sleep(0)
        order << :end
      end
      order << :caller
      sleep(0)
      order << :caller_again
      sleep(0)
      order
    end
  end

  def test_the_caller_goes_on_before_those_that_were_ready
    assert_everywhere(%i[scheduled caller ready]) do
      order = []
      machine.spin { order << :ready }
      Fiber.schedule { order << :scheduled }
      order << :caller
      sleep(0)
      order
    end
  end

  def test_the_answer_is_a_fiber_that_is_dead_after_its_block
    assert_everywhere([Fiber, true, true, false]) do
      current = nil
      fiber = Fiber.schedule { (current = Fiber.current).then { sleep(0) } }
      seen = [fiber.class, fiber.equal?(current), fiber.alive?]
      3.times { sleep(0) }
      seen << fiber.alive?
    end
  end

  def test_one_that_never_waits_is_dead_at_once
    assert_everywhere([false, false]) do
      [Fiber.schedule {}, Fiber.schedule { Fiber.schedule {} }].map(&:alive?)
    end
  end

  def test_from_the_root_of_the_thread
    order = []
    with_scheduler do
      Fiber.schedule { (order << :one).then { sleep(0.001) }.then { order << :two } }
      order << :root
    end
    assert_equal %i[one root two], order
  end

  def test_from_inside_of_another_and_of_a_fiber_of_ones_own
    assert_everywhere((0..4).to_a) do
      queue = Thread::Queue.new
      Fiber.schedule { Fiber.schedule { sleep(0.002).then { queue << 1 } }.then { queue << 0 } }
      Fiber.new { Fiber.schedule { sleep(0.001).then { queue << 2 } } }.resume
      queue << Enumerator.new { |y| Fiber.schedule { sleep(0.003).then { queue << 3 } }.then { y << 4 } }.next
      Array.new(5) { queue.pop }.sort
    end
  end

  def test_deep_nesting
    assert_everywhere(100) do
      count = 0
      nest = ->(depth) { Fiber.schedule { count += 1 and sleep(0) and depth > 1 && nest.call(depth - 1) } }
      nest.call(100)
      sleep(0) until count == 100
      count
    end
  end

  def test_ten_thousand
    assert_everywhere([5_000, 5_000]) do
      count = 0
      fibers = Array.new(5_000) { Fiber.schedule { count += 1 } }
      [count, fibers.count { |fiber| !fiber.alive? }]
    end
  end

  def test_what_is_local_to_a_fiber
    assert_everywhere([nil, :given, nil]) do
      Thread.current[:local] = :mine
      Fiber[:stored] = :given
      seen = []
      Fiber.schedule { seen << Thread.current[:local] << Fiber[:stored] << $! }
      Fiber[:stored] = nil
      seen
    ensure
      Thread.current[:local] = nil
    end
  end

  # --- its end ---

  def test_an_error_is_raised_at_the_end_of_the_thread
    error = assert_raises(Failure) { with_scheduler { Fiber.schedule { sleep(0.001).then { raise Failure, "late" } } } }
    assert_equal "late", error.message
  end

  def test_an_error_before_the_first_wait_does_not_meet_the_caller
    went_on = false
    assert_raises(Failure) { with_scheduler { Fiber.schedule { raise Failure }.then { went_on = true } } }
    assert went_on
  end

  def test_the_first_error_is_raised_and_tells_of_the_others
    error = assert_raises(Failure) do
      with_scheduler { %w[one two three].each { |text| Fiber.schedule { raise Failure, text } } }
    end
    assert_equal ["one", %w[two three]], [error.message, Ringspun.suppressed(error).map(&:message)]
  end

  def test_an_error_is_raised_by_run_once
    assert_equal [Failure, :nothing], with_scheduler { |scheduler|
      Fiber.schedule { raise Failure }
      [error_of { scheduler.run }.class, scheduler.run || :nothing]
    }
  end

  def test_an_error_is_raised_by_close_which_closes_all_the_same
    with_scheduler do |scheduler|
      Fiber.schedule { sleep(0.001).then { raise Failure } }
      assert_raises(Failure) { scheduler.close }
      assert_predicate scheduler, :closed?
      assert_nil Fiber.scheduler
      assert_nil scheduler.close
    end
  end

  def test_the_error_of_the_threads_own_block_cancels_what_it_has_scheduled
    ended = false
    error = assert_raises(Failure) do
      with_scheduler { Fiber.schedule { sleep(0.001).then { ended = true } }.then { raise Failure, "of the block" } }
    end
    assert_equal ["of the block", false], [error.message, ended]
  end

  def test_an_error_inside_ringspun_run_is_reported
    value = nil
    _, printed = capture_io do
      value = Ringspun.run do
        Fiber.schedule { raise Failure, "nobody asked" }
        sleep(0)
        :value
      end
    end
    assert_equal :value, value
    assert_equal 1, printed.scan("nobody asked").size, printed
    assert_match(/ended with an error that nobody joined/, printed)
  end

  def test_what_is_no_standard_error_ends_the_root
    [SystemExit, Interrupt, SecurityError].each do |kind|
      assert_raises(kind) { with_scheduler { Fiber.schedule { sleep(0.001).then { raise kind, "x" } } } }
      assert_raises(kind) { Ringspun.run { Fiber.schedule { sleep(0).then { raise kind, "x" } }.then { sleep } } }
    end
  end

  def test_ringspun_run_waits_for_what_was_scheduled_inside
    order = []
    Ringspun.run { Fiber.schedule { sleep(0.001).then { order << :scheduled } }.then { order << :block } }
    order << :after
    assert_equal %i[block scheduled after], order
  end

  def test_an_error_of_the_run_cancels_what_was_scheduled_inside
    unwound = nil
    assert_raises(Failure) do
      Ringspun.run do
        Fiber.schedule do
          sleep
        rescue Ringspun::Cancelled => e
          unwound = e.class
        end
        raise Failure
      end
    end
    assert_equal Ringspun::Cancelled, unwound
  end

  # --- limits ---

  def test_as_many_as_the_machine_runs
    on_thread do
      Ringspun::Machine.new(strands_max: 4)
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      fibers = Array.new(3) { Fiber.schedule { sleep(0.001) } }
      error = assert_raises(Ringspun::LimitError) { Fiber.schedule { flunk } }
      assert_match(/at most 4 strands/, error.message)
      Fiber.scheduler.run
      refute fibers.any?(&:alive?)
      assert_equal(:again, Fiber.schedule { @again = :again }.then { @again })
      Fiber.set_scheduler(nil)
    end
  end

  # --- whose scheduler ---

  def test_ringspun_run_keeps_the_programs_own
    scheduler = Ringspun::Scheduler.new
    with_scheduler(scheduler) do
      Fiber.schedule {} # so that the machine is the scheduler's
      assert_equal(scheduler, Ringspun.run { Fiber.schedule { sleep(0) }.then { Fiber.scheduler } })
      assert_equal scheduler, Fiber.scheduler
      refute_predicate scheduler, :closed?
    end
    assert_predicate scheduler, :closed?
  end

  def test_ringspun_run_beside_another_scheduler
    on_thread do
      Fiber.set_scheduler(other_scheduler)
      error = assert_raises(Ringspun::UsageError) { Ringspun.run { flunk } }
      assert_match(/another fiber scheduler/, error.message)
      Fiber.set_scheduler(nil)
      assert_equal(1, Ringspun.run { 1 })
    end
  end

  # Only what CRuby asks of one when it is set.
  def other_scheduler
    Object.new.tap do |other|
      %i[block unblock io_wait kernel_sleep].each { |hook| other.define_singleton_method(hook) { |*| nil } }
    end
  end

  def test_ringspun_run_leaves_none_behind
    assert_nil(Fiber.scheduler.tap { Ringspun.run { Fiber.schedule {} } } || Fiber.scheduler)
    assert_raises(Failure) { Ringspun.run { raise Failure } }
    assert_nil Fiber.scheduler
    assert_raises(RuntimeError) { Fiber.schedule {} }
  end

  def test_one_thread_after_the_other
    scheduler = Ringspun::Scheduler.new
    3.times do
      ended = false
      with_scheduler(scheduler) { Fiber.schedule { sleep(0.001).then { ended = true } } }
      assert ended
      assert_predicate scheduler, :closed?
    end
  end

  def test_one_that_is_set_again
    ended = 0
    with_scheduler do |scheduler|
      3.times do
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { sleep(0.001).then { ended += 1 } }
        Fiber.set_scheduler(nil)
      end
    end
    assert_equal 3, ended
  end

  def test_two_at_once_take_turns
    one, two = Array.new(2) { Ringspun::Scheduler.new }
    ended = []
    with_scheduler(one) do
      Fiber.schedule { sleep(0.001).then { ended << :one } }
      Fiber.set_scheduler(two)
      assert_equal [:one], ended
      Fiber.schedule { sleep(0.001).then { ended << :two } }
    end
    assert_equal %i[one two], ended
    assert_equal [true, true], [one, two].map(&:closed?)
  end

  # It does not wait for itself.
  def test_run_by_one_that_it_runs
    assert_both(nil) { Fiber.scheduler.run }
    assert_both([]) { Enumerator.new { |all| Fiber.scheduler.run.then { |nothing| all << nothing if nothing } }.to_a }
  end

  def test_a_second_thread_while_the_first_has_it
    scheduler = Ringspun::Scheduler.new
    started, release = Array.new(2) { Thread::Queue.new }
    first = start_with(scheduler) { Fiber.schedule { (started << true).then { release.pop } } }
    started.pop
    error = on_thread do
      Fiber.set_scheduler(scheduler)
      error_of { Fiber.schedule { flunk } }
    ensure
      error_of { Fiber.set_scheduler(nil) }
    end
    assert_kind_of Ringspun::WrongThreadError, error
    release << :value
    assert_kind_of Fiber, first.value
  end
end
