# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Ringspun.await_fastest.
class EvaluationFastestTest < Minitest::Test
  include Evaluations

  def after(seconds, value = seconds) = conproc { wait(seconds).then { value } }.call_detached

  def fastest(...) = Ringspun.await_fastest(...)

  def test_the_evaluation_that_is_concluded_first
    slow, fast = after(1), after(0.001)
    assert_same fast, fastest(slow, fast)
    assert_same fast, fastest(fast, slow)
    end_all slow
  end

  def test_of_many
    all = Array.new(50) { waiting }
    all.insert(17, after(0.001))
    assert_same all[17], fastest(*all)
    end_all(*all)
  end

  def test_of_one_that_is_concluded_already
    done, others = after(0).tap(&:await_result), Array.new(2) { waiting }
    assert_same done, fastest(*others, done)
    assert_same done, fastest(done, *others)
    end_all(*others)
  end

  # Both are due when the machine comes to look, and time passes in order: what was to come first did.
  def test_a_result_that_was_due_before_the_limit
    late, early, first = waiting, waiting, waiting
    begun { wait(0.001).then { [first, early].each { |each| each.conclude_to(1) } } }
    conproc { sleep(0.01) }.call_detached # this thread, and not only this strand
    assert_same first, fastest(late, early, first, within: 0.001)
    end_all late
  end

  def test_a_limit_that_was_due_before_the_result
    slow, other = waiting, waiting
    waiter = begun { fastest(slow, other, within: 0.001, timeout_result: :late) }
    concluder = begun { wait(0.001).then { slow.conclude_to(1) } }
    sleep(0.01)
    assert_equal %i[late concluded], [waiter, concluder].map(&:await_result)
    end_all other
  end

  def test_its_error_is_not_raised
    failing, other = conproc { wait(0).then { raise Failure } }.call_detached, waiting
    assert_same failing, fastest(other, failing)
    assert_same failing, fastest(other, failing)
    end_all other
  end

  def test_two_that_conclude_in_the_same_pass
    order = []
    pair = Array.new(2) { |i| conproc { wait(0).then { order << i } }.call_detached }
    waiter = begun { fastest(*pair) }
    assert_same pair[0], waiter.await_result
    assert_equal [0, 1], order
    settle
  end

  def test_two_that_conclude_in_one_turn
    pair = Array.new(2) { waiting }
    waiter = begun { [fastest(*pair), wait(0.001)] }
    end_all(*pair.reverse)
    assert_equal [pair[1], true], waiter.await_result
  end

  def test_the_same_one_twice
    evaluation = after(0.001)
    assert_same evaluation, fastest(evaluation, evaluation)
  end

  def test_many_who_wait_for_the_same_ones
    pair = [waiting, after(0.001)]
    waiters = Array.new(5) { conproc { fastest(*pair) }.call_detached }
    assert_equal [pair[1]] * 5, waiters.map(&:await_result)
    end_all(*pair)
  end

  def test_a_waiter_that_was_concluded_first_is_skipped
    pair = Array.new(2) { waiting }
    waiters = Array.new(3) { begun { fastest(*pair) } }
    waiters[1].conclude_to(:skipped)
    waiters[0].conclude_to(:skipped)
    end_all(*pair)
    assert_equal [:skipped, :skipped, pair[0]], waiters.map(&:await_result)
  end

  # It is ready already by another's end, and then it is concluded itself.
  def test_a_waiter_that_is_concluded_when_it_is_about_to_go_on
    pair = Array.new(2) { waiting }
    went_on = false
    waiter = begun { fastest(*pair).then { went_on = true } }
    concluded = begun do
      pair[0].conclude_to(1)
      waiter.conclude_to(:mine)
    end
    assert_equal [:concluded, :mine], [concluded.await_result, waiter.await_result]
    refute went_on
    end_all(*pair)
    settle
  end

  def test_what_is_concluded_later_does_not_end_the_next_wait
    pair = Array.new(2) { waiting }
    waiter = begun { fastest(*pair).then { machine.now.then { |before| [wait(0.005), machine.now - before] } } }
    pair[0].conclude_to(1)
    wait(0)
    pair[1].conclude_to(2)
    waited, seconds = waiter.await_result
    assert_equal true, waited
    assert_operator seconds, :>=, 0.004
  end

  # --- one call after the other, and beside each other ---

  def selectors = ObjectSpace.each_object(Ringspun::Selector).count

  def selectors_made
    GC.disable
    before = selectors
    yield
    selectors - before
  ensure
    GC.enable
  end

  def test_no_call_makes_a_selector_where_one_was_left
    all = Array.new(5) { waiting }
    fastest(*all, within: 0, timeout_result: nil)
    made = selectors_made { 3.times { |i| fastest(*all.first(2 + i), within: 0, timeout_result: nil) } }
    assert_equal 0, made
    end_all(*all)
  end

  def test_calls_that_overlap_have_a_selector_each
    pairs = Array.new(4) { Array.new(2) { waiting } }
    2.times do
      waiters = pairs.map { |pair| begun { fastest(*pair) } }
      [2, 0, 3, 1].each { |i| pairs[i][1].conclude_to(i) }
      assert_equal pairs.map(&:last), waiters.map(&:await_result)
      pairs.each { |pair| pair[1] = waiting }
    end
    end_all(*pairs.flatten)
  end

  def test_collections_between_calls_and_during_one
    3.times do
      pair = Array.new(2) { waiting }
      waiter = begun { fastest(*pair) }
      GC.start
      pair[1].conclude_to(1)
      assert_same pair[1], waiter.await_result
      end_all pair[0]
      GC.start
    end
  end

  def test_a_call_with_more_than_are_kept
    all = Array.new(100) { waiting }
    2.times { assert_nil fastest(*all, within: 0, timeout_result: nil) }
    all[50].conclude_to(1)
    assert_same all[50], fastest(*all)
    end_all(*all)
  end

  # --- with a limit ---

  def test_a_timeout
    pair = Array.new(2) { waiting }
    error = assert_raises(Evaluation::TimeoutError) { fastest(*pair, within: 0.001) }
    assert_equal "evaluation timed out after 0.001 second(s)", error.message
    assert_equal :late, fastest(*pair, within: 0.001, timeout_result: :late)
    assert_nil fastest(*pair, within: 0, timeout_result: nil)
    assert_equal false, fastest(*pair, within: -1, timeout_result: false)
    end_all(*pair)
  end

  def test_a_concluded_one_is_in_time
    done, other = after(0).tap(&:await_result), waiting
    assert_same done, fastest(other, done, within: 0)
    assert_same done, fastest(other, done, within: Float::INFINITY)
    end_all other
  end

  def test_wrong_arguments
    evaluation = waiting
    assert_raises(Ringspun::UsageError) { fastest }
    assert_raises(Ringspun::UsageError) { fastest(evaluation) }
    assert_raises(Ringspun::UsageError) { fastest(evaluation, 1) }
    assert_raises(Ringspun::UsageError) { fastest(evaluation, current) }
    assert_raises(ArgumentError) { fastest(evaluation, evaluation, without: 1) }
    assert_raises(Ringspun::UsageError, TypeError) { fastest(evaluation, evaluation, within: "1") }
    end_all evaluation
  end
end

class SimulatedEvaluationFastestTest < EvaluationFastestTest
  include OnSimulation
end
