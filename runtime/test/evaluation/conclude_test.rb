# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Evaluation#conclude_to.
class EvaluationConcludeTest < Minitest::Test
  include Evaluations

  def test_sets_the_result
    evaluation = waiting
    assert_equal :concluded, evaluation.conclude_to(5)
    assert_predicate evaluation, :concluded?
    assert_equal 5, evaluation.await_result
  end

  def test_to_an_error
    evaluation = waiting
    error = Failure.new
    evaluation.conclude_to(error)
    assert_same error, error_of { evaluation.await_result }
    assert_empty log.string
  end

  def test_ensure_blocks_run_before_it_returns
    ensured = []
    evaluation = begun do
      begin
        wait(Float::INFINITY)
      ensure
        ensured << :inner
      end
    ensure
      ensured << :outer
    end
    evaluation.conclude_to(1)
    assert_equal %i[inner outer], ensured
  end

  def test_raises_cancelled_where_it_waits
    seen = nil
    evaluation = begun do
      wait(Float::INFINITY)
    rescue Exception => e
      seen = e
      raise
    end
    evaluation.conclude_to(1)
    assert_instance_of Cancelled, seen
    assert_equal 1, evaluation.await_result
  end

  def test_a_rescue_of_standard_errors_does_not_see_it
    rescued = false
    evaluation = begun do
      wait(Float::INFINITY)
    rescue StandardError
      rescued = true
    end
    evaluation.conclude_to(1)
    refute rescued
  end

  def test_returns_when_ensure_blocks_that_wait_have_ended
    ensured = []
    evaluation = begun do
      wait(Float::INFINITY)
    ensure
      (ensured << :begins).then { wait(0.001) }.then { ensured << :ends }
    end
    evaluation.conclude_to(1)
    assert_equal %i[begins ends], ensured
  end

  def test_a_resume_does_not_end_its_own_wait
    seen = []
    target = begun do
      wait(Float::INFINITY)
    ensure
      wait(0.005)
      seen << :ensured
    end
    concluder = begun do
      target.conclude_to(1)
      seen << :concluded
      Ringspun.await_resume!(within: 0, timeout_result: :late)
    end
    refute_predicate concluder, :waiting?
    assert_raises(Evaluation::Error) { concluder.resume!(:resumed) }
    assert_equal :late, concluder.await_result
    assert_equal %i[ensured concluded], seen
  end

  def test_waiters_go_on_after_it
    order = []
    evaluation = waiting(order)
    waiter = begun { evaluation.await_result.then { order << :waiter } }
    evaluation.conclude_to(1)
    order << :concluder
    waiter.await_result
    assert_equal %i[ensured concluder waiter], order
  end

  def test_all_waiters_have_the_result
    evaluation = waiting
    waiters = Array.new(5) { begun { evaluation.await_result } }
    fastest = begun { Ringspun.await_fastest(evaluation, waiting) }
    evaluation.conclude_to(:result)
    assert_equal [:result] * 5, waiters.map(&:await_result)
    assert_same evaluation, fastest.await_result
    machine.strands.each { |strand| machine.terminate(strand) if strand != machine.running }
    settle
  end

  def test_it_takes_no_turn_of_the_others
    ran = false
    evaluation = waiting
    conproc { ran = true }.call_and_forget
    evaluation.conclude_to(1)
    refute ran
    settle
  end

  # --- before it has begun ---

  def test_before_its_start_the_block_never_runs
    ran = []
    evaluations = Array.new(3) { |i| conproc { ran << i }.call_detached }
    assert_equal :concluded, evaluations[1].conclude_to(5)
    assert_equal 5, evaluations[1].await_result
    settle
    assert_equal [0, 2], ran
  end

  def test_all_of_them_before_their_start
    evaluations = Array.new(20) { conproc { flunk }.call_detached }
    evaluations.each_with_index { |evaluation, i| evaluation.conclude_to(i) }
    assert_equal (0..19).to_a, evaluations.map(&:await_result)
    settle
  end

  def test_before_its_start_waiters_have_the_result
    evaluation = nil
    waiter = conproc { evaluation.await_result }.call_detached
    killer = conproc { evaluation.conclude_to(5) }.call_detached
    evaluation = conproc { flunk }.call_detached
    assert_equal [5, :concluded], [waiter.await_result, killer.await_result]
  end

  # --- from inside ---

  def test_from_inside_the_later_result_is_dropped
    evaluation = conproc { current.conclude_to(1).then { 2 } }.call_detached
    assert_equal 1, evaluation.await_result
  end

  def test_from_inside_the_block_goes_on
    went_on = []
    evaluation = begun { current.conclude_to(1).then { wait(0.001) }.then { went_on << 1 } }
    assert_predicate evaluation, :concluded?
    assert_equal 1, evaluation.await_result
    wait(0.005)
    assert_equal [1], went_on
  end

  def test_from_inside_a_later_error_is_dropped
    evaluation = conproc { current.conclude_to(1).then { raise Failure, "late" } }.call_detached
    assert_equal 1, evaluation.await_result
    settle
    assert_match(/late/, log.string)
  end

  def test_from_inside_a_call
    assert_equal 1, conproc { current.conclude_to(1).then { 2 } }.call
    assert_equal 1, conproc { current.conclude_to(1).then { raise Failure } }.call
    assert_raises(Failure) { conproc { current.conclude_to(Failure.new).then { 2 } }.call }
  end

  # --- twice ---

  def test_twice
    evaluation = waiting
    evaluation.conclude_to(1)
    error = assert_raises(Evaluation::Error) { evaluation.conclude_to(2) }
    assert_equal "already concluded", error.message
    assert_equal 1, evaluation.await_result
  end

  def test_one_that_has_ended
    evaluation = conproc { 1 }.call_detached
    evaluation.await_result
    assert_raises(Evaluation::Error) { evaluation.conclude_to(2) }
  end

  def test_while_it_unwinds
    error = nil
    evaluation = begun do
      mine = current
      wait(Float::INFINITY)
    ensure
      error = error_of { mine.conclude_to(2) }
    end
    evaluation.conclude_to(1)
    assert_equal "already concluded", error.message
    assert_equal 1, evaluation.await_result
  end

  def test_that_of_a_strand
    assert_raises(Ringspun::UsageError) { current.conclude_to(1) }
  end

  # --- what it meets ---

  def test_one_that_goes_on_already_is_cancelled_before_it_does
    went_on = false
    evaluation = conproc { wait(0).then { wait(0) }.then { went_on = true } }.call_detached
    wait(0)
    evaluation.conclude_to(1)
    settle
    refute went_on
  end

  def test_one_that_waits_for_its_next_turn
    { wait: -> { wait(0) }, sleep: -> { machine.sleep(0) }, yield: -> { machine.yield } }.each do |name, waits|
      seen = []
      evaluation = conproc do
        waits.call
        seen << :went_on
      rescue Cancelled
        seen << :cancelled
      end.call_nonblock
      evaluation.conclude_to(1)
      assert_equal [:cancelled], seen, name
      settle
      assert_equal [[:cancelled], 1], [seen, evaluation.await_result], name
    end
  end

  def test_under_a_shield_the_next_turn_is_no_place_to_be_cancelled
    order = []
    evaluation = conproc do
      Ringspun.shield { wait(0).then { order << :shielded } }
      wait(0)
      order << :never
    ensure
      order << :ensured
    end.call_nonblock
    evaluation.conclude_to(1)
    assert_equal %i[shielded ensured], order
  end

  def test_one_whose_time_has_come
    went_on = false
    evaluation = begun { wait(0.001).then { went_on = true } }
    killer = begun { wait(0.001).then { evaluation.conclude_to(1) } unless evaluation.concluded? }
    killer.await_result { nil }
    assert_equal evaluation.concluded?, true
    assert_includes [1, true], evaluation.await_result
    assert_equal went_on, evaluation.await_result == true
  end

  def test_one_that_rescues_everything_goes_on_and_its_value_is_dropped
    went_on = []
    evaluation = begun do
      wait(Float::INFINITY)
    rescue Exception
      wait(0.001)
      went_on << :on
      2
    end
    evaluation.conclude_to(1)
    assert_equal [:on], went_on
    assert_equal 1, evaluation.await_result
  end

  def test_an_error_of_its_ensure_block_goes_to_the_handlers_only
    evaluation = begun do
      wait(Float::INFINITY)
    ensure
      raise Failure, "in ensure"
    end
    evaluation.conclude_to(1)
    assert_equal 1, evaluation.await_result
    assert_match(/in ensure/, log.string)
  end

  def test_a_second_wait_in_its_ensure_block_is_not_cancelled
    ensured = nil
    evaluation = begun do
      wait(Float::INFINITY)
    ensure
      ensured = conproc { wait(0.001).then { 6 } }.call_detached.await_result
    end
    evaluation.conclude_to(1)
    assert_equal 6, ensured
  end

  def test_under_a_shield_it_goes_on_to_its_end
    order = []
    evaluation = begun do
      Ringspun.shield { wait(0.001).then { order << :shielded } }
      order << :between
      wait(0)
      order << :never
    end
    evaluation.conclude_to(1)
    assert_equal %i[shielded between], order
  end

  def test_one_that_ends_before_it_waits_again
    evaluation = begun { Ringspun.shield { wait(0.001) } }
    evaluation.conclude_to(1)
    assert_equal 1, evaluation.await_result
    assert_equal(2, conproc { wait(0).then { 2 } }.call_detached.await_result)
  end

  def test_each_other
    second = nil
    ends = []
    first = begun { begin; wait(Float::INFINITY); ensure; ends << error_of { second.conclude_to(2) }&.message; end }
    second = begun { begin; wait(Float::INFINITY); ensure; ends << error_of { first.conclude_to(1) }&.message; end }
    first.conclude_to(0)
    assert_equal ["already concluded", nil], ends
    assert_equal [0, 2], [first, second].map(&:await_result)
  end

  def test_a_concluder_that_is_concluded_itself
    target = begun do
      wait(Float::INFINITY)
    ensure
      wait(0.002)
    end
    concluder = begun { target.conclude_to(1) }
    concluder.conclude_to(2)
    assert_equal [1, 2], [target, concluder].map(&:await_result)
    wait(0.01)
  end

  def test_the_one_that_waits_for_its_concluder
    target = nil
    concluder = conproc { target.conclude_to(:by_other) }
    target = begun { concluder.call_detached.await_result }
    assert_equal :by_other, target.await_result
    settle
  end

  def test_many_in_a_row
    ensured = []
    evaluations = Array.new(100) { |i| waiting(ensured, i) }
    evaluations.each_with_index { |evaluation, i| evaluation.conclude_to(i) }
    assert_equal (0..99).to_a, ensured
    assert_equal (0..99).to_a, evaluations.map(&:await_result)
  end

  # --- other waits ---

  WAITS = {
    strand: ->(test) { test.machine.spin { test.machine.sleep(0.005) }.join },
    queue: ->(_) { Ringspun::Queue.new.pop },
    mutex: ->(_) { Ringspun::Mutex.new.tap { |mutex| mutex.lock }.then { |mutex| Ringspun.spin { mutex.lock }.join } },
    semaphore: ->(_) { Ringspun::Semaphore.new(1).tap(&:acquire).acquire },
    sleep: ->(test) { test.machine.sleep },
    scope: ->(test) { test.machine.scope { |scope| scope.spin { test.machine.sleep } } },
    schedule: ->(test) { test.machine.park },
    resume: ->(_) { Ringspun.await_resume! },
    evaluation: ->(test) { test.conproc { Ringspun.await_resume!(within: 0.005, timeout_result: 1) }.call_detached.await_result },
    fastest: ->(test) { Ringspun.await_fastest(*Array.new(2) { test.conproc { Ringspun.wait(0.005) }.call_detached }) }
  }.freeze

  WAITS.each do |name, wait|
    define_method("test_one_that_waits_for_a_#{name}") do
      ensured = []
      evaluation = begun do
        wait.call(self)
        ensured << :never
      ensure
        ensured << :ensured
      end
      evaluation.conclude_to(1)
      assert_equal [:ensured], ensured
      assert_equal 1, evaluation.await_result
      machine.strands.each { |strand| machine.terminate(strand) if strand != machine.running }
      wait(0.001) until machine.strands.one? # those behind one that is terminated begin then
    end
  end
end

class SimulatedEvaluationConcludeTest < EvaluationConcludeTest
  include OnSimulation
end
