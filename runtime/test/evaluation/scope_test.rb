# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Evaluations are strands: scopes, deadlines and timeouts see them like any other.
class EvaluationScopeTest < Minitest::Test
  include Evaluations

  def scope(...) = Ringspun.scope(...)

  # --- Scope#concurrently ---

  def test_the_scope_waits_for_them
    done = []
    scope do |scope|
      3.times { |i| scope.concurrently { wait(0.001).then { done << i } } }
      assert_empty done
    end
    assert_equal [0, 1, 2], done
  end

  def test_their_results
    assert_equal [1, 2], scope { |scope| [1, 2].map { |i| scope.concurrently { wait(0).then { i } } }.map(&:await_result) }
    assert_equal [1, { a: 2 }], scope { |scope| scope.concurrently(1, a: 2) { |x, **y| [x, y] }.await_result }
  end

  def test_an_error_cancels_the_others_and_is_the_scopes
    ensured = []
    evaluations = []
    error = assert_raises(Failure) do
      scope do |scope|
        evaluations << scope.concurrently { begin; wait(Float::INFINITY); ensure; ensured << 1; end }
        evaluations << scope.concurrently { wait(0).then { raise Failure, "first" } }
        wait(Float::INFINITY)
      end
    end
    assert_equal ["first", [1]], [error.message, ensured]
    assert_failed Ringspun::TerminatedError, evaluations[0]
    assert_same error, error_of { evaluations[1].await_result }
  end

  def test_a_cancelled_scope
    evaluation = nil
    ran = false
    scope do |scope|
      evaluation = scope.concurrently { wait(Float::INFINITY) }
      wait(0)
      never = scope.concurrently { ran = true }
      scope.cancel
      assert_raises(Cancelled) { never.await_result }
    end
    assert_failed Ringspun::TerminatedError, evaluation
    refute ran
  end

  TURNS = {
    wait: ->(_) { Ringspun.wait(0) }, sleep: ->(test) { test.machine.sleep(0) }, yield: ->(test) { test.machine.yield }
  }.freeze

  TURNS.each do |name, waits|
    define_method("test_a_scope_that_is_cancelled_while_one_waits_for_its_next_turn_by_#{name}") do
      seen = []
      body = lambda do
        waits.call(self)
        seen << :went_on
      ensure
        seen << :ensured
      end
      scope do |scope|
        scope.concurrently(&body)
        wait(0)
        scope.cancel
      end
      conproc(&body).call_nonblock.then { |one| machine.terminate(machine.strands.last).then { one.await_result { nil } } }
      assert_equal %i[ensured ensured], seen
      shielded = scope { |scope| Ringspun.shield { scope.cancel.then { waits.call(self) }.then { :shielded } } }
      assert_equal :shielded, shielded
    end
  end

  def test_one_of_its_own_that_is_concluded
    ensured = []
    value = scope do |scope|
      evaluation = scope.concurrently { begin; wait(Float::INFINITY); ensure; ensured << 1; end }
      wait(0)
      evaluation.conclude_to(5)
      evaluation.await_result
    end
    assert_equal [5, [1]], [value, ensured]
  end

  def test_one_that_is_concluded_before_it_begins
    assert_equal(5, scope { |scope| scope.concurrently { flunk }.tap { |one| one.conclude_to(5) }.await_result })
  end

  def test_a_scope_that_has_ended
    closed = scope { |scope| scope }
    assert_raises(Ringspun::ClosedError) { closed.concurrently {} }
    assert_raises(Ringspun::UsageError) { scope { |scope| scope.concurrently } }
  end

  def test_exit_in_a_scope
    ensured = []
    error = assert_raises(SystemExit) do
      scope do |scope|
        scope.concurrently { begin; wait(Float::INFINITY); ensure; ensured << 1; end }
        scope.concurrently { wait(0).then { exit 4 } }
        wait(Float::INFINITY)
      end
    end
    assert_equal [4, [1]], [error.status, ensured]
    assert_equal true, wait(0)
  end

  # --- scopes inside of evaluations ---

  def test_concluded_inside_of_a_scope
    ensured = []
    evaluation = begun do
      scope do |scope|
        scope.spin { begin; wait(Float::INFINITY); ensure; ensured << :child; end }
        wait(Float::INFINITY)
      ensure
        ensured << :block
      end
    ensure
      ensured << :outer
    end
    wait(0)
    evaluation.conclude_to(1)
    assert_equal %i[block child outer], ensured
    assert_equal 1, evaluation.await_result
  end

  def test_a_timeout_inside_and_around
    assert_equal :late, conproc { machine.timeout(0.001) { wait(10) } rescue :late }.call
    assert_failed Ringspun::TimeoutError, conproc { machine.timeout(0.001) { wait(10) } }.call_detached
    inner = nil
    assert_raises(Ringspun::TimeoutError) do
      machine.timeout(0.001) { conproc { (inner = current).then { wait(10) } }.call }
    end
    assert_failed Ringspun::TerminatedError, inner
    assert_equal true, wait(0)
  end

  def test_a_deadline_around_a_waiter
    target = waiting
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { target.await_result } }
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { Ringspun.await_fastest(target, target) } }
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { Ringspun.await_resume! } }
    end_all target
  end

  def test_a_timeout_in_the_middle_of_conclude_to
    ensured = []
    target = begun do
      wait(Float::INFINITY)
    ensure
      wait(0.005).then { ensured << 1 }
    end
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { target.conclude_to(5) } }
    assert_empty ensured
    assert_equal 5, target.await_result
    wait(0.01)
    assert_equal [1], ensured
  end

  # --- a run ---

  def test_a_run_waits_for_those_that_it_has_started
    done = []
    Ringspun.run do
      conproc { wait(0.001).then { done << :detached } }.call_detached
      conproc { wait(0.001).then { done << :forgotten } }.call_and_forget
      conproc { wait(0.001).then { done << :nonblock } }.call_nonblock
    end
    assert_equal %i[detached forgotten nonblock], done.sort
  end

  def test_an_error_of_the_run_cancels_them
    ensured = []
    evaluations = nil
    assert_raises(Failure) do
      Ringspun.run do
        evaluations = [waiting(ensured), conproc { ensured << :never }.call_detached]
        raise Failure
      end
    end
    assert_equal [:ensured], ensured
    evaluations.each { |evaluation| assert_failed Ringspun::TerminatedError, evaluation }
  end

  def test_an_error_of_one_does_not_end_the_run
    assert_equal 5, Ringspun.run { conproc { raise Failure }.call_and_forget.then { wait(0.001) }.then { 5 } }
  end

  # --- the same as a strand ---

  def test_machine_terminate
    ensured = []
    evaluation = waiting(ensured)
    machine.terminate((machine.strands - [machine.running]).first)
    assert_failed Ringspun::TerminatedError, evaluation
    assert_equal [:ensured], ensured
  end

  def test_an_error_that_is_scheduled
    evaluation = begun { machine.park }
    machine.schedule((machine.strands - [machine.running]).first, Failure.new("scheduled"))
    assert_failed Failure, evaluation, /scheduled/
  end
end

class SimulatedEvaluationScopeTest < EvaluationScopeTest
  include OnSimulation
end
