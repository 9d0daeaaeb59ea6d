# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# break, next, throw and return out of concurrent procs.
class EvaluationJumpTest < Minitest::Test
  include Evaluations

  # --- next ---

  def test_next_is_the_result
    made = conproc { next 5 }
    assert_equal [5, 5, 5], [made.call, made.call_nonblock, made.call_detached.await_result]
  end

  # --- break: the method that the block was given to has returned ---

  def test_break
    [0, 1].each do |turns|
      made = conproc do
        turns.times { wait(0) }
        break 5
      end
      assert_raises(LocalJumpError) { made.call }
      assert_raises(LocalJumpError) { made.call_nonblock.then { |one| one.await_result } }
      assert_failed LocalJumpError, made.call_detached
    end
  end

  # --- return ---

  def made_here
    made = conproc { return 5 }
    made.__send__(yield).then { |value| value.is_a?(Evaluation) ? value.await_result : value }
    :not_left
  end

  def test_return_out_of_a_call_leaves_the_method
    root = current
    assert_equal 5, made_here { :call }
    assert_same root, current
  end

  def test_return_out_of_a_strand_of_its_own_is_an_error
    assert_raises(LocalJumpError) { made_here { :call_nonblock } }
    assert_raises(LocalJumpError) { made_here { :call_detached } }
  end

  def made_and_left = conproc { return 5 }

  def test_return_when_the_method_has_returned
    assert_raises(LocalJumpError) { made_and_left.call }
    assert_raises(LocalJumpError) { made_and_left.call_nonblock }
    assert_failed LocalJumpError, made_and_left.call_detached
  end

  def test_return_of_a_lambda_is_the_result
    made = conproc(&-> { return 5 })
    assert_equal [5, 5, 5], [made.call, made.call_nonblock, made.call_detached.await_result]
  end

  # --- throw ---

  def test_throw_out_of_a_call
    root = current
    events = []
    evaluation = nil
    caught = catch(:out) do
      conproc do
        evaluation = current
        wait(0)
        throw :out, 5
      ensure
        events << :ensured
      end.call
    end
    assert_equal [5, [:ensured]], [caught, events]
    assert_same root, current
    assert_failed Ringspun::TerminatedError, evaluation
  end

  def test_throw_through_several_calls
    inner = conproc { throw :out, 5 }
    outer = conproc { inner.call }
    assert_equal 5, (catch(:out) { outer.call })
    assert_equal [:before, 5], conproc { [:before, catch(:out) { outer.call }] }.call_detached.await_result
  end

  def test_throw_out_of_a_strand_of_its_own_is_an_error
    catch(:out) do
      assert_raises(UncaughtThrowError) { conproc { throw :out }.call_nonblock }
      assert_failed UncaughtThrowError, conproc { throw :out }.call_detached
      assert_failed UncaughtThrowError, conproc { wait(0).then { throw :out } }.call_detached
    end
  end

  def test_throw_inside
    made = conproc { catch(:in) { wait(0).then { throw :in, 5 } } }
    assert_equal [5, 5], [made.call, made.call_detached.await_result]
  end

  def test_a_throw_in_an_ensure_block_beats_the_cancellation
    inner = nil
    seen = []
    outer = begun do
      seen << catch(:out) do
        conproc do
          inner = current
          wait(Float::INFINITY)
        ensure
          throw :out, :thrown
        end.call
      end
      wait(0.001).then { :end }
    end
    inner.conclude_to(1)
    assert_equal [:thrown], seen
    assert_equal :end, outer.await_result
    assert_equal 1, inner.await_result
  end

  def test_stop_iteration
    assert_equal 5, loop { conproc { raise StopIteration.new.tap { |stop| stop.define_singleton_method(:result) { 5 } } }.call }
    assert_failed StopIteration, conproc { raise StopIteration }.call_detached
  end
end

class SimulatedEvaluationJumpTest < EvaluationJumpTest
  include OnSimulation
end
