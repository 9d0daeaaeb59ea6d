# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# ConcurrentProc#call_detached and #call_and_forget: in the next pass.
class EvaluationDetachedTest < Minitest::Test
  include Evaluations

  def test_starts_in_the_next_pass
    ran = false
    evaluation = conproc { ran = true }.call_detached
    refute ran
    wait(0)
    assert ran
    assert_equal true, evaluation.await_result
  end

  def test_call_and_forget_starts_in_the_next_pass_and_returns_nil
    ran = false
    assert_nil(conproc { ran = true }.call_and_forget)
    refute ran
    wait(0)
    assert ran
  end

  def test_the_result_and_the_error
    assert_equal 3, conproc { |x| x + 1 }.call_detached(2).await_result
    assert_equal 3, conproc { |x| wait(0).then { x + 1 } }.call_detached(2).await_result
    assert_failed Failure, conproc { raise Failure, "mine" }.call_detached, /mine/
    assert_failed Failure, conproc { wait(0).then { raise Failure, "mine" } }.call_detached, /mine/
    error = Failure.new
    assert_same error, error_of { conproc { error }.call_detached.await_result }
  end

  def test_errors_of_forgotten_ones_reach_only_the_error_handlers
    seen = []
    made = conproc { raise Failure, "forgotten" }
    made.on(:error) { |error| seen << error.message }
    made.call_and_forget
    settle
    assert_equal %w[forgotten], seen
    assert_match(/forgotten/, log.string)
  end

  def test_those_that_do_not_wait_share_a_strand_and_a_fiber
    conproc { 1 }.call_detached.await_result
    before = machine.metrics[:strands_spawned]
    fibers = Array.new(100) { conproc { Fiber.current }.call_detached }.map(&:await_result)
    assert_equal 1, fibers.uniq(&:object_id).size
    assert_equal 1, machine.metrics[:strands_spawned] - before
  end

  def test_those_that_wait_have_strands_of_their_own
    strands = Array.new(20) { conproc { wait(0).then { machine.running } }.call_detached }.map(&:await_result)
    assert_equal 20, strands.uniq(&:object_id).size
  end

  def test_one_that_waits_does_not_hold_up_those_behind_it
    order = []
    gate = waiting
    10.times do |i|
      conproc do
        order << i
        gate.await_result if i.even?
        order << i
      end.call_and_forget
    end
    settle
    end_all gate
    settle
    assert_equal [0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9, 0, 2, 4, 6, 8], order
  end

  # On a machine of its own, which has no handles of strands in store.
  def test_one_that_starts_others_at_once_does_not_hold_up_those_behind_it
    [0, 1, 3].each do |others|
      seen = on_thread do
        behind = nil
        first = conproc do
          others.times { conproc { wait(Float::INFINITY) }.call_nonblock }
          behind.await_result(within: 1)
        end.call_detached
        behind = conproc { :behind }.call_detached
        first.await_result(&:itself)
      end
      assert_equal :behind, seen, "#{others} others"
    end
  end

  def test_one_that_fails_does_not_hold_up_those_behind_it
    evaluations = Array.new(10) { |i| conproc { i.even? ? raise(Failure) : i }.call_detached }
    assert_equal [1, 3, 5, 7, 9], evaluations.reject.with_index { |_, i| i.even? }.map(&:await_result)
  end

  def test_one_that_shows_its_strand_does_not_hold_up_those_behind_it
    strands = Array.new(5) { conproc { machine.running }.call_detached }.map(&:await_result)
    assert_equal 5, strands.uniq(&:object_id).size
  end

  def test_those_that_are_started_meanwhile_run_in_the_next_pass
    order = []
    conproc do
      order << :first
      conproc { order << :third }.call_and_forget
    end.call_and_forget
    conproc { order << :second }.call_and_forget
    wait(0)
    assert_equal %i[first second], order
    wait(0)
    assert_equal %i[first second third], order
  end

  def test_a_caller_that_ends_at_once
    evaluation = nil
    machine.spin { evaluation = conproc { wait(0).then { 5 } }.call_detached }.join
    assert_equal 5, evaluation.await_result
  end

  # Each one that ends is followed by the next in the same strand: what was left for one is not taken by another.
  def test_what_interrupts_the_first_does_not_reach_those_behind_it
    ran = []
    evaluations = Array.new(3) { |i| conproc { ran << i }.call_detached }
    worker = machine.strands.find { |strand| strand.state == :new }
    machine.schedule(worker, Failure.new("meant for one"))
    wait(0)
    assert_equal [Failure, Array, Array], evaluations.map { |evaluation| evaluation.await_result { |result| result.class } }
    assert_equal [1, 2], ran
  end

  def test_a_strand_that_is_terminated_before_it_begins
    ran = []
    evaluations = Array.new(3) { |i| conproc { ran << i }.call_detached }
    machine.terminate(machine.strands.find { |strand| strand.state == :new })
    assert_failed Ringspun::TerminatedError, evaluations.first
    evaluations.drop(1).each(&:await_result)
    assert_equal [1, 2], ran
  end

  def test_machine_close_ends_those_that_wait_and_those_that_have_not_begun
    ran = []
    evaluations = nil
    on_thread do
      first = waiting(ran)
      evaluations = [first, conproc { ran << :never }.call_detached]
    end
    assert_equal [:ensured], ran
    assert evaluations.all?(&:concluded?)
  end
end

class SimulatedEvaluationDetachedTest < EvaluationDetachedTest
  include OnSimulation
end
