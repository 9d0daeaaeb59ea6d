# frozen_string_literal: true

require "test_helper"
require "concurrently"

class ConcurrentlyProcsTest < Minitest::Test
  def setup
    super
    Concurrently::Proc.error_log_output = nil
  end

  def test_the_constants_that_there_are
    assert_equal "1.2.0", Concurrently::VERSION
    assert_operator Concurrently::Proc, :<, Proc
    assert_operator Concurrently::Proc::Evaluation, :<, Concurrently::Evaluation
    assert_operator Concurrently::Error, :<, StandardError
    assert_operator Concurrently::Evaluation::Error, :<, Concurrently::Error
    assert_operator Concurrently::Evaluation::TimeoutError, :<, Concurrently::Evaluation::Error
    assert_equal Concurrently::Evaluation::TimeoutError, Concurrently::Proc::Evaluation::TimeoutError
    assert_equal Exception, Concurrently::Proc::Evaluation::Cancelled.superclass
  end

  def test_a_concurrent_proc_is_a_proc
    made = concurrent_proc { |a, b = 2| [a, b] }
    assert_instance_of Concurrently::Proc, made
    assert_equal [1, false, [__FILE__, __LINE__ - 2]], [made.arity, made.lambda?, made.source_location.first(2)]
    assert_instance_of Concurrently::Proc, Concurrently::Proc.new {}
    assert_raises(Concurrently::Error) { Concurrently::Proc.new }
  end

  def test_every_form_passes_everything_on
    made = concurrent_proc { |*list, key: 0, &block| [list, key, block&.call] }
    expected = [[1, 2], 3, 4]
    assert_equal expected, made.call(1, 2, key: 3) { 4 }
    assert_equal expected, made.call_nonblock(1, 2, key: 3) { 4 }
    assert_equal expected, made.call_detached(1, 2, key: 3) { 4 }.await_result
    assert_equal [[], 0, nil], made.()
    assert_equal [[5], 0, nil], made[5]
    assert_equal [[{ "a" => 1 }], 0, nil], made.call({ "a" => 1 })
    seen = nil
    assert_nil concurrent_proc { |a, key:, &block| seen = [a, key, block.call] }.call_and_forget(1, key: 2) { 3 }
    wait 0
    assert_equal [1, 2, 3], seen
  end

  def test_call_waits_for_the_result
    assert_equal :result, concurrent_proc { wait(0.001) && :result }.call
    assert_equal :result, concurrent_proc { :result }.call
    assert_equal :result, concurrent_proc { concurrent_proc { wait(0) && :result }.call }.call_detached.await_result
  end

  # As the gem answers them: it awaits the evaluation that a run answers at once, one deep.
  def test_call_waits_for_the_evaluation_that_it_returns
    nested = concurrent_proc { concurrently { 3 } }
    assert_equal [3, 3, 3], [nested.call, nested[], nested.()]
    concluded = concurrently { 4 }.tap(&:await_result)
    assert_equal 4, concurrent_proc { concluded }.call
    assert_equal "broken", assert_raises(RuntimeError) { concurrent_proc { concurrently { raise "broken" } }.call }.message
    own = Concurrently::Proc::Evaluation
    [
      nested.call_nonblock, nested.call_detached.await_result, concurrent_proc { nested }.call.call_nonblock,
      concurrent_proc { concurrently { concurrently { 3 } } }.call, concurrent_proc { wait(0) && concurrently { 3 } }.call
    ].each do |inner|
      assert_instance_of own, inner
      assert_equal 3, inner.await_result
    end
    root = Concurrently::Evaluation.current
    assert_same root, concurrent_proc { root }.call
  end

  # Here the gem waits for ever.
  def test_call_of_one_that_returns_its_own_evaluation
    assert_predicate concurrent_proc { Concurrently::Evaluation.current }.call, :concluded?
  end

  def test_call_raises
    [-> { raise "broken" }, -> { wait(0) && raise("broken") }, -> { RuntimeError.new("broken") }].each do |body|
      assert_equal "broken", assert_raises(RuntimeError) { concurrent_proc(&body).call }.message
    end
  end

  # Unlike Ringspun::ConcurrentProc#call, which runs on the stack of its caller.
  def test_a_cancelled_caller_leaves_what_it_has_called
    order = []
    called = nil
    inner = concurrent_proc do
      called = Concurrently::Evaluation.current
      order << await_resume!
    end
    outer = concurrent_proc do
      inner.call
    ensure
      order << :outer
    end.call_nonblock
    outer.conclude_to :cancelled
    assert_equal [:outer], order
    refute_predicate called, :concluded?
    called.resume! :inner
    called.await_result
    assert_equal %i[outer inner], order
  end

  def test_call_runs_in_an_evaluation_of_its_own
    strand = Ringspun::Machine.current.running
    evaluation = nil
    inner = concurrent_proc do
      evaluation = Concurrently::Evaluation.current
      Ringspun::Machine.current.running
    end.call
    refute_equal strand, inner
    assert_instance_of Concurrently::Proc::Evaluation, evaluation
    assert_predicate evaluation, :concluded?
  end

  def test_call_nonblock
    assert_equal :result, concurrent_proc { :result }.call_nonblock
    assert_equal "broken", assert_raises(RuntimeError) { concurrent_proc { raise "broken" }.call_nonblock }.message
    waiting = concurrent_proc { wait(0) && :result }.call_nonblock
    assert_instance_of Concurrently::Proc::Evaluation, waiting
    refute_predicate waiting, :concluded?
    assert_equal :result, waiting.await_result
  end

  def test_call_detached_and_call_and_forget_begin_later_in_order
    order = []
    evaluation = concurrent_proc { order << 1 }.call_detached
    assert_nil concurrent_proc { order << 2 }.call_and_forget
    last = concurrently { order << 3 }
    assert_empty order
    last.await_result
    assert_equal [[1, 2, 3], [1, 2, 3]], [order, evaluation.await_result]
  end

  def test_one_proc_is_called_many_times
    count = 0
    made = concurrent_proc { |n| wait(0) && (count += n) }
    assert_equal 100, Array.new(100) { made.call_detached(1) }.map(&:await_result).last
  end

  class OwnEvaluation < Concurrently::Proc::Evaluation
    class Error < Concurrently::Evaluation::Error; end

    attr_reader :ready

    def initialize
      super
      @ready = true
    end
  end

  def test_evaluations_of_a_class
    made = concurrent_proc(OwnEvaluation) { wait(0) && Concurrently::Evaluation.current }
    [made.call_nonblock, made.call_detached, made.call].each do |evaluation|
      assert_instance_of OwnEvaluation, evaluation
      assert evaluation.ready
      assert_same evaluation, evaluation.await_result
      assert_raises(OwnEvaluation::Error) { evaluation.conclude_to nil }
    end
    assert_raises(Concurrently::Error) { concurrent_proc(String) {} }
  end

  def test_a_fiber_and_an_enumerator_inside
    evaluation = concurrently do
      numbers = Enumerator.new { |list| 3.times { |number| wait(0) && list << number } }
      fiber = Fiber.new { Fiber.yield(wait(0)) }
      [numbers.next, numbers.next, fiber.resume]
    end
    assert_equal [0, 1, true], evaluation.await_result
  end

  def test_several_threads_each_with_its_own_loop
    threads = Array.new(3) do |number|
      Thread.new do
        evaluations = Array.new(10) { |n| concurrently { wait(0.001 * n) && [number, Thread.current] } }
        evaluations.map(&:await_result)
      ensure
        Ringspun::Machine.current.close
      end
    end
    threads.each_with_index { |thread, number| assert_equal [[number, thread]], thread.value.uniq }
  end
end
