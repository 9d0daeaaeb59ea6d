# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Plain fibers and Enumerator#next inside an evaluation, and evaluations inside those.
class EvaluationFibersTest < Minitest::Test
  include Evaluations

  # What an abandoned fiber has open on the root's strand stays until that ends.
  def on_own_thread(&block) = on_thread { instance_exec(&block) }

  def items(count = 3)
    Enumerator.new do |list|
      count.times { |i| list << yield(i) }
      :end
    end
  end

  def all_of(enumerator)
    all = []
    loop { all << enumerator.next }
    all
  end

  def test_plain_ones_that_wait_inside
    seen = conproc { Fiber.new { wait(0.001).then { current } }.resume }.call_detached
    assert_same seen, seen.await_result
    values = conproc do
      fiber = Fiber.new { |x| 3.times { x = Fiber.yield(wait(0) && x + 1) } && :end }
      [fiber.resume(1), fiber.resume(5), wait(0) && fiber.resume(7), fiber.resume(9)]
    end
    assert_equal [2, 6, 8, :end], values.call
    assert_equal [2, 6, 8, :end], values.call_detached.await_result
  end

  def test_enumerators_that_wait_inside
    made = conproc { all_of(items { |i| wait(0.001).then { i } }) }
    assert_equal [0, 1, 2], made.call
    assert_equal [[0, 1, 2]] * 3, Array.new(3) { made.call_detached }.map(&:await_result)
  end

  def test_calls_inside_of_enumerators
    inner = conproc { |i| wait(0.001).then { [i, current.class] } }
    made = conproc { all_of(items { |i| inner.call(i) }) }
    assert_equal [[0, Evaluation], [1, Evaluation], [2, Evaluation]], made.call_detached.await_result
  end

  def test_nonblock_and_detached_inside_of_enumerators
    inner = conproc { |i| wait(0.001).then { i } }
    made = conproc { all_of(items { |i| (i.even? ? inner.call_nonblock(i) : inner.call_detached(i)).await_result }) }
    assert_equal [0, 1, 2], made.call
    assert_equal [0, 1, 2], made.call_detached.await_result
  end

  def test_current_is_that_of_the_stack_that_runs
    seen = {}
    evaluation = conproc do
      enumerator = Enumerator.new do |list|
        conproc do
          seen[:inside] = current
          list << 1
          seen[:inside_again] = current
        end.call
        seen[:enumerator] = current
        list << 2
      end
      enumerator.next
      seen[:outside] = current
      conproc { seen[:another] = current }.call
      enumerator.next
      seen[:outside_again] = current
    end.call_detached
    evaluation.await_result
    assert_same seen[:inside], seen[:inside_again]
    assert_same evaluation, seen[:outside]
    assert_same evaluation, seen[:outside_again]
    assert_same evaluation, seen[:enumerator]
    assert_equal 3, seen.values.uniq(&:object_id).size
  end

  def test_concluded_while_an_enumerator_waits
    ensured = []
    evaluation = begun do
      items { begin; wait(Float::INFINITY); ensure; ensured << :inside; end }.next
    ensure
      ensured << :outside
    end
    evaluation.conclude_to(1)
    assert_equal [:inside, :outside], ensured
    assert_equal 1, evaluation.await_result
  end

  def test_a_call_in_an_enumerator_that_is_concluded_while_it_waits
    inner = nil
    outer = begun do
      all_of(items(2) { |i| conproc { (inner = current).then { wait(Float::INFINITY) } unless i == 1; i }.call })
    end
    inner.conclude_to(:over)
    assert_equal [:over, 1], outer.await_result
  end

  def test_resumed_while_an_enumerator_waits
    evaluation = begun { items { Ringspun.await_resume! }.next }
    evaluation.resume!(5)
    assert_equal 5, evaluation.await_result
  end

  # --- in the middle of a call, the fiber is suspended ---

  # Yields 1 in the middle of a call, and 2 after a wait; answers the enumerator and the evaluation of that call.
  def suspended(ensured = [])
    inner = nil
    enumerator = Enumerator.new do |list|
      conproc do
        inner = current
        list << 1
        wait(0.001)
        list << 2
        :value
      ensure
        ensured << :ensured
      end.call
    end
    assert_equal 1, enumerator.next
    [enumerator, inner]
  end

  def test_a_suspended_call_goes_on
    ensured = []
    inner, second, result = conproc do
      enumerator, inner = suspended(ensured)
      wait(0.001)
      second = enumerator.next
      error_of { enumerator.next }
      [inner, second, inner.await_result]
    end.call_detached.await_result
    assert_equal [2, :value, [:ensured]], [second, result, ensured]
    assert_predicate inner, :concluded?
  end

  # What the strand waits for meanwhile is no wait of the suspended call.
  def test_a_suspended_call_that_is_concluded_cancels_nobody_else
    inner = nil
    outer = begun { _, inner = suspended.then { |pair| @kept, _ = pair }; wait(0.002).then { :undisturbed } }
    assert_equal :concluded, inner.conclude_to(5)
    assert_equal [5, :undisturbed], [inner.await_result, outer.await_result]
  end

  def test_a_suspended_call_is_not_waiting
    inner = nil
    outer = begun { @kept, inner = suspended; Ringspun.await_resume! }
    refute_predicate inner, :waiting?
    assert_raises(Evaluation::Error) { inner.resume!(1) }
    outer.resume!(2)
    assert_equal 2, outer.await_result
  end

  def test_a_suspended_call_whose_strand_has_ended
    inner = nil
    conproc { @kept, inner = suspended }.call_detached.await_result
    assert_failed Ringspun::TerminatedError, inner
    assert_raises(Evaluation::Error) { inner.conclude_to(1) }
    assert_raises(Evaluation::Error) { inner.resume! }
    refute_predicate inner, :waiting?
  end

  def test_somebody_who_waits_for_a_suspended_call
    inner = nil
    outer = begun { @kept, inner = suspended; wait(0.001) }
    waiter = begun { inner.await_result }
    outer.await_result
    assert_failed Ringspun::TerminatedError, waiter
  end

  def test_somebody_who_waits_for_one_that_was_concluded_and_is_then_suspended_for_ever
    inner = nil
    gate = waiting
    outer = begun do
      @kept = Fiber.new do
        conproc do
          inner = current
          Ringspun.shield { gate.await_result }
          Fiber.yield
        end.call
      end
      @kept.resume
      :outer
    end
    waiters = [begun { inner.await_result(within: 1) }, begun { Ringspun.await_fastest(inner, waiting, within: 1).await_result }]
    concluder = begun { inner.conclude_to(5) }
    end_all gate
    assert_equal [:outer, :concluded, 5, 5], [outer, concluder, *waiters].map(&:await_result)
    machine.strands.each { |strand| machine.terminate(strand) if strand != machine.running }
    settle
  end

  # It has left before what was to unwind it could be raised.
  def test_one_that_is_concluded_and_then_suspended_cancels_nobody_else
    inner = nil
    gate = waiting
    leaves = conproc do
      inner = current
      Ringspun.shield { gate.await_result }
      Fiber.yield
      wait(0.001).then { :dropped }
    end
    outer = begun do
      fiber = Fiber.new { leaves.call }
      fiber.resume
      wait(0.001)
      [:undisturbed, fiber.resume]
    end
    waiter = begun { inner.await_result }
    concluder = begun { inner.conclude_to(5) }
    end_all gate
    assert_equal [[:undisturbed, 5], 5, :concluded], [outer, waiter, concluder].map(&:await_result)
  end

  # And here it has been raised: its ensure block is to end.
  def test_one_that_is_suspended_while_it_unwinds
    inner = nil
    ensured = []
    unwinds = conproc do
      inner = current
      wait(Float::INFINITY)
    ensure
      Fiber.yield
      ensured << :ensured
    end
    outer = begun do
      fiber = Fiber.new { unwinds.call }
      fiber.resume
      wait(0.001)
      fiber.resume
    end
    concluder = begun { inner.conclude_to(5).then { ensured << :concluded } }
    assert_equal [5, 5], [inner, outer].map(&:await_result)
    assert_equal %i[ensured concluded], concluder.await_result
  end

  def test_one_that_another_strand_goes_on_with
    enumerator = inner = nil
    ensured = []
    conproc { enumerator, inner = suspended(ensured) }.call_detached.await_result
    assert_equal 2, conproc { enumerator.next }.call_detached.await_result
    assert_raises(StopIteration) { enumerator.next }
    assert_equal [:ensured], ensured
    assert_failed Ringspun::TerminatedError, inner
  end

  def test_one_that_another_strand_goes_on_with_while_its_own_lives
    enumerator = inner = nil
    first = begun { enumerator, inner = suspended; wait(Float::INFINITY) }
    second = begun { 2.times.map { error_of { enumerator.next } || :went } }
    wait(0)
    assert_equal [:went, StopIteration], second.await_result.map { |seen| seen == :went ? seen : seen.class }
    assert_equal :value, inner.await_result
    first.conclude_to(1)
    assert_equal 1, first.await_result
  end

  # --- in the middle of a call that another strand goes on with ---

  # The block runs in a call that one strand has begun, and from the first Fiber.yield on in another strand: answers its
  # evaluation and both of theirs.
  def moved(&block)
    inner = fiber = nil
    made = conproc { (inner = current).then { block.call } }
    first = begun { (fiber = Fiber.new { made.call }).resume.then { wait(Float::INFINITY) } }
    second = begun { [:went_on, fiber.resume] }
    [inner, first, second]
  end

  def test_one_that_another_strand_goes_on_with_is_cancelled_there
    ensured = []
    inner, first, second = moved do
      Fiber.yield
      wait(Float::INFINITY)
    ensure
      ensured << :ensured
    end
    assert_predicate inner, :waiting?
    assert_equal :concluded, inner.conclude_to(5)
    assert_equal [:ensured], ensured
    assert_equal [5, [:went_on, 5]], [inner.await_result, second.await_result]
    refute_predicate first, :concluded?
    first.conclude_to(6)
    assert_equal 6, first.await_result
  end

  def test_one_that_another_strand_goes_on_with_is_resumed_there
    inner, first, second = moved { Fiber.yield || Ringspun.await_resume! }
    assert_equal :resumed, inner.resume!(5)
    assert_raises(Evaluation::Error) { inner.resume!(6) }
    assert_equal [:went_on, 5], second.await_result
    end_all first
  end

  def test_one_that_another_strand_goes_on_with_ends_with_it
    inner, first, second = moved { Fiber.yield || wait(Float::INFINITY) }
    second.conclude_to(7)
    assert_failed Ringspun::TerminatedError, inner
    assert_equal 7, second.await_result
    refute_predicate first, :concluded?
    end_all first
  end

  def test_one_that_another_strand_goes_on_with_and_whose_first_strand_ends
    inner, first, second = moved { Fiber.yield || wait(0.002).then { current } }
    assert_predicate inner, :waiting?
    first.conclude_to(1)
    assert_equal [:went_on, inner], second.await_result
    assert_same inner, inner.await_result
  end

  def test_current_is_that_of_the_stack_whoever_goes_on_with_it
    seen = []
    inner, first, second = moved do
      seen << current
      Fiber.yield
      seen << current
      conproc { seen << current }.call
      current.conclude_to(8)
      wait(0)
      :dropped
    end
    assert_equal [:went_on, 8], second.await_result
    assert_equal [inner, inner], seen.first(2)
    refute_includes [inner, first, second], seen.last
    assert_equal [8, false], [inner.await_result, first.concluded?]
    end_all first
  end

  def test_current_is_that_of_the_inmost_call_when_somebody_has_looked_at_an_outer_one
    seen = nil
    inner, first, second = moved do
      Fiber.yield
      conproc { seen = [current, wait(0.001) && current] }.call
    end
    assert_predicate inner, :waiting?
    second.await_result
    assert_same(*seen)
    refute_same inner, seen.first
    end_all first
  end

  def test_one_that_another_strand_goes_on_with_cannot_wait_for_itself
    _, first, second = moved { current.then { |mine| Fiber.yield || error_of { mine.await_result }.class.name } }
    assert_equal [:went_on, "Ringspun::UsageError"], second.await_result
    end_all first
  end

  def test_calls_in_calls_that_another_strand_goes_on_with
    inmost = nil
    ensured = []
    inner, first, second = moved do
      conproc do
        inmost = current
        Fiber.yield
        wait(Float::INFINITY)
      ensure
        ensured << :inmost
      end.call
      :not_reached
    ensure
      ensured << :inner
    end
    assert_equal :concluded, inner.conclude_to(5)
    assert_equal %i[inmost inner], ensured
    assert_failed Ringspun::TerminatedError, inmost
    assert_equal [:went_on, 5], second.await_result
    end_all first
  end

  def test_one_that_comes_back_to_its_own_strand
    inner = fiber = nil
    made = conproc { (inner = current).then { 2.times { Fiber.yield } }.then { Ringspun.await_resume! } }
    first = begun { (fiber = Fiber.new { made.call }).resume.then { Ringspun.await_resume! }.then { fiber.resume } }
    conproc { fiber.resume.then { inner.waiting? } }.call_detached.await_result
    first.resume!
    wait(0)
    assert_predicate inner, :waiting?
    inner.conclude_to(3)
    assert_equal [3, 3], [inner.await_result, first.await_result]
  end

  # Whoever runs through a strand that has yet to unwind takes nothing of its cancellation with it.
  def test_one_that_is_concluded_while_it_goes_on_elsewhere_cancels_nobody_else
    inner, first, second = moved { Fiber.yield || wait(0.001) }
    inner.conclude_to(5)
    assert_equal [true, [:went_on, 5]], [begun { wait(0.001) }.await_result, second.await_result]
    first.resume!(:undisturbed)
    assert_equal :undisturbed, first.await_result
  end

  def churn = 3.times { GC.start.then { Array.new(100) { |i| Fiber.new { Fiber.yield("#{i}") }.tap(&:resume) } } }

  def test_abandoned_ones_are_collected_when_their_strand_has_ended
    evaluations = Array.new(20) { conproc { suspended.last }.call_detached }.map(&:await_result)
    churn
    evaluations.each { |evaluation| assert_failed Ringspun::TerminatedError, evaluation }
    churn
    assert_equal 3, conproc { wait(0).then { 3 } }.call_detached.await_result
  end

  def test_abandoned_ones_that_nobody_has_asked_for
    20.times do
      conproc { Enumerator.new { |list| conproc { list << 1 << 2 }.call }.next }.call_detached.await_result
      conproc { Enumerator.new { |list| conproc { list << 1 << 2 }.call }.next }.call_nonblock
    end
    churn
    assert_equal 3, conproc { wait(0).then { 3 } }.call_detached.await_result
  end

  def test_abandoned_ones_do_not_hold_up_those_behind_them
    values = Array.new(10) { |i| conproc { (@kept = suspended).then { i } }.call_detached }.map(&:await_result)
    assert_equal (0..9).to_a, values
  end

  def test_abandoned_on_the_root_until_the_machine_is_closed
    inner = on_own_thread do
      enumerator, inner = suspended
      2.times { churn }
      inner.conclude_to(1) if inner.object_id.even?
      wait(0)
      enumerator && inner
    end
    assert_predicate inner, :concluded?
    churn
  end

  def test_a_machine_is_not_closed_inside_a_call
    on_own_thread do
      assert_raises(Ringspun::UsageError) { conproc { machine.close }.call }
      assert_equal true, wait(0)
    end
  end
end

class SimulatedEvaluationFibersTest < EvaluationFibersTest
  include OnSimulation
end
