# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# A concurrent proc is a Proc in all that is not a call.
class ConcurrentProcTest < Minitest::Test
  include Evaluations

  FORMS = {
    call: ->(made, *args, **options, &block) { made.call(*args, **options, &block) },
    brackets: ->(made, *args, **options, &block) { made.[](*args, **options, &block) },
    dot: ->(made, *args, **options, &block) { made.(*args, **options, &block) },
    call_nonblock: ->(made, *args, **options, &block) { made.call_nonblock(*args, **options, &block) },
    call_detached: ->(made, *args, **options, &block) { made.call_detached(*args, **options, &block).await_result }
  }.freeze

  def test_is_a_proc
    made = conproc { |a, b = 1, *c, d:, **e, &f| [a, b, c, d, e, f] }
    plain = proc { |a, b = 1, *c, d:, **e, &f| [a, b, c, d, e, f] }
    assert_kind_of Proc, made
    assert_instance_of ConcurrentProc, made
    assert_equal plain.arity, made.arity
    assert_equal plain.parameters, made.parameters
    refute_predicate made, :lambda?
  end

  def test_keeps_whether_it_is_a_lambda
    made = conproc(&->(a, b) { a + b })
    assert_predicate made, :lambda?
    assert_equal 2, made.arity
    assert_equal 3, made.call(1, 2)
    assert_raises(ArgumentError) { made.call(1) }
    assert_raises(ArgumentError) { made.call_nonblock(1) }
    assert_failed ArgumentError, made.call_detached(1)
  end

  def test_keeps_its_place
    assert_equal [__FILE__, __LINE__], conproc {}.source_location.first(2)
  end

  def test_needs_a_block
    assert_raises(Ringspun::UsageError) { conproc }
    assert_raises(Ringspun::UsageError) { ConcurrentProc.new }
    assert_raises(Ringspun::UsageError) { Ringspun.concurrently }
  end

  def test_to_proc_and_yield_call_it_without_an_evaluation
    outside = current
    made = conproc { |x| [x, current] }
    assert_equal [[1, outside]], [1].map(&made)
    assert_equal [1, outside], made.yield(1)
  end

  FORMS.each do |name, form|
    define_method("test_#{name}_passes_arguments_keywords_and_a_block") do
      made = conproc { |*args, **options, &block| [args, options, block&.call] }
      assert_equal [[], {}, nil], form.call(made)
      assert_equal [[1, [2]], {}, nil], form.call(made, 1, [2])
      assert_equal [[1], { a: 2 }, 3], form.call(made, 1, a: 2) { 3 }
      assert_equal [[{ a: 2 }], {}, nil], form.call(made, { a: 2 })
      assert_equal [[], { "a" => 2 }, nil], form.call(made, **{ "a" => 2 })
    end

    define_method("test_#{name}_spreads_an_array_as_a_proc_does") do
      assert_equal [1, 2], form.call(conproc { |a, b| [a, b] }, [1, 2])
      assert_equal [[1, 2], nil], form.call(conproc(&->(a, b = nil) { [a, b] }), [1, 2])
    end
  end

  def test_call_and_forget_passes_arguments_keywords_and_a_block
    seen = []
    conproc { |*args, **options, &block| seen << [args, options, block&.call] }.call_and_forget(1, a: 2) { 3 }
    settle
    assert_equal [[[1], { a: 2 }, 3]], seen
  end

  def test_concurrently_passes_arguments_and_keywords
    assert_equal [1, 2], Ringspun.concurrently(1, b: 2) { |a, b:| [a, b] }.await_result
  end

  # --- classes of their own ---

  class Special < Ringspun::Evaluation
    attr_reader :made

    def initialize
      super
      @made = true
    end
  end

  def test_an_evaluation_class_of_its_own
    made = conproc(Special) { current }
    assert_instance_of Special, made.call_detached
    assert_instance_of Special, made.call
    assert_instance_of Special, made.call_nonblock
    assert_instance_of Special, conproc(Special) { wait(0) }.call_nonblock
    assert_predicate made.call_detached, :made
    settle
  end

  def test_a_copy_is_a_concurrent_proc_with_evaluations_of_that_class
    made = conproc(Special) { |x| wait(0).then { x } }
    [made.dup, made.clone].each do |copy|
      assert_instance_of ConcurrentProc, copy
      evaluation = copy.call_nonblock(1)
      assert_instance_of Special, evaluation
      assert_equal [1, copy], [evaluation.await_result, evaluation.proc]
    end
  end

  def test_another_class_is_refused
    [String, Object, Class, 1, "x"].each do |wrong|
      assert_raises(Ringspun::UsageError) { conproc(wrong) {} }
    end
  end

  def test_a_subclass_has_the_evaluations_that_it_says
    subclass = Class.new(ConcurrentProc) { def self.evaluation_class = Special }
    assert_instance_of Special, subclass.new { 1 }.call_detached
    assert_instance_of Evaluation, subclass.new(Evaluation) { 1 }.call_detached
    settle
  end

  def test_the_proc_of_an_evaluation
    made = conproc { current.proc }
    assert_same made, made.call
    assert_same made, made.call_detached.proc
    assert_nil current.proc
    settle
  end

  # One that waits while it is made: the run that it is for may be over by then.
  class Slow < Ringspun::Evaluation
    def initialize
      super
      Ringspun.wait(0)
    end
  end

  def test_an_evaluation_that_waits_while_it_is_made
    assert_equal 1, conproc(Slow) { 1 }.call_detached.await_result
    evaluation = conproc(Slow) { wait(0).then { 2 } }.call_nonblock
    assert_equal 2, evaluation.await_result
  end

  def test_an_evaluation_is_made_by_calls_only_and_not_copied
    assert_raises(TypeError) { Evaluation.new }
    assert_raises(Ringspun::UsageError, TypeError) { begun { 1 }.dup }
  end
end

class SimulatedConcurrentProcTest < ConcurrentProcTest
  include OnSimulation
end
