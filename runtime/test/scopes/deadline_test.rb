# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Deadlines of scopes and Machine#timeout, on virtual time.
class DeadlineTest < Minitest::Test
  include Strands

  Timeout = Ringspun::TimeoutError

  def scope(...) = machine.scope(...)

  def assert_takes(seconds)
    before = machine.now
    value = yield
    assert_in_delta seconds, machine.now - before, 1e-6
    value
  end

  # --- a scope's deadline ---

  def test_the_deadline_cuts_the_block_short
    simulate do
      assert_takes(2) do
        error = assert_raises(Timeout) { scope(deadline: 2) { machine.sleep(10) } }
        assert_equal "the scope's deadline (2 s) has passed", error.message
      end
      machine.sleep(10)
    end
  end

  def test_the_message_tells_the_deadline_that_stood_last
    simulate do
      [[->(inside) { inside.deadline = 2 }, "2"], [->(inside) { inside.extend_deadline(1.5) }, "2.5"]].each do |change, told|
        error = assert_raises(Timeout) do
          scope(deadline: 1) do |inside|
            change.call(inside)
            machine.sleep
          end
        end
        assert_equal "the scope's deadline (#{told} s) has passed", error.message
      end
    end
  end

  def test_the_deadline_cuts_strands_short
    simulate do
      seen = []
      assert_takes(1.5) do
        assert_raises(Timeout) do
          scope(deadline: 1.5) do |inside|
            inside.spin do
              machine.sleep
            ensure
              seen << :unwound
            end
            :block_ended_long_ago
          end
        end
      end
      assert_equal [:unwound], seen
    end
  end

  def test_a_deadline_that_is_met
    simulate do
      assert_equal 5, scope(deadline: 2) { |inside| inside.spin { machine.sleep(1) }.join.then { 5 } }
      assert_takes(10) { machine.sleep(10) }
      assert_equal 0, machine.metrics[:timers]
    end
  end

  def test_a_deadline_that_passes_without_cutting_anything_short
    simulate do
      handle = nil
      value = scope(deadline: 1) do |inside|
        handle = inside
        Ringspun.shield { machine.sleep(5) }
        :all_done
      end
      assert_equal :all_done, value
      assert_predicate handle, :cancelled?
    end
  end

  def test_no_wait_no_deadline
    assert_equal(5, scope(deadline: 0) { 5 })
    assert_raises(Timeout) { scope(deadline: 0) { machine.yield } }
  end

  def test_a_deadline_of_nil
    simulate { assert_equal 5, scope(deadline: nil) { machine.sleep(1000).then { 5 } } }
  end

  def test_deadlines_that_are_none
    [Float::NAN, "1", :soon].each do |value|
      assert_raises(Ringspun::UsageError) { scope(deadline: value) { flunk } }
      assert_raises(Ringspun::UsageError) { machine.timeout(value) { flunk } }
    end
    assert_equal 5, scope(deadline: Float::INFINITY) { machine.yield || 5 }
    assert_equal 5, machine.timeout(10**30) { machine.yield || 5 }
  end

  def test_an_error_goes_before_the_deadline
    simulate do
      error = assert_raises(Failure) do
        scope(deadline: 1) do
          machine.sleep(5)
        ensure
          raise Failure
        end
      end
      assert_empty Ringspun.suppressed(error)
    end
  end

  def test_the_block_rescues_its_cancellation
    simulate do
      assert_equal :rescued, scope(deadline: 1) { error_of { machine.sleep }.then { :rescued } }
    end
  end

  def test_nested_deadlines_the_inner_first
    simulate do
      assert_takes(3) do
        scope(deadline: 5) do
          assert_raises(Timeout) { scope(deadline: 1) { machine.sleep(9) } }
          machine.sleep(2)
        end
      end
    end
  end

  def test_nested_deadlines_the_outer_first
    simulate do
      seen = []
      assert_takes(1) do
        assert_raises(Timeout) do
          scope(deadline: 1) do
            scope(deadline: 5) { machine.sleep(9) }
          rescue Timeout
            seen << :wrong
          end
        end
      end
      assert_empty seen
    end
  end

  def test_nested_deadlines_at_the_same_time
    simulate do
      error = assert_raises(Timeout) { scope(deadline: 1) { scope(deadline: 1) { machine.sleep } } }
      assert_equal 0, error.backtrace.grep(/rescue/).size
      assert_takes(1) { machine.sleep(1) }
    end
  end

  def test_a_deadline_inside_a_shield_that_outlives_the_cancellation
    simulate do
      strand = machine.spin { Ringspun.shield(deadline: 5) { machine.sleep } }
      machine.sleep(1)
      machine.terminate(strand)
      assert_takes(4) { assert_ends_with Timeout, strand }
    end
  end

  # --- moving it ---

  def test_remaining
    simulate do
      scope(deadline: 5) do |inside|
        assert_in_delta 5.0, inside.remaining, 1e-6
        machine.sleep(2)
        assert_in_delta 3.0, inside.remaining, 1e-6
        assert_kind_of Float, inside.remaining
      end
      scope do |inside|
        assert_nil inside.remaining
      end
    end
  end

  def test_remaining_after_it_has_passed
    simulate do
      assert_raises(Timeout) do
        scope(deadline: 1) do |inside|
          machine.sleep(5)
        ensure
          assert_equal 0.0, inside.remaining
        end
      end
    end
  end

  def test_the_deadline_can_be_set_later
    simulate do
      assert_takes(3) do
        assert_raises(Timeout) do
          scope do |inside|
            machine.sleep(1)
            inside.deadline = 2
            machine.sleep
          end
        end
      end
    end
  end

  def test_the_deadline_can_be_brought_forward_and_put_off
    simulate do
      assert_takes(1) { assert_raises(Timeout) { scope(deadline: 9) { |inside| (inside.deadline = 1) && machine.sleep } } }
      assert_takes(9) { assert_raises(Timeout) { scope(deadline: 1) { |inside| (inside.deadline = 9) && machine.sleep } } }
      assert_takes(6) do
        assert_raises(Timeout) { scope(deadline: 1) { |inside| inside.extend_deadline(5).then { machine.sleep } } }
      end
    end
  end

  def test_moving_it_while_others_wait_inside
    simulate do
      assert_takes(4) do
        assert_raises(Timeout) do
          scope(deadline: 2) do |inside|
            inside.spin { machine.sleep }
            machine.sleep(1)
            inside.extend_deadline(2)
          end
        end
      end
    end
  end

  def test_moving_it_from_a_strand_and_from_outside
    simulate do
      handle = nil
      strand = machine.spin {
        scope(deadline: 2) { |inside|
          (handle = inside).spin {
            inside.extend_deadline(1)
          } && machine.sleep
        }
      }
      machine.sleep(1)
      handle.extend_deadline(1)
      assert_takes(3) { assert_ends_with Timeout, strand }
    end
  end

  def test_taking_it_away
    simulate do
      scope(deadline: 1) do |inside|
        machine.sleep(0.5)
        inside.deadline = nil
        assert_nil inside.remaining
        machine.sleep(5)
        assert_equal 0, machine.metrics[:timers]
      end
    end
  end

  def test_a_deadline_of_zero_seconds_from_now
    simulate do
      assert_takes(0) { assert_raises(Timeout) { scope { |inside| (inside.deadline = 0) && machine.sleep(5) } } }
      assert_takes(1) do
        assert_raises(Timeout) { scope { |inside| machine.sleep(1).then { (inside.deadline = 0) && machine.sleep(5) } } }
      end
    end
  end

  def test_a_deadline_that_has_passed_cannot_be_moved
    simulate do
      assert_raises(Timeout) do
        scope(deadline: 1) do |inside|
          machine.sleep(5)
        ensure
          assert_raises(Ringspun::UsageError) { inside.deadline = 5 }
          assert_raises(Ringspun::UsageError) { inside.extend_deadline(5) }
        end
      end
    end
  end

  def test_there_is_no_deadline_to_extend
    scope do |inside|
      error = assert_raises(Ringspun::UsageError) { inside.extend_deadline(1) }
      assert_match(/deadline=/, error.message)
    end
  end

  # What is done without a wait is done.
  def test_a_deadline_that_has_passed
    [-1, -0.25, -Float::INFINITY].each do |passed|
      assert_equal [1, 2], [scope(deadline: passed) { 1 }, machine.timeout(passed) { 2 }]
      assert_raises(Ringspun::TimeoutError) { scope(deadline: passed) { machine.sleep(1) } }
      assert_raises(Ringspun::TimeoutError) { machine.timeout(passed) { machine.sleep(1) } }
      assert_raises(Ringspun::TimeoutError) { scope { |inside| (inside.deadline = passed) && machine.sleep(1) } }
    end
  end

  def test_moving_it_by_what_is_no_length_of_time
    scope(deadline: 5) do |inside|
      [-1, Float::NAN, "1", nil].each { |value| assert_raises(Ringspun::UsageError) { inside.extend_deadline(value) } }
      [Float::NAN, "1"].each { |value| assert_raises(Ringspun::UsageError) { inside.deadline = value } }
      inside.extend_deadline(Float::INFINITY)
      assert_nil inside.remaining
    end
  end

  # --- Machine#timeout ---

  def test_timeout
    simulate do
      assert_equal 5, machine.timeout(2) { machine.sleep(1).then { 5 } }
      assert_takes(2) do
        assert_equal "timed out after 2 s", assert_raises(Timeout) { machine.timeout(2) { machine.sleep } }.message
      end
      assert_takes(3) { machine.sleep(3) }
      assert_equal 0, machine.metrics[:timers]
    end
  end

  def test_timeout_of_nothing
    assert_equal(5, machine.timeout(0) { 5 })
    assert_raises(Timeout) { machine.timeout(0) { machine.yield } }
    assert_raises(Timeout) { machine.timeout(0) { machine.sleep(0) } }
    simulate { assert_equal 5, machine.timeout(nil) { machine.sleep(1000).then { 5 } } }
  end

  def test_a_timeout_that_does_not_fire_makes_no_system_call
    machine.timeout(1) { 1 }
    before = machine.metrics[:system_calls]
    100.times { machine.timeout(1) { machine.spin {}.join } }
    assert_equal before, machine.metrics[:system_calls]
  end

  def test_the_inner_timeout_fires
    simulate do
      assert_takes(1) do
        value = machine.timeout(5) do
          machine.timeout(1) { machine.sleep }
        rescue Timeout => error
          error.message
        end
        assert_equal "timed out after 1 s", value
      end
    end
  end

  def test_the_outer_timeout_fires
    simulate do
      error = assert_raises(Timeout) do
        machine.timeout(1) do
          machine.timeout(5) { machine.sleep }
        rescue Timeout
          flunk "raised by the wrong block"
        end
      end
      assert_equal "timed out after 1 s", error.message
    end
  end

  def test_both_timeouts_fire_at_once
    simulate do
      inner_raised = false
      error = assert_raises(Timeout) do
        machine.timeout(1) do
          machine.timeout(1) { machine.sleep }
        rescue Timeout
          inner_raised = true
          raise
        end
      end
      refute inner_raised, "the outer one cancels what the inner one is in"
      assert_equal "timed out after 1 s", error.message
    end
  end

  def test_a_timeout_is_never_raised_outside_of_its_block
    simulate do
      100.times do |i|
        error_of { machine.timeout(1) { machine.sleep(0.99 + i * 0.0002) } }
        assert_takes(0.5) { machine.sleep(0.5) }
      end
    end
  end

  def test_a_timeout_does_not_shorten_the_next_sleep
    2.times do
      error_of { machine.timeout(0.001) { machine.sleep } }
      before = machine.now
      machine.sleep(0.005)
      assert_operator machine.now - before, :>=, 0.005
    end
  end

  def test_waits_in_an_ensure_block_are_refused_too
    simulate do
      refused = nil
      assert_raises(Timeout) do
        machine.timeout(1) do
          machine.sleep
        ensure
          refused = error_of { machine.sleep(1) }
        end
      end
      assert_instance_of Ringspun::Cancelled, refused
    end
  end

  def test_an_error_that_the_block_makes_of_it
    simulate do
      assert_raises(Failure) do
        machine.timeout(1) do
          machine.sleep
        rescue Ringspun::Cancelled
          raise Failure
        end
      end
    end
  end

  def test_a_block_that_takes_no_notice_has_a_value
    simulate { assert_equal 5, machine.timeout(1) { error_of { machine.sleep }.then { 5 } } }
  end

  def test_a_timeout_reaches_into_scopes_and_their_strands
    simulate do
      seen = []
      assert_raises(Timeout) do
        machine.timeout(1) do
          scope do |inside|
            inside.spin do
              machine.sleep
            ensure
              seen << :strand
            end
          end
        end
      end
      assert_equal [:strand], seen
    end
  end

  def test_a_timeout_does_not_reach_strands_of_the_machine
    simulate do
      strand = nil
      assert_raises(Timeout) { machine.timeout(1) { (strand = machine.spin { machine.sleep(5) || :ended }).join } }
      assert_equal :parked, strand.state
      assert_equal 5, strand.await
    end
  end

  def test_terminate_inside_a_timeout_is_no_timeout
    simulate do
      seen = nil
      strand = machine.spin { machine.timeout(5) { machine.sleep } }
      machine.sleep(1)
      machine.terminate(strand)
      assert_ends_with Ringspun::TerminatedError, strand
      assert_nil seen
    end
  end

  def test_a_timeout_that_fires_after_a_cancellation
    simulate do
      caught = nil
      strand = machine.spin do
        machine.timeout(2) do
          machine.sleep
        ensure
          Ringspun.shield { machine.sleep(5) }
        end
      rescue Timeout => caught
        flunk
      end
      machine.sleep(1)
      machine.terminate(strand)
      assert_ends_with Ringspun::TerminatedError, strand
      assert_nil caught
    end
  end

  # --- the deadline and what was waited for come at once ---

  # The value was handed over and the time is over, both before the strand runs again: it has the value.
  def test_a_value_that_came_before_the_time_was_over
    queue = Ringspun::Queue.new
    strand = machine.spin { machine.timeout(1) { queue.pop } }
    until_parked(strand)
    queue.push(:item)
    sleep(1) # the whole thread
    assert_equal :item, strand.await
  end

  # The next wait inside is refused, the value stays with its strand.
  def test_a_value_that_came_before_the_time_was_over_and_another_wait
    queue = Ringspun::Queue.new
    got = nil
    strand = machine.spin do
      machine.timeout(1) do
        got = queue.pop
        machine.sleep(0.000_1)
      end
    end
    until_parked(strand)
    queue.push(:item)
    sleep(1)
    assert_ends_with Timeout, strand
    assert_equal :item, got
  end

  # The time is over, and only then is something pushed: it stays in the queue or was handed over, and is never lost.
  def test_a_value_that_comes_when_the_time_is_over
    20.times do
      queue = Ringspun::Queue.new
      strand = machine.spin { machine.timeout(0.000_2) { queue.pop } }
      yield_until { strand.state != :new }
      sleep(0.000_4)
      machine.yield
      queue.push(:item)
      error = error_of { strand.join }
      assert_equal error ? 1 : 0, queue.size
      assert_equal :item, strand.await unless error
    end
  end

  def test_a_mutex_that_is_handed_over_when_the_time_is_over
    20.times do
      mutex = Ringspun::Mutex.new.lock
      strand = machine.spin { machine.timeout(0.000_2) { mutex.synchronize { :held } } }
      yield_until { strand.state != :new }
      sleep(0.000_4)
      mutex.unlock
      error_of { strand.join }
      refute_predicate mutex, :locked?
    end
  end
end
