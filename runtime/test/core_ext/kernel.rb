# frozen_string_literal: true

require "test_helper"
require "ringspun/core_ext"

class CoreExtKernelTest < Minitest::Test
  NAMES = %i[concurrently concurrent_proc wait await_resume! await_fastest].freeze

  def test_they_are_private_methods_of_every_object
    NAMES.each do |name|
      assert Object.private_method_defined?(name), name
      refute_respond_to Object.new, name
    end
  end

  def test_concurrently_passes_everything_on
    evaluation = concurrently(1, key: 2) { |positional, key:| [positional, key] }
    assert_instance_of Ringspun::Evaluation, evaluation
    refute_predicate evaluation, :concluded?
    assert_equal [1, 2], evaluation.await_result
  end

  def test_concurrent_proc_makes_one
    own = Class.new(Ringspun::Evaluation)
    made = concurrent_proc(own) { Ringspun::Evaluation.current }
    assert_instance_of Ringspun::ConcurrentProc, made
    assert_instance_of own, made.call
    assert_instance_of Ringspun::Evaluation, concurrent_proc { Ringspun::Evaluation.current }.call
  end

  def test_wait_lets_others_run
    order = []
    evaluation = concurrently { order << :other }
    assert_equal true, wait(0)
    order << :self
    evaluation.await_result
    assert_equal %i[other self], order
    assert_raises(TypeError) { wait(nil) }
  end

  def test_await_resume
    evaluation = concurrently { await_resume! }
    wait 0
    evaluation.resume!(:value)
    assert_equal :value, evaluation.await_result
    assert_equal :late, await_resume!(within: 0.001, timeout_result: :late)
  end

  def test_await_fastest
    slow = concurrently { await_resume! }
    fast = concurrently { :fast }
    assert_same fast, await_fastest(slow, fast)
    slow.conclude_to nil
  end
end
