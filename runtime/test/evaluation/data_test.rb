# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# What is stored with an evaluation, and which one is the current one.
class EvaluationDataTest < Minitest::Test
  include Evaluations

  def test_data
    evaluation = conproc { 1 }.call_detached
    assert_nil evaluation[:key]
    assert_equal [false, []], [evaluation.key?(:key), evaluation.keys]
    evaluation[:key] = nil
    evaluation["other"] = 2
    assert_equal [nil, 2, true, [:key, "other"]], [evaluation[:key], evaluation["other"], evaluation.key?(:key), evaluation.keys]
    assert_equal 1, evaluation.await_result
    assert_equal 2, evaluation["other"]
  end

  def test_data_are_of_one_evaluation
    made = conproc { |x| (current[:x] = x).then { wait(0) }.then { [current[:x], current.keys] } }
    assert_equal [[1, [:x]], [2, [:x]]], [1, 2].map { |x| made.call_detached(x) }.map(&:await_result)
    refute current.key?(:x)
    inner = conproc { current[:x] = 1 }
    assert_equal [], conproc { inner.call.then { current.keys } }.call
  end

  def test_data_of_the_root
    current[:mine] = 1
    assert_equal 1, current[:mine]
    assert_nil(conproc { current[:mine] }.call)
    wait(0)
    assert_equal 1, current[:mine]
  end

  def test_a_frozen_one
    evaluation = conproc {}.call_detached.freeze
    assert_raises(FrozenError) { evaluation[:x] = 1 }
    assert_nil evaluation.await_result
  end

  def test_current_is_its_own
    seen = nil
    evaluation = conproc { seen = [current, wait(0).then { current }] }.call_detached
    evaluation.await_result
    assert_equal [evaluation, evaluation], seen
    detached, nonblock = conproc { current }.call_detached, conproc { current }.call_nonblock
    assert_same detached, detached.await_result
    refute_same detached, nonblock
    refute_same current, nonblock
  end

  def test_current_outside_of_any_is_that_of_the_strand
    assert_same current, current
    refute_same current, machine.spin { current }.await
    same = machine.spin { [current, wait(0).then { current }] }.await
    assert_same(*same)
    refute_predicate current, :concluded?
  end

  def test_current_beside_a_call_that_is_suspended
    on_thread do
      inner = nil
      call = conproc { (inner = current).then { Fiber.yield }.then { current } }
      fiber = Fiber.new { call.call }
      root = current
      fiber.resume
      assert_same root, current
      assert_same root, Fiber.new { current }.resume
      refute_same(inner, conproc { current }.call)
      assert_same inner, fiber.resume
    end
  end

  def test_current_in_a_strand_that_an_evaluation_spins_is_not_the_evaluation
    inside = conproc { [current, machine.spin { current }.await] }.call_detached.await_result
    refute_same(*inside)
  end

  def test_current_after_one_that_was_left_by_a_jump
    root = current
    catch(:out) { conproc { throw :out }.call }
    assert_same root, current
    error_of { conproc { raise Failure }.call }
    assert_same root, current
  end
end

class SimulatedEvaluationDataTest < EvaluationDataTest
  include OnSimulation
end
