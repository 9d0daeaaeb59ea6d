# frozen_string_literal: true

# gc stress: short

require "test_helper"
require "support/evaluations"

# What the collector must not take away, nor move, while C holds it: to be run with a collection at every allocation.
class EvaluationCollectorTest < Minitest::Test
  include Evaluations

  def made = conproc { |x, y: nil, &block| [x.to_s, y, block&.call] }

  def waits = conproc { |x, y: nil, &block| wait(0).then { [x.to_s, y, block&.call] } }

  def test_the_four_forms
    expected = ["1", "y", "block"]
    [made, waits].each do |one|
      assert_equal expected, one.call(1, y: +"y") { +"block" }
      assert_equal(expected, one.call_nonblock(1, y: +"y") { +"block" }.then { |it| it.is_a?(Array) ? it : it.await_result })
      assert_equal(expected, one.call_detached(1, y: +"y") { +"block" }.await_result)
      one.call_and_forget(1, y: +"y") { +"block" }
    end
    settle
  end

  def test_a_batch_that_nobody_holds
    seen = []
    4.times { |i| conproc { |x| seen << x }.call_and_forget("#{i}") }
    evaluations = Array.new(4) { |i| conproc { |x| (wait(0) if i.odd?).then { x } }.call_detached("#{i}") }
    GC.start
    assert_equal Array.new(4, &:to_s), evaluations.map(&:await_result)
    assert_equal Array.new(4, &:to_s), seen
  end

  def test_an_evaluation_that_only_its_waiter_holds
    waiters = Array.new(2) { |i| begun { conproc { wait(0.001).then { "#{i}" } }.call_detached.await_result } }
    assert_equal %w[0 1], waiters.map(&:await_result)
    fastest = begun {
      Ringspun.await_fastest(*Array.new(2) { |i|
        conproc {
          wait(0.001).then {
            "#{i}"
          }
        }.call_detached
      }).await_result
    }
    assert_equal "0", fastest.await_result
    yield_until("the others end") { machine.metrics[:strands_live] == 1 }
  end

  def test_values_that_wait_to_be_taken
    evaluation = begun { Ringspun.await_resume! }
    evaluation.resume!("re" + "sumed")
    GC.start
    assert_equal "resumed", evaluation.await_result
    concluded = waiting
    concluded.conclude_to("con" + "cluded")
    GC.start
    assert_equal "concluded", concluded.await_result
    failing = conproc { raise Failure, "mes" + "sage" }.call_detached
    wait(0)
    GC.start
    assert_failed Failure, failing, /message/
  end

  def test_data
    evaluation = begun { (current[:inside] = "in" + "side").then { wait(0.001) } }
    evaluation[:outside] = "out" + "side"
    GC.start
    assert_equal %w[inside outside], [evaluation[:inside], evaluation[:outside]]
    evaluation.await_result
    current[:mine] = "mi" + "ne"
    GC.start
    assert_equal "mine", current[:mine]
  end

  def test_calls_inside_of_each_other_that_are_concluded
    inner = nil
    outer = begun { conproc { conproc { (inner = current).then { wait(Float::INFINITY) } }.call.then { |x| "#{x} outer" } }.call }
    inner.conclude_to("in" + "ner")
    assert_equal "inner outer", outer.await_result
  end

  def test_handles_of_strands_that_are_used_again
    strands = Array.new(2) { conproc { wait(0).then { machine.running } }.call_detached }.map(&:await_result)
    2.times { conproc { wait(0) }.call_detached.await_result }
    assert_equal [:done] * 2, strands.map(&:state)
  end

  def test_suspended_in_the_middle_of_a_call
    inner = conproc { Enumerator.new { |list| conproc { list << current << 2 }.call }.next }.call_detached.await_result
    GC.start
    assert_failed Ringspun::TerminatedError, inner
  end

  def test_storage
    Fiber.new(storage: { user: "an" + "n" }) do
      evaluation = conproc { Fiber[:user] }.call_detached
      GC.start
      assert_equal "ann", evaluation.await_result
    end.resume
  end
end
