# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Kernel#sleep, Thread::Mutex#sleep and the scheduler's yield.
class SchedulerSleepTest < Minitest::Test
  include Scheduled

  def test_shorter_ones_end_first
    lengths = [3, 0, 4, 1, 2]
    sleep_all = proc do
      [].tap { |order| join(*lengths.map { |i| schedule { sleep(i / 100.0).then { order << i } } }) }
    end
    assert_equal lengths.sort, simulate(&sleep_all).value
    assert_both(lengths.sort) { instance_exec(&sleep_all).sort } # where others may make one of them late
  end

  def test_it_lasts_as_long_as_it_is_told
    elapsed = ->(seconds) { simulate { sleep(seconds) }.elapsed }
    assert_in_delta 3600, elapsed.call(3600), 0.01
    assert_in_delta 0.25, elapsed.call(0.25), 0.01
    assert_in_delta 1.5, elapsed.call(Rational(3, 2)), 0.01
  end

  def test_many_at_once_last_as_long_as_one
    elapsed = simulate { join(*Array.new(100) { schedule { sleep(10) } }) }.elapsed
    assert_in_delta 10, elapsed, 0.01
  end

  # Ruby counts them by the clock of the day: a sleep over the end of a second answers 1, however short it is.
  def test_the_answer_is_whole_seconds
    today = -> { Process.clock_gettime(Process::CLOCK_REALTIME_COARSE, :second) } # which time(2) reads
    assert_both([true] * 3) do
      [0, 0.001, Rational(1, 1000)].map do |length|
        before = today.call
        sleep(length).then { |answer| answer.is_a?(Integer) && answer.between?(0, today.call - before) }
      end
    end
  end

  def test_never_too_short
    assert_both(true) do
      before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      sleep(0.01)
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - before >= 0.01
    end
  end

  def test_sleep_0_lets_the_others_run_once
    assert_everywhere([:a, :b, :a, :b, :a, :b]) do
      order = []
      names = %i[a b].map { |name| schedule { 3.times { (order << name).then { sleep(0) } } } }
      join(*names)
      order
    end
  end

  def test_sleep_0_takes_no_time
    assert_in_delta 0, simulate { 100.times { sleep(0) } }.elapsed, 0.001
  end

  def test_thread_pass_in_a_strand
    assert_everywhere(:passed) { Thread.pass || :passed }
  end

  # As outside of a scheduler, to the word.
  def test_what_is_no_time
    [-1, -0.5, "1", :x, Object.new, Float::NAN, Float::INFINITY, 1 << 80, [1]].each do |bad|
      expected = error_of { sleep(bad) }.then { |error| [error.class, error.message] }
      assert_everywhere(expected) { error_of { sleep(bad) }.then { |error| [error.class, error.message] } }
    end
  end

  def test_without_an_end
    assert_everywhere([Failure]) do
      outcome = []
      sleeper = machine.spin { error_of { sleep }.then { |error| outcome << error.class } }
      machine.yield
      machine.schedule(sleeper, Failure.new)
      sleeper.join
      outcome
    end
  end

  def test_sleep_nil_as_outside
    expected = error_of { Thread.new { sleep(nil) }.tap { |thread| until_stopped(thread).wakeup }.join }.class
    assert_both(expected) do
      sleeper = machine.spin { sleep(nil) }
      machine.yield
      machine.schedule(sleeper, Failure.new)
      error_of { sleeper.join }.then { |error| error.is_a?(Failure) ? expected : error.class }
    end
  end

  def test_the_root_of_the_thread_sleeps_as_ever
    order = []
    with_scheduler do
      Fiber.schedule { sleep(0.001).then { order << :strand } }
      sleep(0.002) # blocks the thread
      order << :root
    end
    assert_equal %i[root strand], order
  end

  def test_mutex_sleep_gives_the_lock_away_meanwhile
    assert_everywhere([:taken, true]) do
      mutex = Thread::Mutex.new
      order = []
      Fiber.schedule { sleep(0).then { mutex.synchronize { order << :taken } } }
      mutex.synchronize { mutex.sleep(0.001).then { order << mutex.owned? } }
    end
  end

  def test_mutex_sleep_whose_time_is_up
    assert_everywhere(true) { Thread::Mutex.new.tap(&:lock).then { |mutex| mutex.sleep(0.001).then { mutex.owned? } } }
  end

  # --- calls of the hooks as newer Rubies make them ---

  def test_the_hook_yield
    assert_everywhere(%i[other back]) do
      order = []
      machine.spin { order << :other }
      assert_nil Fiber.scheduler.yield
      order << :back
    end
  end

  def test_the_hook_kernel_sleep
    assert_everywhere([true, true, true]) do
      [Fiber.scheduler.kernel_sleep(0), Fiber.scheduler.kernel_sleep(0.001), Fiber.scheduler.kernel_sleep(Rational(1, 1000))]
    end
    assert_everywhere(ArgumentError) { error_of { Fiber.scheduler.kernel_sleep(1, 2) }.class }
  end

  def test_the_hook_block
    assert_everywhere([false, true, ArgumentError]) do
      scheduler, fiber = Fiber.scheduler, Fiber.current
      timed_out = scheduler.block(:nothing, 0.001)
      Fiber.schedule { sleep(0.001).then { scheduler.unblock(:it, fiber) } }
      [timed_out, scheduler.block(:it), error_of { scheduler.block }.class]
    end
  end
end
