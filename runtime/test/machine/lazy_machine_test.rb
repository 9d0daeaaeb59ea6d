# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# A machine is made when it is first asked for, which may be on any fiber of its thread, and lives on when that one has ended.
class LazyMachineTest < Minitest::Test
  include Evaluations

  # On a thread that has no machine yet.
  def on_new_thread
    Thread.new do
      Thread.current.report_on_exception = false
      refute_predicate Ringspun::Machine, :current?
      yield
    ensure
      Ringspun::Machine.current.close
    end.value
  end

  # Enough for fibers to end that ran strands, because they cannot be used again.
  def work
    assert_equal 19_900, Array.new(200) { |i| conproc { wait(0.000_1).then { i } }.call_detached }.sum(&:await_result)
    soiled = Array.new(80) do |i|
      conproc { Fiber.current.instance_variable_set(:@soiled, true).then { wait(0) && i } }.call_detached
    end
    assert_equal 80.times.to_a, soiled.map(&:await_result)
    assert_equal(5, conproc { wait(0).then { 5 } }.call)
    GC.start
  end

  def items(count = 2) = Enumerator.new { |list| count.times { |i| wait(0.000_1).then { work }.then { list << i } } }

  def test_in_an_enumerator
    seen = on_new_thread do
      items = items()
      [items.next, work && nil, items.next, error_of { items.next }.class].tap { work }
    end
    assert_equal [0, nil, 1, StopIteration], seen
  end

  def test_in_a_fiber_that_has_ended
    on_new_thread do
      Fiber.new { wait(0) }.resume
      work
    end
  end

  def test_in_a_fiber_that_nobody_resumes_again
    on_new_thread do
      Fiber.new { wait(0).then { Fiber.yield } }.resume
      work
    end
  end

  # CRuby goes back to another fiber than the one that made it, when one that ran strands ends.
  def test_in_a_fiber_that_was_transferred_to
    order = on_new_thread do
      order = []
      thread = Fiber.current
      Fiber.new { wait(0).then { work }.then { order << :worked }.then { thread.transfer } }.transfer
      order << :back
      work
      order
    end
    assert_equal %i[worked back], order
  end

  def test_in_an_enumerator_in_a_fiber_that_was_transferred_to
    seen = on_new_thread do
      thread = Fiber.current
      seen = Fiber.new { items.then { |items| thread.transfer([items.next, items.next]) } }.transfer
      work
      seen
    end
    assert_equal [0, 1], seen
  end

  def test_a_run
    on_new_thread { Enumerator.new { |list| list << Ringspun.run { work } << Ringspun.run { work } }.next.then { work } }
  end

  # The root has an evaluation of its own, wherever it runs, and a suspended call is none of it.
  def test_a_call_that_is_suspended_with_that_fiber
    on_new_thread do
      inner = nil
      call = conproc { (inner = current).then { Fiber.yield }.then { wait(0.000_1) } }
      fiber = Fiber.new { call.call }
      fiber.resume
      refute_same inner, current
      refute_predicate inner, :waiting?
      assert_equal :concluded, inner.conclude_to(1)
      assert_equal true, wait(0.000_1)
      assert_equal 1, inner.await_result
      assert_equal 1, fiber.resume
    end
  end

  def test_what_ends_the_program_leaves_through_the_wait_of_the_root
    statuses = on_new_thread do
      ends = lambda do |status|
        conproc { exit status }.call_detached
        error_of { wait(1) }.status
      end
      items = Enumerator.new { |list| 2.times { |i| list << ends.call(i) } }
      [items.next, ends.call(5), items.next, ends.call(6)]
    end
    assert_equal [0, 5, 1, 6], statuses
  end

  def test_its_thread_is_killed
    ensured = []
    ready = Thread::Queue.new
    thread = Thread.new do
      items = Enumerator.new do |list|
        wait(0)
        list << waiting(ensured, :evaluation)
        ready << true
        wait(Float::INFINITY)
      ensure
        ensured << :enumerator
      end
      items.next
      items.next
    ensure
      work
      ensured << :thread
      machine.close
    end
    ready.pop
    Thread.pass until thread.stop?
    thread.kill.join
    assert_equal %i[enumerator evaluation thread], ensured.sort
  end

  def test_a_fork_in_it
    on_new_thread do
      items = Enumerator.new { |list| conproc { list << in_child { work } << in_child { work } }.call }
      assert_predicate items.next, :success?
      work
      assert_predicate items.next, :success?
    end
  end
end
