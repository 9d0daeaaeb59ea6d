# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# A call in a call_nonblock in a call_detached, and what is left when one of them is concluded.
class EvaluationNestedTest < Minitest::Test
  include Evaluations

  Tower = Struct.new(:detached, :nonblock, :outer, :inner, :events)

  # detached waits for nonblock, which waits in two calls, one inside the other.
  def tower
    tower = Tower.new(nil, nil, nil, nil, [])
    inner = level(tower, :inner) { wait(Float::INFINITY) }
    outer = level(tower, :outer) { inner.call }
    nonblock = level(tower, :nonblock) { outer.call }
    detached = level(tower, :detached) { nonblock.call_nonblock.await_result }
    detached.call_detached
    wait(0)
    tower
  end

  def level(tower, name)
    conproc do
      tower[name] = current
      [name, yield].tap { tower.events << :"#{name}_goes_on" }
    ensure
      tower.events << :"#{name}_ensured"
    end
  end

  def test_without_a_cancellation
    all = tower
    all.inner.resume!(:resumed)
    assert_equal [:detached, [:nonblock, [:outer, [:inner, :resumed]]]], all.detached.await_result
    assert_equal %i[inner outer nonblock detached].flat_map { |name| [:"#{name}_goes_on", :"#{name}_ensured"] }, all.events
  end

  def test_the_innermost_is_concluded
    all = tower
    all.inner.conclude_to(:over)
    assert_equal %i[inner_ensured], all.events
    assert_equal [:detached, [:nonblock, [:outer, :over]]], all.detached.await_result
    assert_equal :over, all.inner.await_result
  end

  def test_the_outer_call_is_concluded_and_with_it_the_inner
    all = tower
    all.outer.conclude_to(:over)
    assert_equal %i[inner_ensured outer_ensured], all.events
    assert_equal [:detached, [:nonblock, :over]], all.detached.await_result
    assert_equal :over, all.outer.await_result
    assert_failed Ringspun::TerminatedError, all.inner
  end

  def test_the_nonblock_is_concluded_and_with_it_its_calls
    all = tower
    all.nonblock.conclude_to(:over)
    assert_equal %i[inner_ensured outer_ensured nonblock_ensured], all.events
    assert_equal [:detached, :over], all.detached.await_result
    assert_failed Ringspun::TerminatedError, all.outer
    assert_failed Ringspun::TerminatedError, all.inner
  end

  def test_the_detached_is_concluded_and_what_it_waits_for_goes_on
    all = tower
    all.detached.conclude_to(:over)
    assert_equal %i[detached_ensured], all.events
    assert_equal :over, all.detached.await_result
    refute_predicate all.nonblock, :concluded?
    all.nonblock.conclude_to(:too)
    assert_equal :too, all.nonblock.await_result
  end

  def test_each_of_them_from_the_inside_out
    all = tower
    %i[inner outer nonblock detached].each { |name| all[name].conclude_to(name) }
    assert_equal %i[inner outer nonblock detached], %i[inner outer nonblock detached].map { |name| all[name].await_result }
    assert_equal %i[inner outer nonblock detached].map { |name| :"#{name}_ensured" }, all.events.grep(/ensured/)
  end

  def test_each_of_them_from_the_outside_in
    all = tower
    all.detached.conclude_to(:detached)
    all.nonblock.conclude_to(:nonblock)
    [all.outer, all.inner].each { |ended| assert_raises(Evaluation::Error) { ended.conclude_to(1) } }
    assert_equal %i[detached inner outer nonblock].map { |name| :"#{name}_ensured" }, all.events
  end

  def test_the_caller_of_a_concluded_call_goes_on_when_who_concluded_it_has
    order = []
    inner = nil
    caller = begun do
      conproc { (inner = current).then { wait(Float::INFINITY) } }.call
      order << :caller
    end
    inner.conclude_to(1)
    order << :concluder
    caller.await_result
    assert_equal %i[concluder caller], order
  end

  def test_a_call_is_concluded_by_one_that_it_waits_for
    inner = nil
    value = conproc do
      inner = current
      conproc { inner.conclude_to(:from_below) }.call_detached.await_result
    end.call
    assert_equal :from_below, value
    settle
  end

  def test_the_outer_from_inside_of_the_inner
    outer = conproc do
      mine = current
      conproc { mine.conclude_to(:early).then { :inner } }.call.then { |value| [:dropped, value] }
    end
    assert_equal :early, outer.call
  end

  def test_the_outer_is_concluded_while_the_inner_unwinds
    outer = nil
    inner = nil
    events = []
    caller = begun do
      conproc do
        outer = current
        conproc do
          inner = current
          wait(Float::INFINITY)
        ensure
          wait(0.002)
          events << :inner_ensured
        end.call
        events << :never
      ensure
        events << :outer_ensured
      end.call
    end
    first = begun { inner.conclude_to(1) }
    second = begun { outer.conclude_to(2) }
    assert_equal 2, caller.await_result
    assert_equal [1, 2], [inner, outer].map(&:await_result)
    assert_equal :concluded, second.await_result
    assert_equal :concluded, first.await_result
    assert_equal 1, events.count(:outer_ensured)
    refute_includes events, :never
  end

  def test_the_root_in_a_call
    mine = nil
    killer = conproc { wait(0.001).then { mine.conclude_to(:from_outside) } }.call_detached
    assert_equal :from_outside, conproc { (mine = current).then { wait(Float::INFINITY) } }.call
    assert_equal :concluded, killer.await_result
    assert_equal true, wait(0)
  end
end

class SimulatedEvaluationNestedTest < EvaluationNestedTest
  include OnSimulation
end
