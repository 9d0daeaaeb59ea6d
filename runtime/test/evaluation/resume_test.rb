# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Ringspun.await_resume! and Evaluation#resume!.
class EvaluationResumeTest < Minitest::Test
  include Evaluations

  def sleeper(...) = begun { Ringspun.await_resume!(...) }

  def assert_refused(message, evaluation)
    assert_equal message, assert_raises(Evaluation::Error) { evaluation.resume! }.message
  end

  def test_with_a_value
    evaluation = sleeper
    assert_predicate evaluation, :waiting?
    assert_equal :resumed, evaluation.resume!(5)
    assert_equal 5, evaluation.await_result
  end

  def test_without_one
    evaluation = sleeper
    evaluation.resume!
    assert_nil evaluation.await_result
  end

  def test_an_error_is_a_value_as_any_other
    error = Failure.new
    evaluation = begun { [Ringspun.await_resume!] }
    evaluation.resume!(error)
    assert_equal [error], evaluation.await_result
  end

  def test_goes_on_in_turn
    order = []
    evaluation = begun { Ringspun.await_resume!.then { order << :resumed } }
    conproc { order << :before }.call_and_forget
    evaluation.resume!
    conproc { order << :after }.call_and_forget
    order << :caller
    settle
    assert_equal %i[caller before resumed after], order
  end

  def test_not_waiting
    done = conproc { 1 }.call_detached
    assert_refused "not waiting", done
    done.await_result
    assert_refused "not waiting", done
    assert_refused "not waiting", current
    refute_predicate done, :waiting?
    refute_predicate current, :waiting?
  end

  # As in the gem: its turn comes in any case, and until then it waits.
  def test_one_that_waits_for_its_next_turn
    [0, -1, 0.0].each do |seconds|
      evaluation = conproc { wait(seconds) }.call_nonblock
      assert_predicate evaluation, :waiting?
      assert_equal :resumed, evaluation.resume!(2)
      refute_predicate evaluation, :waiting?
      assert_refused "already scheduled", evaluation
      assert_equal 2, evaluation.await_result
    end
  end

  def test_the_value_of_one_turn_is_not_that_of_the_next
    seen = []
    evaluation = conproc { 3.times { seen << wait(0) } }.call_nonblock
    evaluation.resume!(:first)
    evaluation.await_result
    assert_equal [:first, true, true], seen
  end

  def test_a_resumed_turn_that_is_concluded
    seen = []
    evaluation = conproc do
      wait(0)
    ensure
      seen << wait(0)
    end.call_nonblock
    evaluation.resume!(:stale)
    evaluation.conclude_to(1)
    assert_equal [true], seen
  end

  # Nobody can tell those from what goes on by itself.
  def test_turns_that_are_none_of_an_evaluations_waits
    { yield: -> { machine.yield }, sleep: -> { machine.sleep(0) } }.each do |name, waits|
      evaluation = conproc(&waits).call_nonblock
      refute_predicate evaluation, :waiting?, name
      assert_refused "not waiting", evaluation
      evaluation.await_result
    end
  end

  def test_already_scheduled
    evaluation = sleeper
    evaluation.resume!(1)
    assert_refused "already scheduled", evaluation
    assert_equal 1, evaluation.await_result
  end

  def test_already_scheduled_by_what_it_waits_for
    target = waiting
    evaluation = begun { target.await_result }
    target.conclude_to(1)
    assert_refused "already scheduled", evaluation
    assert_equal 1, evaluation.await_result
  end

  def test_one_that_was_concluded
    evaluation = sleeper
    evaluation.conclude_to(1)
    assert_refused "not waiting", evaluation
  end

  # It goes on, and so do its waits.
  def test_one_that_has_concluded_itself
    seen = []
    evaluation = begun do
      current.conclude_to(1)
      2.times { seen << Ringspun.await_resume! }
    end
    2.times do |i|
      assert_predicate evaluation, :waiting?
      evaluation.resume!(i)
      refute_predicate evaluation, :waiting?
      assert_refused "already scheduled", evaluation
      wait(0)
    end
    assert_equal [1, [0, 1]], [evaluation.await_result, seen]
    assert_refused "not waiting", evaluation
  end

  def test_one_that_unwinds
    seen = []
    evaluation = begun do
      Ringspun.await_resume!
    ensure
      seen << Ringspun.await_resume!
    end
    resumer = conproc { evaluation.waiting? && evaluation.resume!(5) }.call_detached
    evaluation.conclude_to(1)
    assert_equal [:resumed, [5]], [resumer.await_result, seen]
    assert_refused "not waiting", evaluation
  end

  def test_one_that_was_resumed_is_concluded_before_it_goes_on
    went_on = false
    evaluation = begun { Ringspun.await_resume!.then { went_on = true } }
    evaluation.resume!(1)
    evaluation.conclude_to(2)
    assert_equal 2, evaluation.await_result
    refute went_on
  end

  def test_a_resume_that_was_cancelled_does_not_end_the_next_wait
    seen = []
    evaluation = begun do
      Ringspun.await_resume!
    ensure
      seen << wait(0.001)
    end
    evaluation.resume!(:stale)
    evaluation.conclude_to(2)
    assert_equal [true], seen
  end

  def test_that_of_a_strand
    mine = current
    conproc { mine.resume!(5) }.call_and_forget
    assert_equal 5, Ringspun.await_resume!
    assert_same mine, current
    strands = nil
    strand = machine.spin { (strands = current).then { Ringspun.await_resume! } }
    until_parked(strand)
    strands.resume!(6)
    assert_equal 6, strand.await
    assert_refused "not waiting", strands
  end

  def test_a_resume_ends_any_wait_of_an_evaluation
    target, other = waiting, waiting
    assert_equal 1, begun { wait(Float::INFINITY) }.tap { |one| one.resume!(1) }.await_result
    assert_equal 2, begun { wait(1) }.tap { |one| one.resume!(2) }.await_result
    assert_equal 3, begun { target.await_result }.tap { |one| one.resume!(3) }.await_result
    assert_equal 4, begun { Ringspun.await_fastest(target, other) }.tap { |one| one.resume!(4) }.await_result
    assert_equal 0, machine.metrics[:timers]
    refute_predicate target, :concluded?
    end_all target, other
  end

  # What is handed over there would be lost.
  def test_a_resume_ends_no_other_wait
    queue = Ringspun::Queue.new
    evaluation = begun { queue.pop }
    assert_refused "not waiting", evaluation
    refute_predicate evaluation, :waiting?
    queue.push(5)
    assert_equal 5, evaluation.await_result
  end

  # --- with a limit ---

  def test_a_timeout
    error = assert_raises(Evaluation::TimeoutError) { Ringspun.await_resume!(within: 0.001) }
    assert_equal "evaluation timed out after 0.001 second(s)", error.message
    assert_equal :late, Ringspun.await_resume!(within: 0.001, timeout_result: :late)
    assert_nil Ringspun.await_resume!(within: 0, timeout_result: nil)
    assert_equal false, Ringspun.await_resume!(within: -1, timeout_result: false)
  end

  def test_in_time
    evaluation = sleeper(within: 10)
    evaluation.resume!(1)
    assert_equal 1, evaluation.await_result
    assert_equal 0, machine.metrics[:timers]
  end

  def test_after_a_timeout_it_waits_no_more
    evaluation = begun do
      Ringspun.await_resume!(within: 0.001, timeout_result: :late)
      machine.sleep(0.005)
      :undisturbed
    end
    wait(0.002)
    assert_refused "not waiting", evaluation
    assert_equal :undisturbed, evaluation.await_result
  end

  def test_again_and_again
    evaluation = begun { Array.new(5) { Ringspun.await_resume! } }
    5.times do |i|
      evaluation.resume!(i)
      wait(0)
    end
    assert_equal [0, 1, 2, 3, 4], evaluation.await_result
  end

  def test_wrong_arguments
    assert_raises(ArgumentError) { Ringspun.await_resume!(without: 1) }
    assert_raises(Ringspun::UsageError) { Ringspun.await_resume!(1) }
    assert_raises(ArgumentError) { sleeper.tap { |one| @one = one }.resume!(1, 2) }
    end_all @one
  end
end

# On a clock that stands still while strands run, so that it is known whose time is up in which pass.
class SimulatedEvaluationResumeTest < EvaluationResumeTest
  include OnSimulation

  def faults = false

  # As in the gem: until it goes on, it waits.
  def test_one_whose_time_is_up
    target = waiting
    {
      wait: -> { wait(0.001) },
      await_resume: -> { Ringspun.await_resume!(within: 0.001) },
      await_result: -> { target.await_result(within: 0.001) },
      await_fastest: -> { Ringspun.await_fastest(target, target, within: 0.001) }
    }.each do |name, waits|
      seen = nil
      resumer = begun { wait(0.001).then { seen = [@late.waiting?, @late.resume!(name), @late.waiting?] } }
      @late = begun(&waits)
      resumer.await_result
      assert_equal [[true, :resumed, false], name], [seen, @late.await_result]
      assert_refused "not waiting", @late
    end
    end_all target
  end
end
