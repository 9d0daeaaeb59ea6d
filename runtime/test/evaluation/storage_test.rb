# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Fiber storage: inherited from who calls, as a copy, and never left to the next run on the same fiber.
class EvaluationStorageTest < Minitest::Test
  include Evaluations

  def with_storage(**values, &block) = Fiber.new(storage: values, &block).resume

  FORMS = {
    call_nonblock: ->(made) {
      made.call_nonblock.then { |value|
        value.is_a?(Ringspun::Evaluation) ? value.await_result : value
      }
    },
    call_detached: ->(made) { made.call_detached.await_result },
    concurrently: ->(made) { Ringspun.concurrently(&made).await_result },
    in_a_scope: ->(made) { Ringspun.scope { |scope| scope.concurrently(&made).await_result } }
  }.freeze

  FORMS.each do |name, form|
    define_method("test_#{name}_inherits") do
      with_storage(user: "ann") do
        assert_equal({ user: "ann" }, form.call(conproc { Fiber.current.storage }))
        assert_equal "ann", form.call(conproc { wait(0).then { Fiber[:user] } })
        assert_equal "ann", form.call(conproc { form.call(conproc { Fiber[:user] }) })
      end
    end

    define_method("test_#{name}_has_a_copy") do
      with_storage(user: "ann") do
        form.call(conproc { Fiber[:user] = "bob" })
        form.call(conproc { wait(0).then { Fiber[:user] = "bob" } })
        assert_equal "ann", Fiber[:user]
      end
    end

    define_method("test_#{name}_leaves_nothing_to_the_next_run") do
      first = form.call(conproc { Fiber[:mine] = Thread.current[:mine] = 1 and Fiber.current })
      seen = form.call(conproc {
        [Fiber.current, Fiber[:mine], Fiber.current.storage, Thread.current[:mine], Thread.current.keys]
      })
      assert_same first, seen.shift, "not the same fiber: this proves nothing"
      assert_equal [nil, {}, nil, []], seen
    end

    define_method("test_#{name}_leaves_no_error_to_the_next_run") do
      error_of { form.call(conproc { raise Failure }) }
      assert_nil form.call(conproc { $! })
      error_of { form.call(conproc { raise Failure }) }
      assert_nil error_of { form.call(conproc { raise ArgumentError }) }.cause
    end
  end

  def test_call_and_forget_inherits_and_leaves_nothing
    seen = []
    note = conproc { seen << [Fiber.current, Fiber[:user], Fiber[:mine]] and Fiber[:mine] = 1 }
    with_storage(user: "ann") { note.call_and_forget }
    note.call_and_forget
    with_storage(user: "bob") { note.call_and_forget }
    settle
    assert_equal [["ann", nil], [nil, nil], ["bob", nil]], seen.map { |_, *rest| rest }
    assert_equal 1, seen.map(&:first).uniq(&:object_id).size
  end

  def test_storage_as_it_is_when_it_is_called
    with_storage(user: "ann") do
      evaluation = conproc { Fiber[:user] }.call_detached
      Fiber[:user] = "bob"
      assert_equal "ann", evaluation.await_result
    end
  end

  def test_call_has_the_callers_own
    with_storage(user: "ann") do
      conproc { Fiber[:user] = "bob" }.call
      assert_equal "bob", Fiber[:user]
    end
  end

  def test_storage_does_not_pass_between_those_that_wait
    all = Array.new(3) { |i| conproc { (Fiber[:i] = i).then { wait(0) }.then { Fiber[:i] } }.call_detached }
    assert_equal [0, 1, 2], all.map(&:await_result)
  end

  def test_the_last_error_is_kept_across_waits
    other = conproc { 3.times { error_of { raise Failure, "other" }.then { wait(0) } } }.call_detached
    seen = conproc do
      raise Failure, "mine"
    rescue Failure
      wait(0)
      [$!.message, error_of { wait(0).then { raise } }.message]
    end.call_detached.await_result
    assert_equal %w[mine mine], seen
    other.await_result
  end

  def test_a_fiber_that_holds_a_stock_mutex_is_not_used_again
    seen = on_thread do
      kept = nil
      first = conproc { (kept = Thread::Mutex.new).lock && Fiber.current }.call_nonblock
      [kept, first, conproc { Fiber.current }.call_nonblock]
    end
    refute_same seen[1], seen[2]
  end

  def test_a_fiber_with_instance_variables_is_not_used_again
    first = conproc { Fiber.current.tap { |fiber| fiber.instance_variable_set(:@state, 1) } }.call_detached.await_result
    second = conproc { Fiber.current }.call_detached.await_result
    refute_same first, second
    fibers = Array.new(3) { conproc { Fiber.current.tap { |fiber| fiber.instance_variable_set(:@state, 1) } }.call_detached }
    assert_equal 3, fibers.map(&:await_result).uniq(&:object_id).size
  end
end

class SimulatedEvaluationStorageTest < EvaluationStorageTest
  include OnSimulation
end
