# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Evaluation#await_result, and Ringspun.wait.
class EvaluationAwaitTest < Minitest::Test
  include Evaluations

  TimeoutError = Evaluation::TimeoutError

  def later(value = :result) = conproc { wait(0.001).then { value } }.call_detached

  def test_many_waiters
    evaluation = later
    waiters = Array.new(10) { conproc { evaluation.await_result }.call_detached }
    assert_equal [:result] * 10, waiters.map(&:await_result)
  end

  def test_waiters_go_on_in_the_order_in_which_they_came
    evaluation = later
    order = []
    Array.new(5) { |i| conproc { evaluation.await_result.then { order << i } }.call_detached }.each(&:await_result)
    assert_equal [0, 1, 2, 3, 4], order
  end

  def test_again_and_again
    evaluation = later
    assert_equal [:result] * 3, Array.new(3) { evaluation.await_result }
    failing = conproc { raise Failure, "same" }.call_detached
    assert_same assert_failed(Failure, failing), assert_failed(Failure, failing)
  end

  def test_of_a_concluded_one_it_does_not_wait
    evaluation = later.tap(&:await_result)
    ran = false
    conproc { ran = true }.call_and_forget
    evaluation.await_result
    refute ran
    settle
  end

  def test_a_result_that_is_an_exception_is_raised
    [Failure.new, Exception.new, Interrupt.new("")].each do |error|
      assert_same error, error_of { later(error).await_result }
    end
    assert_same Failure, later(Failure).await_result
  end

  def test_the_value_of_the_block_replaces_the_result
    assert_equal [:seen, :result], later.await_result { |result| [:seen, result] }
    evaluation = later
    assert_nil(evaluation.await_result { nil })
    assert_equal false, evaluation.await_result { false }
    assert_equal :result, evaluation.await_result
  end

  def test_the_block_sees_an_error_and_may_replace_it
    evaluation = conproc { raise Failure, "mine" }.call_detached
    assert_equal "mine", evaluation.await_result(&:message)
    assert_same(evaluation.await_result { |error| [error] }.first, error_of { evaluation.await_result { |error| error } })
  end

  def test_an_error_of_the_block
    assert_raises(ArgumentError) { later.await_result { raise ArgumentError } }
    assert_raises(ArgumentError) { later.await_result { ArgumentError.new } }
  end

  def test_a_break_out_of_the_block
    assert_equal 5, later.await_result { break 5 }
  end

  # --- with a limit ---

  def test_a_timeout_raises
    evaluation = waiting
    error = assert_raises(TimeoutError) { evaluation.await_result(within: 0.001) }
    assert_equal "evaluation timed out after 0.001 second(s)", error.message
    refute_predicate evaluation, :concluded?
    end_all evaluation
  end

  def test_the_message_says_the_limit_as_it_was_given
    evaluation = waiting
    [0, -1, 0.0, Rational(1, 1000)].each do |within|
      error = assert_raises(TimeoutError) { evaluation.await_result(within: within) }
      assert_equal "evaluation timed out after #{within} second(s)", error.message
    end
    end_all evaluation
  end

  def test_a_timeout_result
    evaluation = waiting
    [:late, nil, false].each do |result|
      given = evaluation.await_result(within: 0.001, timeout_result: result)
      assert result.nil? ? given.nil? : given == result
    end
    end_all evaluation
  end

  def test_a_timeout_result_that_is_an_exception_is_raised
    evaluation = waiting
    error = Failure.new
    assert_same error, error_of { evaluation.await_result(within: 0, timeout_result: error) }
    end_all evaluation
  end

  def test_the_block_sees_the_timeout
    evaluation = waiting
    assert_instance_of TimeoutError, evaluation.await_result(within: 0) { |result| break result }
    assert_equal [:late], evaluation.await_result(within: 0, timeout_result: :late) { |result| [result] }
    assert_raises(TimeoutError) { evaluation.await_result(within: 0) { |result| result } }
    end_all evaluation
  end

  def test_the_block_does_not_see_what_cancels_the_caller
    seen = []
    target = waiting
    waiter = begun { target.await_result { |result| seen << result } }
    waiter.conclude_to(:over)
    assert_empty seen
    end_all target
  end

  def test_in_time
    assert_equal :result, later.await_result(within: 10)
    assert_equal :result, later.await_result(within: Float::INFINITY)
    assert_equal :result, later.await_result(within: nil)
    assert_equal 0, machine.metrics[:timers]
  end

  def test_a_concluded_one_is_in_time_whatever_the_limit
    evaluation = later.tap(&:await_result)
    assert_equal :result, evaluation.await_result(within: 0)
    assert_equal :result, evaluation.await_result(within: -1, timeout_result: :late)
  end

  # Both are due when the machine comes to look, and time passes in order: what was to come first did.
  def test_a_result_that_was_due_before_the_limit
    [->(_) { 1 }, ->(evaluation) { evaluation.conclude_to(1) }].each do |how|
      evaluation = begun { wait(0.001).then { how.call(current) } }
      conproc { sleep(0.01) }.call_detached # this thread, and not only this strand
      assert_equal 1, evaluation.await_result(within: 0.001, timeout_result: :late)
    end
  end

  def test_a_limit_that_was_due_before_the_result
    evaluation = begun { Ringspun.await_resume! }
    waiter = begun { evaluation.await_result(within: 0.001, timeout_result: :late) }
    concluder = begun { wait(0.001).then { evaluation.conclude_to(1) } }
    sleep(0.01)
    assert_equal %i[late concluded], [waiter, concluder].map(&:await_result)
  end

  def test_a_waiter_that_timed_out_is_not_woken
    evaluation = waiting
    waiter = begun do
      error_of { evaluation.await_result(within: 0.001) }
      began = machine.now
      wait(0.005)
      machine.now - began
    end
    wait(0.002)
    end_all evaluation
    assert_operator waiter.await_result, :>=, 0.005
  end

  # What a class of evaluations raises it may say itself.
  class Special < Ringspun::Evaluation
    class Error < Ringspun::Evaluation::Error
    end

    class TimeoutError < Ringspun::Evaluation::TimeoutError
    end
  end

  def test_the_timeout_error_of_the_one_that_waits
    target = waiting
    assert_instance_of Special::TimeoutError, error_of { conproc(Special) { target.await_result(within: 0) }.call }
    assert_instance_of Special::TimeoutError, error_of { conproc(Special) { Ringspun.await_resume!(within: 0) }.call }
    assert_instance_of TimeoutError, error_of { conproc { target.await_result(within: 0) }.call }
    end_all target
  end

  def test_the_error_of_its_class
    evaluation = conproc(Special) { 1 }.call_detached
    evaluation.await_result
    assert_instance_of Special::Error, error_of { evaluation.conclude_to(1) }
    assert_instance_of Special::Error, error_of { evaluation.resume! }
    assert_operator TimeoutError, :<, Evaluation::Error
    assert_operator Evaluation::Error, :<, Ringspun::Error
    refute_operator Cancelled, :<, StandardError
  end

  def test_wrong_arguments
    evaluation = waiting
    assert_raises(ArgumentError) { evaluation.await_result(without: 1) }
    assert_raises(Ringspun::UsageError) { evaluation.await_result(1) }
    assert_raises(Ringspun::UsageError, TypeError) { evaluation.await_result(within: "1") }
    assert_raises(Ringspun::UsageError, TypeError) { evaluation.await_result(within: Object.new) }
    assert_raises(Ringspun::UsageError) { current.await_result }
    end_all evaluation
  end

  def test_when_nothing_can_conclude_it
    error = assert_raises(Ringspun::DeadlockError) { simulate { conproc { Ringspun.await_resume! }.call_detached.await_result } }
    assert_match(/an evaluation/, error.message)
  end
