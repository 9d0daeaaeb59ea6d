# frozen_string_literal: true

require "test_helper"
require "concurrently"

class ConcurrentlyEvaluationsTest < Minitest::Test
  def setup
    super
    Concurrently::Proc.error_log_output = false
  end

  # The gem's text, in which the id is that of the log.
  def evaluation_error(message, evaluation, &)
    assert_equal <<~TEXT, assert_raises(Concurrently::Evaluation::Error, &).message
      #{message}
        Evaluation id: #{evaluation.__id__.to_s(36)}
        To debug how this happened enable logging of control flow with:

            require 'logger'
            Concurrently::Debug.enable Logger.new STDOUT
    TEXT
  end

  def test_current_of_the_root_and_inside
    root = Concurrently::Evaluation.current
    assert_kind_of Concurrently::Evaluation, root
    refute_kind_of Concurrently::Proc::Evaluation, root
    assert_same root, Concurrently::Evaluation.current
    evaluation = concurrently { Concurrently::Evaluation.current }
    assert_same evaluation, evaluation.await_result
  end

  def test_the_data_store
    evaluation = concurrently { Concurrently::Evaluation.current[:inside] = 1 }
    assert_equal [nil, false, []], [evaluation[:a], evaluation.key?(:a), evaluation.keys]
    evaluation[:a] = nil
    assert_equal [nil, true, [:a]], [evaluation[:a], evaluation.key?(:a), evaluation.keys]
    evaluation.await_result
    assert_equal %i[a inside], evaluation.keys
  end

  def test_many_await_one_result_again_and_again
    evaluation = concurrently { wait(0) && :result }
    others = Array.new(3) { concurrently { evaluation.await_result } }
    assert_equal [:result] * 5, [evaluation, evaluation, *others].map(&:await_result)
  end

  def test_a_block_takes_the_place_of_the_result
    assert_equal "result!", concurrently { :result }.await_result { |result| "#{result}!" }
    assert_equal "broken", concurrently { raise "broken" }.await_result(&:message)
    assert_raises(IOError) { concurrently { :result }.await_result { raise IOError } }
    assert_raises(IOError) { concurrently { :result }.await_result { IOError.new } }
    assert_nil concurrently { 1 }.await_result { nil }
    evaluation = concurrently { await_resume! }
    assert_equal Concurrently::Evaluation::TimeoutError, evaluation.await_result(within: 0.001, &:class)
    evaluation.conclude_to nil
  end

  def test_a_result_that_is_an_exception_is_raised
    assert_raises(IOError) { concurrently { IOError.new }.await_result }
    assert_raises(IOError) { concurrent_proc { IOError.new }.call }
    assert_raises(IOError) { concurrent_proc { IOError.new }.call_nonblock }
  end

  def test_await_result_with_a_limit
    evaluation = concurrently { await_resume! }
    error = assert_raises(Concurrently::Evaluation::TimeoutError) { evaluation.await_result within: 0.001 }
    assert_equal "evaluation timed out after 0.001 second(s)", error.message
    [nil, false, :late].each { |late| assert_equal [late], [evaluation.await_result(within: 0, timeout_result: late)] }
    limit = { within: 0.001, timeout_result: 1 }
    assert_equal 1, evaluation.await_result(limit)
    evaluation.conclude_to :done
    assert_equal :done, evaluation.await_result(within: 0)
  end

  # As the gem answers it.
  def test_a_result_that_was_due_before_the_limit
    before = concurrent_proc { wait(0.001) && :before }.call_nonblock
    concurrently { sleep 0.01 } # everything
    assert_equal :before, before.await_result(within: 0.001, timeout_result: :late)
  end

  def test_conclude_to_before_the_start
    evaluation = concurrently { flunk }
    assert_equal :concluded, evaluation.conclude_to(:early)
    wait 0
    assert_equal :early, evaluation.await_result
  end

  def test_conclude_to_runs_ensure_blocks_before_it_returns
    order = []
    evaluation = concurrent_proc do
      wait 1000
    rescue StandardError
      order << :wrong
    ensure
      order << :ensure
    end.call_nonblock
    waiter = concurrently { order << evaluation.await_result }
    wait 0
    evaluation.conclude_to :result
    order << :returned
    waiter.await_result
    assert_equal %i[ensure returned result], order
    assert_predicate evaluation, :concluded?
  end

  def test_conclude_to_from_inside
    evaluation = concurrently do
      Concurrently::Evaluation.current.conclude_to :first
      :second
    end
    assert_equal :first, evaluation.await_result
  end

  def test_conclude_to_an_exception
    evaluation = concurrently { await_resume! }
    evaluation.conclude_to IOError.new("closed")
    wait 0
    assert_raises(IOError) { evaluation.await_result }
  end

  def test_concluded_once_only
    evaluation = concurrently { :result }
    evaluation.await_result
    evaluation_error("already concluded", evaluation) { evaluation.conclude_to :other }
    assert_equal :result, evaluation.await_result
  end

  def test_resume
    evaluation = concurrent_proc { await_resume! }.call_nonblock
    assert_predicate evaluation, :waiting?
    assert_equal :resumed, evaluation.resume!(:value)
    evaluation_error("already scheduled", evaluation) { evaluation.resume! }
    assert_equal :value, evaluation.await_result
    refute_predicate evaluation, :waiting?
    evaluation_error("not waiting", evaluation) { evaluation.resume! }
    evaluation_error("not waiting", Concurrently::Evaluation.current) { Concurrently::Evaluation.current.resume! }
  end

  def test_resume_of_the_root
    root = Concurrently::Evaluation.current
    concurrently { root.resume! :from_inside }
    assert_equal :from_inside, await_resume!
  end

  def test_resume_ends_any_wait
    reader, writer = IO.pipe
    [-> { wait 1000 }, -> { wait 0 }, -> { reader.await_readable }, -> { await_resume! within: 1000 }].each do |body|
      evaluation = concurrent_proc(&body).call_nonblock
      assert_predicate evaluation, :waiting?
      evaluation.resume! :early
      assert_equal :early, evaluation.await_result
    end
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_waiter_that_was_concluded_first_is_skipped
    evaluation = concurrently { wait(0) && :result }
    waiter = concurrently { evaluation.await_result }
    concurrently { waiter.conclude_to :gone }.await_result
    assert_equal %i[gone result], [waiter, evaluation].map(&:await_result)
  end

  def test_await_fastest
    slow = concurrently { await_resume! }
    fast = concurrently { raise "broken" }
    assert_same fast, await_fastest(slow, fast)
    assert_same fast, await_fastest(slow, fast, within: 0)
    third = concurrently { await_resume! }
    assert_raises(Concurrently::Evaluation::TimeoutError) { await_fastest(slow, third, within: 0.001) }
    assert_nil await_fastest(slow, third, within: 0.001, timeout_result: nil)
    [slow, third].each { |each| each.conclude_to nil }
  end

  # As the gem, which looks up those that it knows.
  def test_other_keys_of_a_limit_are_ignored
    reader, writer = IO.pipe
    waiting = Array.new(2) { concurrent_proc { await_resume! }.call_nonblock }
    { within: 0, timeout_result: :late, other: 1, "within" => 5 }.then do |limit|
      late = [await_resume!(limit), await_resume!(**limit), waiting[0].await_result(limit), waiting[0].await_result(**limit),
              await_fastest(*waiting, limit), await_fastest(*waiting, **limit), reader.await_readable(limit),
              reader.await_readable(**limit)]
      assert_equal [:late] * 8, late
      assert_equal true, writer.await_writable(limit)
    end
    error = Concurrently::Evaluation::TimeoutError
    assert_raises(error) { await_resume!(within: 0, timeout_result: error) }
    concurrently { wait(0.001) && waiting[0].resume!(:value) }
    assert_equal :value, waiting[0].await_result(within: false)
    waiting[1].conclude_to nil
  ensure
    [reader, writer].each(&:close)
  end

  def test_two_that_conclude_in_the_same_pass
    both = Array.new(2) { concurrently { wait 0 } }
    assert_same both.first, await_fastest(*both)
    assert_equal [true, true], both.map(&:await_result)
  end

  def test_a_result_outlives_its_loop_and_its_thread
    evaluation = Thread.new { concurrently { :result }.tap(&:await_result).tap { Ringspun::Machine.current.close } }.value
    assert_equal :result, evaluation.await_result
    assert_equal "result", evaluation.await_result(&:to_s)
  end
end
