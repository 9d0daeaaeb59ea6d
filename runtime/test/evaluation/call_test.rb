# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# ConcurrentProc#call: on the caller's own stack.
class EvaluationCallTest < Minitest::Test
  include Evaluations

  def test_runs_now_and_returns_the_result
    ran = false
    assert_equal 3, conproc { |x| (ran = true) && x + 1 }.call(2)
    assert ran
    assert_equal 1, conproc { 1 }[]
    assert_equal 1, conproc { 1 }.()
  end

  def test_raises_its_error
    assert_equal "mine", assert_raises(Failure) { conproc { raise Failure, "mine" }.call }.message
  end

  def test_an_error_as_the_value_is_raised
    error = Failure.new("value")
    assert_same error, error_of { conproc { error }.call }
    assert_same error, error_of { conproc { current && error }.call }
  end

  def test_waits_where_it_must
    before = machine.now
    assert_equal :waited, conproc { wait(0.01) && :waited }.call
    assert_operator machine.now - before, :>=, 0.01
  end

  def test_in_the_fiber_and_strand_of_its_caller
    here = [Fiber.current, machine.running]
    assert_equal here, conproc { [Fiber.current, machine.running] }.call
    assert_equal here, conproc { wait(0).then { [Fiber.current, machine.running] } }.call
  end

  def test_others_run_while_it_waits
    order = []
    conproc { order << :other }.call_and_forget
    conproc { (order << :before).then { wait(0.001) }.then { order << :after } }.call
    assert_equal %i[before other after], order
  end

  def test_one_inside_the_other
    made = conproc { |depth| depth.zero? ? [current] : [current, *made.call(depth - 1)] }
    seen = made.call(20)
    assert_equal 21, seen.uniq(&:object_id).size
    assert seen.all?(&:concluded?)
  end

  def test_current_is_that_of_the_outer_one_again
    outer = conproc do
      mine = current
      inner = conproc { wait(0).then { current } }.call
      [mine, inner, current]
    end
    mine, inner, after = outer.call
    assert_same mine, after
    refute_same mine, inner
  end

  def test_the_result_is_there_for_whoever_has_the_evaluation
    evaluation = nil
    conproc { (evaluation = current) && 5 }.call
    assert_predicate evaluation, :concluded?
    assert_equal 5, evaluation.await_result
  end

  def test_the_error_is_there_for_whoever_has_the_evaluation
    evaluation = nil
    error_of { conproc { (evaluation = current) && raise(Failure, "kept") }.call }
    assert_failed Failure, evaluation, /kept/
  end

  def test_others_wait_for_it
    evaluation = nil
    waiter = conproc { evaluation.await_result { |result| [:seen, result] } }
    other = nil
    value = conproc do
      evaluation = current
      other = waiter.call_detached
      wait(0.001).then { 7 }
    end.call
    assert_equal 7, value
    assert_equal [:seen, 7], other.await_result
  end

  def test_it_cannot_wait_for_itself
    assert_raises(Ringspun::UsageError) { conproc { current.await_result }.call }
    outer = conproc { (mine = current).then { conproc { mine.await_result }.call } }
    assert_raises(Ringspun::UsageError) { outer.call }
  end

  def test_ensure_runs_once
    ensured = []
    conproc { wait(0).then { 1 }.tap { ensured << :body } }.call
    error_of { conproc { begin; raise Failure; ensure; ensured << :ensure; end }.call }
    assert_equal %i[body ensure], ensured
  end

  def test_no_strand_is_made
    conproc { 1 }.call
    before = machine.metrics[:strands_spawned]
    100.times { conproc { wait(0) }.call }
    assert_equal before, machine.metrics[:strands_spawned]
  end

  def test_a_call_that_is_too_deep
    made = conproc { made.call }
    error = nil
    capture_io { error = error_of { made.call } } # nor is there room for error handlers
    assert_kind_of SystemStackError, error
    assert_equal 1, conproc { 1 }.call
    assert_same current, current
  end
end

class SimulatedEvaluationCallTest < EvaluationCallTest
  include OnSimulation
end
