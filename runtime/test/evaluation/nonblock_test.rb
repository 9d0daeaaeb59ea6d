# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# ConcurrentProc#call_nonblock: the result, or the evaluation if it had to wait.
class EvaluationNonblockTest < Minitest::Test
  include Evaluations

  def test_the_result_of_one_that_does_not_wait
    assert_equal 3, conproc { |x| x + 1 }.call_nonblock(2)
    assert_nil conproc {}.call_nonblock
  end

  def test_the_error_of_one_that_does_not_wait
    assert_raises(Failure) { conproc { raise Failure }.call_nonblock }
    assert_raises(Failure) { conproc { current && raise(Failure) }.call_nonblock }
    error = Failure.new
    assert_same error, error_of { conproc { error }.call_nonblock }
    assert_same error, error_of { conproc { current && error }.call_nonblock }
  end

  def test_the_evaluation_of_one_that_waits
    order = []
    evaluation = conproc { (order << 1).then { wait(0.001) }.then { order << 3 }.then { :result } }.call_nonblock
    order << 2
    assert_instance_of Evaluation, evaluation
    refute_predicate evaluation, :concluded?
    assert_equal :result, evaluation.await_result
    assert_equal [1, 2, 3], order
  end

  def test_the_evaluation_that_it_has_asked_for_itself
    mine = nil
    evaluation = conproc { (mine = current).then { wait(0) } }.call_nonblock
    assert_same mine, evaluation
    evaluation.await_result
  end

  def test_an_evaluation_as_the_result
    other = begun { 5 }
    assert_same other, conproc { other }.call_nonblock
  end

  def test_the_error_of_one_that_has_waited
    evaluation = conproc { wait(0).then { raise Failure, "late" } }.call_nonblock
    assert_failed Failure, evaluation, /late/
  end

  def test_its_caller_goes_on_before_all_others
    order = []
    3.times { |i| conproc { order << i }.call_and_forget }
    evaluation = conproc { (order << :inside).then { wait(0) } }.call_nonblock
    order << :caller
    evaluation.await_result
    assert_equal [:inside, :caller, 0, 1, 2], order
  end

  def test_in_a_strand_of_its_own
    refute_same machine.running, conproc { machine.running }.call_nonblock
    refute_same Fiber.current, conproc { Fiber.current }.call_nonblock
  end

  def test_one_inside_the_other
    made = conproc { |depth| depth.zero? ? :bottom : made.call_nonblock(depth - 1) }
    assert_equal :bottom, made.call_nonblock(10)
    waits = conproc { |depth| depth.zero? ? wait(0) && :bottom : waits.call_nonblock(depth - 1).await_result }
    assert_equal :bottom, waits.call_nonblock(10).await_result
  end

  def test_concluded_from_inside_before_it_waits
    assert_equal 1, conproc { current.conclude_to(1).then { 2 } }.call_nonblock
    assert_raises(Failure) { conproc { current.conclude_to(Failure.new).then { 2 } }.call_nonblock }
    assert_equal 1, conproc { current.conclude_to(1).then { raise Failure } }.call_nonblock
  end

  def test_concluded_from_inside_and_then_waits
    evaluation = conproc { current.conclude_to(1).then { wait(0) }.then { 2 } }.call_nonblock
    assert_predicate evaluation, :concluded?
    assert_equal 1, evaluation.await_result
    settle
  end

  def test_a_strand_that_ends_is_used_again
    strands = Array.new(10) { conproc { Fiber.current }.call_nonblock }
    assert_equal 1, strands.uniq(&:object_id).size
  end

  def test_when_there_is_room_for_no_more_strands
    on_thread do
      machine = Ringspun::Machine.new(strands_max: 3)
      others = Array.new(2) { conproc { wait(Float::INFINITY) }.call_nonblock }
      assert_raises(Ringspun::LimitError) { conproc { 1 }.call_nonblock }
      assert_equal 1, conproc { 1 }.call
      others.each { |other| other.conclude_to(nil) }
      assert_equal 1, conproc { 1 }.call_nonblock
      assert_equal 1, machine.metrics[:strands_live]
    end
  end
end

class SimulatedEvaluationNonblockTest < EvaluationNonblockTest
  include OnSimulation
end
