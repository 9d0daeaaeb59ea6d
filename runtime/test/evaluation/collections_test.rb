# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# What `using Ringspun::Refinements` adds to collections.
class EvaluationCollectionsTest < Minitest::Test
  using Ringspun::Refinements
  include Evaluations

  # A result that is an error is raised.
  def later(value, seconds = 0.001) = conproc { wait(seconds).then { value } }.call_detached

  # --- await_all ---

  def test_all_results_in_their_order
    assert_equal [1, 2, 3], [later(1, 0.003), later(2, 0), conproc { 3 }.call_detached].await_all
    assert_equal [], [].await_all
  end

  def test_all_of_which_some_fail
    last = later(:last, 0.002)
    evaluations = [later(1), later(Failure.new("second"), 0.002), later(ArgumentError.new("third"), 0), last]
    assert_equal "third", assert_raises(ArgumentError) { evaluations.await_all }.message
    assert_equal :last, last.await_result
    error_of { evaluations[1].await_result }
    assert_equal "second", assert_raises(Failure) { evaluations.await_all }.message
  end

  def test_all_of_which_one_never_ends_and_one_fails
    endless = waiting
    assert_raises(Failure) { [endless, later(Failure.new)].await_all }
    assert_raises(Failure) { [endless, later(Failure.new).tap { |one| error_of { one.await_result } }].await_all }
    refute_predicate endless, :concluded?
    end_all endless
  end

  def test_all_and_some_of_them_twice
    one = later(1)
    assert_equal [1, 2, 1], [one, later(2), one].await_all
  end

  def test_all_within_a_time
    slow = waiting
    assert_equal [1, 2], [later(1), later(2)].await_all(within: 10)
    quick = later(1, 0)
    assert_raises(Ringspun::TimeoutError) { [quick, slow].await_all(within: 0.05) }
    assert_equal 1, quick.await_result
    refute_predicate slow, :concluded?
    end_all slow
  end

  # --- await_any ---

  def test_the_result_of_the_first
    slow = waiting
    assert_equal 2, [slow, later(2)].await_any
    assert_equal 3, [later(3)].await_any
    assert_equal 4, [slow, conproc { 4 }.call_detached.tap(&:await_result)].await_any
    assert_raises(Failure) { [slow, later(Failure.new)].await_any }
    end_all slow
  end

  def test_the_first_within_a_time
    slow = waiting
    assert_raises(Evaluation::TimeoutError) { [slow, slow].await_any(within: 0.001) }
    assert_raises(Evaluation::TimeoutError) { [slow].await_any(within: 0.001) }
    assert_equal 1, [slow, later(1)].await_any(within: 10)
    assert_raises(Ringspun::UsageError) { [].await_any }
    end_all slow
  end

  # --- map_concurrently ---

  def test_a_map_keeps_the_order
    assert_equal [6, 4, 2, 0], [3, 2, 1, 0].map_concurrently { |i| wait(i * 0.001).then { i * 2 } }
    assert_equal [], [].map_concurrently { flunk }
    assert_equal [nil, false], [nil, false].map_concurrently { |value| wait(0).then { value } }
    assert_equal %w[a1 b2], { a: 1, b: 2 }.map_concurrently { |key, value| "#{key}#{value}" }
    assert_equal [2, 4], (1..2).each_entry.map_concurrently(limit: 1) { |i| wait(0).then { i * 2 } }
  end

  def test_a_map_has_so_many_at_once_and_no_more
    [1, 3, 7].each { |limit| assert_equal [limit, 0], most_at_once(limit, (1..20), limit: limit) }
    assert_equal [50, 0], most_at_once(50, (1..60))
  end

  # An endless source is asked for no more than can be worked on.
  def test_a_map_asks_for_the_next_one_when_there_is_room
    asked = done = 0
    source = Enumerator.new { |list| 10.times { |i| (asked += 1).then { list << i } } }
    ahead = []
    source.map_concurrently(limit: 3) do
      wait(0.000_1)
      ahead << (asked - done)
      done += 1
    end
    assert_equal [10, 10, 3], [asked, done, ahead.max]
  end

  def test_the_first_error_of_a_map_cancels_the_others
    ended = Hash.new(0)
    started = []
    error = assert_raises(Failure) do
      (0..9).map_concurrently(limit: 4) do |i|
        started << i
        wait(i == 2 ? 0.001 : 10)
        raise Failure, "that of #{i}"
      ensure
        ended[i] += 1
      end
    end
    assert_equal "that of 2", error.message
    assert_equal [0, 1, 2, 3], started
    assert_equal({ 0 => 1, 1 => 1, 2 => 1, 3 => 1 }, ended)
  end

  def test_an_error_of_the_source_of_a_map
    ended = []
    source = Enumerator.new { |list| (list << 1).then { raise Failure, "source" } }
    error = assert_raises(Failure) do
      source.map_concurrently do
        wait(10)
      ensure
        ended << true
      end
    end
    assert_equal ["source", []], [error.message, ended - [true]]
  end

  def test_a_break_out_of_a_map_cannot_leave_a_strand_of_its_own
    assert_raises(LocalJumpError) { (1..3).map_concurrently { |i| i == 2 ? break : wait(10) } }
  end

  def test_a_map_whose_evaluation_is_concluded
    evaluation = begun { (1..3).map_concurrently { wait(Float::INFINITY) } }
    evaluation.conclude_to(:over)
    assert_equal :over, evaluation.await_result
    assert machine.strands.one?
  end

  def test_wrong_arguments_of_a_map
    assert_raises(Ringspun::UsageError) { [1].map_concurrently }
    [0, -1].each { |limit| assert_raises(Ringspun::UsageError, limit.to_s) { [1].map_concurrently(limit: limit) { 1 } } }
    assert_raises(TypeError, Ringspun::UsageError) { [1].map_concurrently(limit: nil) { 1 } }
  end

  def test_without_the_refinements_there_is_none_of_it
    refute_respond_to [], :await_all
    refute_includes Enumerable.instance_methods, :map_concurrently
  end

  private

  # How many ran at the same time at most, and how many were left. All wait until so many run, and a few turns longer, in which
  # one too many could begin.
  def most_at_once(expected, source, **options)
    running = most = 0
    full = Ringspun::Condition.new
    source.map_concurrently(**options) do
      most = [most, running += 1].max
      full.wait if running < expected && most < expected
      5.times { wait(0) }
      full.broadcast
      running -= 1
    end
    [most, running]
  end
end

class SimulatedEvaluationCollectionsTest < EvaluationCollectionsTest
  include OnSimulation
end
