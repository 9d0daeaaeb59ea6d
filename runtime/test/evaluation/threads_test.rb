# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Several threads, each with its own machine; an evaluation belongs to one.
class EvaluationThreadsTest < Minitest::Test
  include Evaluations

  def test_each_thread_has_its_own
    values = Array.new(4) do |t|
      Thread.new do
        Array.new(50) { |i| conproc { wait(0.000_1 * (i % 3)).then { [t, i] } }.call_detached }.map(&:await_result)
      ensure
        machine.close
      end
    end.map(&:value)
    assert_equal Array.new(4) { |t| Array.new(50) { |i| [t, i] } }, values
  end

  def test_one_proc_in_several_threads
    made = conproc { |x| (current[:x] = x).then { wait(0.000_1) }.then { current[:x] } }
    values = Array.new(4) { |t| Thread.new { made.call_detached(t).await_result.tap { machine.close } } }.map(&:value)
    assert_equal [0, 1, 2, 3], values
    assert_equal 5, made.call(5)
  end

  def test_current_is_that_of_the_thread
    refute_same current, on_thread { current }
  end

  def test_an_evaluation_belongs_to_its_thread
    evaluation = waiting
    uses = {
      await_result: -> { evaluation.await_result }, conclude_to: -> { evaluation.conclude_to(1) },
      resume!: -> { evaluation.resume! }, waiting?: -> { evaluation.waiting? },
      await_fastest: -> { Ringspun.await_fastest(evaluation, evaluation) }
    }
    uses.each { |name, use| assert_kind_of Ringspun::WrongThreadError, on_thread { error_of(&use) }, name }
    refute on_thread { evaluation.concluded? }
    evaluation.conclude_to(5)
    assert_equal true, (on_thread { evaluation.concluded? })
  end

  def test_an_error_in_one_does_not_reach_the_other
    assert_raises(Failure) { on_thread { conproc { raise Failure }.call_detached.await_result } }
    error = assert_raises(SystemExit) { on_thread { conproc { exit 5 }.call_detached && wait(1) } }
    assert_equal 5, error.status
    assert_equal true, wait(0)
  end

  def test_one_of_a_machine_that_is_closed
    evaluation = on_thread { waiting }
    assert_predicate evaluation, :concluded?
    assert_raises(Ringspun::Error) { evaluation.await_result }
    assert_raises(Ringspun::Error) { evaluation.conclude_to(1) }
  end

  def test_a_thread_inside_an_evaluation
    value = conproc { Thread.new { conproc { wait(0).then { 5 } }.call_detached.await_result.tap { machine.close } }.value }
    assert_equal 5, value.call_detached.await_result
  end
end

class SimulatedEvaluationThreadsTest < EvaluationThreadsTest
  include OnSimulation
end
