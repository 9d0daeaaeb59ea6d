# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# A fork inside an evaluation: it goes on in the child, and all others are the parent's.
class EvaluationForkTest < Minitest::Test
  include Evaluations

  def assert_in_child(&block) = assert_predicate(in_child(&block), :success?)

  def use_it
    assert_equal 1, conproc { wait(0).then { 1 } }.call
    assert_equal 2, conproc { 2 }.call_nonblock
    assert_equal 3, conproc { wait(0.000_1).then { 3 } }.call_detached.await_result
    ran = []
    3.times { |i| conproc { ran << i }.call_and_forget }
    wait(0)
    assert_equal [0, 1, 2], ran
    pair = [0.000_1, 10].map { |seconds| conproc { wait(seconds) }.call_detached }
    assert_same pair[0], Ringspun.await_fastest(*pair)
    assert_equal :concluded, pair[1].conclude_to(5)
    error = error_of { conproc { raise Failure }.call_detached.await_result }
    assert_instance_of Failure, error
  end

  def test_in_the_root
    assert_in_child { use_it }
    use_it
  end

  %i[call call_nonblock call_detached].each do |form|
    define_method("test_in_a_#{form}") do
      value = conproc { assert_in_child { use_it } && wait(0) && :value }.__send__(form)
      assert_equal :value, value.is_a?(Evaluation) ? value.await_result : value
      use_it
    end
  end

  # The strand that waits stays in the parent, with what its wait has borrowed.
  def test_beside_one_that_awaits_the_fastest
    pair = Array.new(2) { waiting }
    waiter = begun { Ringspun.await_fastest(*pair) }
    assert_in_child do
      use_it
      GC.start
      use_it
    end
    pair[1].conclude_to(1)
    assert_same pair[1], waiter.await_result
    assert_in_child { use_it }
    end_all(*pair)
  end

  def test_current_is_the_same_one_in_the_child
    conproc do
      mine = current
      mine[:x] = 1
      assert_in_child { assert_equal [mine, 1, false], [current, current[:x], mine.concluded?] }
    end.call_detached.await_result
  end

  def test_others_do_not_run_in_the_child
    ensured = []
    other = waiting(ensured)
    later = conproc { ensured << :never }.call_detached
    conproc do
      assert_in_child do
        5.times { wait(0.000_1) }
        assert_empty ensured
        [other, later].each { |one| assert_failed Ringspun::TerminatedError, one, /parent/ }
        [other, later].each { |one| assert_raises(Evaluation::Error) { one.conclude_to(1) } }
        assert_raises(Evaluation::Error) { other.resume! }
        refute_predicate other, :waiting?
      end
    end.call_nonblock
    refute_predicate other, :concluded?
    end_all other, later
    settle
  end

  # Their stacks are gone there, and what lay on them.
  def test_others_are_collected_in_the_child
    others = Array.new(200) { conproc { wait(Float::INFINITY) }.call_detached }
    wait(0)
    assert_in_child do
      3.times { GC.start.then { Array.new(300) { |i| Fiber.new { Fiber.yield("#{i}") }.tap(&:resume) } } }
      others.each { |one| assert_failed Ringspun::TerminatedError, one, /parent/ }
    end
    end_all(*others)
  end

  # Suspended in the middle of a call: in the child the fiber may go on, without its strand.
  def test_a_suspended_call_goes_on_in_the_child
    suspended = conproc do
      current
      Fiber.yield
      :value
    end
    fibers = []
    others = Array.new(50) do
      conproc do
        fibers << Fiber.new { suspended.call }.tap(&:resume)
        wait(Float::INFINITY)
      end.call_detached
    end
    wait(0)
    assert_in_child do
      wait(0)
      3.times { GC.start.then { Array.new(100) { |i| Fiber.new { Fiber.yield("#{i}") }.tap(&:resume) } } }
      strings = [16, 60, 150, 300, 620].flat_map { |bytes| Array.new(5000) { "a" * bytes } } # where its handle was
      assert_equal [:value] * 50, fibers.map(&:resume)
      assert(strings.all? { |string| string.delete("a").empty? })
      use_it
    end
    end_all(*others)
  end

  # In the child nobody would begin those that stand behind the parent's in the run queue.
  def test_those_that_had_not_begun_do_not_hold_up_the_childs_own
    ran = []
    conproc { ran << :parent }.call_and_forget
    assert_in_child do
      order = []
      3.times do |i|
        machine.spin { order << [i] }
        conproc { order << i }.call_and_forget
      end
      2.times { wait(0) }
      assert_equal [[0], 0, [1], 1, [2], 2], order
    end
    wait(0)
    assert_equal [:parent], ran
  end

  def test_those_behind_the_one_that_forks_are_the_parents
    ran = []
    first = conproc { in_child { wait(0.000_1).then { assert_empty ran } } }.call_detached
    3.times { |i| conproc { ran << i }.call_and_forget }
    assert_predicate first.await_result, :success?
    wait(0)
    assert_equal [0, 1, 2], ran
  end

  def test_a_fork_without_a_block_that_others_wait_for
    assert_child("parent waited: 0\n", <<~RUBY)
      other = Ringspun.concurrent_proc { Ringspun.wait(100) }.call_detached
      evaluation = Ringspun.concurrent_proc do
        pid = fork
        pid ? Process.wait2(pid).last.exitstatus : Ringspun.wait(0.001)
      end.call_detached
      waiters = Array.new(2) { Ringspun.concurrent_proc { Ringspun.await_fastest(evaluation, other) }.call_nonblock }
      puts "parent waited: \#{evaluation.await_result}"
      waiters.each(&:await_result)
      other.conclude_to(1)
    RUBY
  end

  # It is what its strand is at; who has called that is not there.
  def test_the_status_of_a_child_without_a_block
    assert_child("[3, 1, 0, 3, 1, 0]\n", <<~RUBY)
      Ringspun::ConcurrentProc.error_log_output = nil
      made = Ringspun.concurrent_proc do |ends|
        pid = fork
        next Process.wait2(pid).last.exitstatus if pid

        3.times { GC.start.then { Array.new(100) { |i| Fiber.new { Fiber.yield(i.to_s) }.tap(&:resume) } } }
        ends.call
      end
      ways = [-> { exit 3 }, -> { raise "broken" }, -> { 5 }]
      called = machine.spin { ways.map { |ends| made.call_nonblock(ends) } }
      p ways.map { |ends| made.call_detached(ends).await_result } + called.await
    RUBY
  end

  def test_a_fork_in_a_call_in_an_enumerator
    made = conproc do
      Enumerator.new { |list| conproc { list << in_child { wait(0.000_1).then { use_it } } }.call }.next
    end
    assert_predicate made.call_detached.await_result, :success?
  end
end

class SimulatedEvaluationForkTest < EvaluationForkTest
  include OnSimulation
end