end

# Ringspun.wait.
class EvaluationWaitTest < Minitest::Test
  include Evaluations

  def test_returns_true_after_that_many_seconds
    [0.001, Rational(1, 1000), 0.002r].each do |seconds|
      before = machine.now
      assert_equal true, wait(seconds)
      assert_operator (machine.now - before).round(9), :>=, seconds
    end
  end

  def test_no_time_and_less_is_the_next_turn
    [0, 0.0, -1, -0.5, Rational(0, 1), -Float::INFINITY].each do |seconds|
      ran = false
      conproc { ran = true }.call_and_forget
      assert_equal true, wait(seconds)
      assert ran
    end
  end

  def test_for_ever
    ensured = []
    evaluation = waiting(ensured)
    wait(0.001)
    refute_predicate evaluation, :concluded?
    evaluation.conclude_to(1)
    assert_equal [:ensured], ensured
  end

  def test_anything_else_is_a_type_error
    [nil, "1", :one, Object.new].each { |wrong| assert_raises(TypeError) { wait(wrong) } }
    assert_raises(Ringspun::UsageError, TypeError, FloatDomainError, ArgumentError) { wait(Float::NAN) }
  end
end

class SimulatedEvaluationAwaitTest < EvaluationAwaitTest
  include OnSimulation
end

class SimulatedEvaluationWaitTest < EvaluationWaitTest
  include OnSimulation

  # On virtual time, which stands still while they begin.
  def test_in_order_of_time_and_first_come_first_served_on_ties
    order = []
    waits = [3, 1, 2, 1, 3].map.with_index { |times, i| conproc { wait(times * 0.03).then { order << i } }.call_detached }
    waits.each(&:await_result)
    assert_equal [1, 3, 2, 0, 4], order
  end
end
