# frozen_string_literal: true

# Evaluations that are used where they cannot be: all that CRuby has too is in runtime/test/evaluation.
class EvaluationTest < Minitest::Test
  include Evaluations

  def test_one_of_another_machine_is_refused
    outer = waiting(ensured = [])
    simulate do
      inner = waiting(ensured, :inner)
      [-> { outer.conclude_to(1) }, -> { outer.resume!(1) }, -> { outer.waiting? }, -> { outer.await_result },
       -> { await_fastest(inner, outer) }].each do |call|
        assert_includes assert_raises(Ringspun::UsageError, &call).message, "another machine"
      end
      assert_equal [[], true], [ensured, inner.waiting?]
      end_all(inner)
    end
    end_all(outer)
    assert_equal %i[inner ensured], ensured
  end

  def test_one_that_is_concluded_is_read_from_anywhere
    outer = begun { 1 }
    inner = simulate { begun { outer.await_result + 1 }.tap { |run| run.await_result } }.value
    assert_equal 2, inner.await_result
  end

  def test_a_simulation_is_in_no_call_of_the_machine_before
    conproc do
      outer = current
      inner = simulate { current }.value
      refute_equal outer, inner
      refute_equal outer, Fiber.new { simulate { current }.value }.resume
      assert_raises(Ringspun::UsageError) { inner.resume! }
      assert_equal outer, current
    end.call
    assert_kind_of Evaluation, simulate { conproc { current }.call }.value
  end

  def leave
    conproc do
      @left = current
      @waiter = begun { @left.await_result }
      return 5
    end.call
    :not_left
  end

  def test_return_out_of_a_call_ends_its_evaluation
    assert_equal 5, leave
    assert @left.concluded?
    assert_failed Ringspun::TerminatedError, @waiter
    refute_equal @left, current
  end

  Unfinished = Class.new { def concluded? = false }

  def test_the_fastest_of_what_has_no_result
    other = waiting
    assert_raises(Ringspun::UsageError) { await_fastest(other, current) }
    assert_includes assert_raises(Ringspun::UsageError) { await_fastest(1, 2) }.message, "expected evaluations, got 1"
    assert_raises(Ringspun::UsageError) { await_fastest(other, Unfinished.new) }
    GC.start
    end_all(other)
    assert other.concluded?
  end

  # What the program may not change the machine still does.
  def test_frozen_handles
    in_scope do |scope|
      strand = scope.spin { wait(0.001) and :value }.freeze
      evaluation = concurrently { wait(0.001) and :result }.freeze
      concluded = concurrently { wait(60) }.freeze
      machine.yield
      assert_equal :concluded, concluded.conclude_to(:early)
      assert_equal [:value, :result, :early], [strand.await, evaluation.await_result, concluded.await_result]
      assert_equal [:concluded, :now], [(unstarted = concurrently { flunk }.freeze).conclude_to(:now), unstarted.await_result]
    end
  end

  def test_what_concurrently_hands_over
    assert_equal 1, concurrently(1) { |one| one }.await_result
    assert_equal [1, 2, { key: 3 }], concurrently(1, 2, key: 3) { |*all, **options| [*all, options] }.await_result
    assert_equal [[], {}], concurrently(*[], **{}) { |*all, **options| [all, options] }.await_result
    assert_equal [[{}], {}], concurrently({}) { |*all, **options| [all, options] }.await_result
    [-> { concurrently }, -> { concurrently(1) }, -> { concurrently(key: 1) }].each do |call|
      assert_includes assert_raises(Ringspun::UsageError) { call.call }.message, "block"
    end
    assert_equal 5, Ringspun.concurrently { 5 }.await_result
  end

  class WithoutSuper < Ringspun::ConcurrentProc
    def initialize = nil # rubocop:disable Lint/MissingSuper -- as a program may forget it
  end

  def test_a_proc_that_was_never_initialized
    [Ringspun::ConcurrentProc.allocate, WithoutSuper.new].each do |concurrent_proc|
      error = assert_raises(Ringspun::UsageError) { concurrent_proc.call_detached }
      assert_includes error.message, "initialize"
    end
  end
end
