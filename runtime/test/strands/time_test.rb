# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Sleeping, yielding, the clock and Machine#periodically. What is about lengths of time runs on virtual time.
class TimeTest < Minitest::Test
  include Strands

  def elapsed_of
    before = machine.now
    yield
    (machine.now - before).round(9)
  end

  # --- sleep ---

  def test_sleep_takes_as_long_as_it_is_told
    simulate do
      assert_equal 0.25, elapsed_of { machine.sleep(0.25) }
      assert_equal 3.0, elapsed_of { machine.sleep(3) }
      assert_equal 0.333333333, elapsed_of { machine.sleep(Rational(1, 3)) }
      assert_equal 86_400.0, elapsed_of { machine.sleep(86_400) }
    end
  end

  def test_sleep_answers_rounded_seconds
    simulate do
      assert_equal [0, 1, 2, 3], [0.4, 1.4, 1.6, 3].map { |seconds| machine.sleep(seconds) }
      assert_equal 0, machine.sleep(0)
    end
  end

  def test_sleep_is_never_short
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    machine.sleep(0.003)
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - before, :>=, 0.003
  end

  def test_sleepers_wake_in_the_order_of_their_times
    woken = []
    simulate do
      strands = [0.3, 0.1, 0.2, 0.1].each_with_index.map { |s, i| machine.spin { machine.sleep(s).then { woken << i } } }
      machine.join(*strands)
    end
    assert_equal [1, 3, 2, 0], woken
  end

  def test_sleep_zero_lets_others_run_once
    ran = false
    strand = machine.spin { ran = true }
    machine.sleep(0)
    assert ran
    strand.join
  end

  def test_sleep_less_than_a_nanosecond
    assert_equal 0, machine.sleep(1e-12)
    assert_equal 0, machine.sleep(-0.0)
  end

  def test_sleep_until_what_has_passed_lets_others_run_once
    [-1, -0.1, Rational(-1, 2), -10**30, -Float::INFINITY].each do |seconds|
      ran = false
      strand = machine.spin { ran = true }
      assert_equal 0, machine.sleep(seconds)
      assert ran, seconds.inspect
      strand.join
    end
  end

  def test_sleep_without_end
    [nil, Float::INFINITY, 10**30, 1e300].each do |forever|
      simulate do
        strand = parked { machine.sleep(forever) }
        machine.sleep(1_000_000_000)
        assert_equal :parked, strand.state
        machine.terminate(strand)
        assert_ends_with Ringspun::TerminatedError, strand
      end
    end
    simulate do
      strand = parked { machine.sleep }
      machine.sleep(1_000_000_000)
      assert_equal :parked, strand.state
      machine.terminate(strand)
      assert_ends_with Ringspun::TerminatedError, strand
    end
  end

  def test_sleep_refuses_what_is_no_length_of_time
    [Float::NAN, "1", :one, [], Object.new, true].each do |value|
      error = assert_raises(Ringspun::UsageError, value.inspect) { machine.sleep(value) }
      assert_match(/sleep: /, error.message)
    end
    assert_raises(ArgumentError) { machine.sleep(1, 2) }
  end

  # --- now ---

  def test_now_is_monotonic
    times = Array.new(1000) { machine.now }
    assert_equal times.sort, times
    assert_kind_of Float, times.first
  end

  def test_now_stands_still_while_a_simulated_strand_computes
    simulate do
      assert_equal(0.0, elapsed_of { 10_000.times { |i| i * i } })
    end
  end

  # --- yield ---

  def test_strands_take_turns_in_order
    seen = []
    strands = %w[a b c].map do |name|
      machine.spin do
        3.times do |turn|
          seen << "#{name}#{turn}"
          machine.yield
        end
      end
    end
    machine.join(*strands)
    assert_equal %w[a0 b0 c0 a1 b1 c1 a2 b2 c2], seen
  end

  def test_yield_runs_every_ready_strand_once
    counts = [0, 0]
    strands = Array.new(2) { |i| machine.spin { 5.times { (counts[i] += 1).then { machine.yield } } } }
    machine.yield
    assert_equal [1, 1], counts
    machine.yield
    assert_equal [2, 2], counts
    machine.join(*strands)
  end

  def test_yield_alone_returns
    assert_nil machine.yield
  end

  def test_a_new_strand_runs_after_those_that_are_ready
    seen = []
    first = machine.spin { seen << :first }
    second = machine.spin { machine.spin { seen << :third }.join }
    machine.spin { seen << :second }.join
    machine.join(first, second)
    assert_equal %i[first second third], seen
  end

  # --- periodically ---

  def ticks(count, interval)
    times = []
    started = machine.now
    machine.periodically(interval) do
      times << (machine.now - started).round(9)
      break if times.size == count

      yield times.size if block_given?
    end
    times
  end

  def test_periodically_does_not_drift
    simulate do
      assert_equal [1.0, 2.0, 3.0, 4.0], ticks(4, 1) { machine.sleep(0.75) }
      assert_equal [0.5, 1.0, 1.5], ticks(3, Rational(1, 2)) { |n| machine.sleep(n * 0.125) }
    end
  end

  def test_periodically_leaves_out_what_it_missed
    simulate do
      assert_equal [1.0, 4.0, 5.0, 6.0], ticks(4, 1) { |number| machine.sleep(2.5) if number == 1 }
    end
  end

  def test_periodically_with_a_run_that_ends_just_when_the_next_is_due
    simulate { assert_equal [1.0, 2.0, 3.0], ticks(3, 1) { machine.sleep(1) } }
  end

  def test_periodically_lets_others_run_even_when_it_is_always_late
    simulate do
      turns = 0
      other = machine.spin { 3.times { (turns += 1).then { machine.yield } } }
      ticks(5, 0.001) { machine.sleep(0.002) }
      assert_equal 3, turns
      other.join
    end
  end

  # The clock stands still for less, and its limit would come after millions of runs, or never.
  def test_periodically_with_less_than_a_nanosecond
    [1e-12, 5e-324, Rational(1, 10**30)].each do |interval|
      simulate do |machine|
        runs = 0
        assert_raises(Ringspun::TimeoutError) do
          machine.timeout(0.000_001) { machine.periodically(interval) { runs += 1 } } # must pass
        end
        assert_includes 500..2000, runs, interval.inspect
      end
    end
  end

  def test_periodically_on_a_clock_that_has_run_for_long
    simulate do |machine|
      machine.sleep(10_000_000)
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.000_1) { machine.periodically(1e-12) {} } } # must pass
    end
  end

  def test_periodically_ends_with_the_value_of_break
    simulate do
      assert_equal 7, machine.periodically(1) { break 7 }
    end
  end

  def test_periodically_passes_errors_on
    simulate do
      assert_raises(StopIteration) { machine.periodically(1) { raise StopIteration } }
    end
  end

  def test_periodically_ends_when_it_is_cancelled
    simulate do
      runs = 0
      strand = machine.spin { machine.periodically(1) { runs += 1 } }
      machine.sleep(2.5)
      machine.terminate(strand)
      assert_ends_with Ringspun::TerminatedError, strand
      machine.sleep(10)
      assert_equal 2, runs
    end
  end

  def test_periodically_refuses_what_is_no_interval
    [0, -1, 0.0, -0.5, Float::NAN, nil, "1", :often].each do |interval|
      error = assert_raises(Ringspun::UsageError, interval.inspect) { machine.periodically(interval) { flunk } }
      assert_match(/positive number/, error.message)
    end
  end
end
