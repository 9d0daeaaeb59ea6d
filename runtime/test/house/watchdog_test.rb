# frozen_string_literal: true

require "test_helper"
require_relative "../../../bin/support/watchdog"

# rubies: one
# inputs: bin/support

# When a test is to be ended, by seconds that nobody waits for.
class WatchdogTest < Minitest::Test
  include AnyBackend

  def setup
    @now = 100.0
    @cpu = @active = 0.0
    @watchdog = Watchdog.new(Watchdog::Limits.of(nil)) { ProcessTimes::Sample.new(cpu: @cpu, active: @active, waited: 0) if @cpu }
    @watchdog.begin_test("a test", @now)
  end

  # Looks each second, as the seconds go by, until there is a reason.
  #
  # @param cpu [Float] what is used in each of them
  # @param active [Float] for how long the first thread or a child used or wanted a processor in each of them
  # @return [Array(Integer, String)] after how many seconds, and the reason
  def late_after(seconds, cpu: 0.0, active: cpu)
    (1..seconds).each do |second|
      @now += 1
      @cpu += cpu
      @active += active
      reason = @watchdog.look(@now)
      return [second, reason] if reason
    end
    nil
  end

  def test_a_test_that_computes_may_use_its_cpu
    assert_equal [92, "it has used 91 s of CPU"], late_after(600, cpu: 1.0)
  end

  def test_of_several_threads_or_children_each_counts
    assert_equal [47, "it has used 92 s of CPU"], late_after(600, cpu: 2.0)
  end

  def test_a_test_that_does_nothing_waits_for_what_never_comes
    assert_equal [61, "it waits, and has done nothing for 60 s"], late_after(600)
  end

  def test_other_threads_do_not_show_that_a_test_goes_on
    assert_equal 61, late_after(600, cpu: 0.5, active: 0.0)&.first
  end

  def test_a_slow_test_lives
    assert_nil late_after(599, cpu: 0.002)
    assert_match(/it has run for 600 s/, late_after(1)&.last)
  end

  def test_a_test_that_waits_for_a_processor_lives
    assert_nil late_after(599, cpu: 0.0, active: 1.0)
  end

  # One has waited for a processor for minutes, and none of those after it does.
  def test_a_test_whose_children_come_and_go_lives
    assert_nil late_after(300, cpu: 0.0, active: 1.0)
    @active = 0.0
    assert_nil late_after(200, cpu: 0.06)
  end

  def test_a_little_now_and_then_is_not_nothing
    assert_nil(8.times.find { late_after(59) || late_after(1, cpu: 0.06) })
  end

  def test_each_test_has_its_own
    8.times do
      assert_nil late_after(59, cpu: 1.0)
      @watchdog.begin_test("another", @now)
    end
  end

  def test_a_machine_that_stood_still_makes_nobody_late
    @now += 10_000
    assert_nil late_after(10)
  end

  def test_limits_of_who_wants_others
    limits = Watchdog::Limits.of("1000")
    assert_equal [1000.0, 1000.0, 2000.0], limits.deconstruct_keys(nil).values
    assert_equal [5.0, 5.0, 600], Watchdog::Limits.of("5").deconstruct_keys(nil).values
  end

  def test_a_process_that_is_gone_has_nothing_to_be_judged
    @cpu = nil
    assert_nil @watchdog.look(@now + 1000)
    assert_nil ProcessTimes.new(wait_for(spawn("true"), 30).pid).sample
  end

  def test_what_a_process_has_used
    own = ProcessTimes.new(Process.pid)
    before = own.sample
    began = used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) until used - began > 0.2
    after = own.sample
    assert_operator after.cpu - before.cpu, :>=, 0.1
    assert_operator after.active - before.active, :>=, 0.1
  end

  def test_children_count_while_they_live_and_afterwards
    own = ProcessTimes.new(Process.pid)
    before = own.sample
    child = spawn("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill -STOP $$")
    Process.wait(child, Process::WUNTRACED)
    assert_includes own.descendants, child
    living = own.sample.cpu
    assert_operator living - before.cpu, :>=, 0.05
  ensure
    Process.kill(:KILL, child)
    Process.wait(child)
    assert_operator own.sample.cpu, :>=, living - 0.05
  end
end
