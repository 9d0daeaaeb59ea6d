# frozen_string_literal: true

require "test_helper"
require "support/evaluations"
require "support/signals"

# What comes from outside of the program's own cancellations: Fiber#raise and #kill, Thread#raise and #kill, exit and signals.
class EvaluationInterruptTest < Minitest::Test
  include Evaluations

  # --- Fiber#raise and Fiber#kill ---

  def test_fiber_raise_at_its_wait
    fiber = nil
    evaluation = begun { (fiber = Fiber.current).then { wait(Float::INFINITY) } }
    fiber.raise(Failure, "from outside")
    assert_failed Failure, evaluation, /from outside/
    assert_match(/from outside/, log.string)
  end

  def test_fiber_raise_in_one_that_waits_for_its_next_turn
    fiber = nil
    went_on = false
    evaluation = conproc { (fiber = Fiber.current).then { wait(0) }.then { went_on = true } }.call_nonblock
    fiber.raise(Failure)
    assert_failed Failure, evaluation
    refute went_on
  end

  def test_fiber_kill_of_one_that_waits_for_its_next_turn
    fiber = nil
    seen = []
    evaluation = conproc do
      fiber = Fiber.current
      wait(0)
      seen << :went_on
    ensure
      seen << :ensured
    end.call_nonblock
    fiber.kill
    assert_failed Ringspun::TerminatedError, evaluation
    assert_equal [:ensured], seen
  end

  def test_fiber_raise_can_be_rescued
    fiber = nil
    evaluation = begun do
      fiber = Fiber.current
      wait(Float::INFINITY)
    rescue Failure
      wait(0.001).then { :rescued }
    end
    fiber.raise(Failure)
    assert_equal :rescued, evaluation.await_result
  end

  def test_fiber_raise_in_a_call_in_it
    fiber = inner = nil
    evaluation = begun do
      fiber = Fiber.current
      conproc { (inner = current).then { wait(Float::INFINITY) } }.call
    end
    fiber.raise(Failure)
    assert_failed Failure, evaluation
    assert_failed Failure, inner
  end

  def test_fiber_kill
    ensured = []
    fiber = nil
    evaluation = begun do
      fiber = Fiber.current
      wait(Float::INFINITY)
    ensure
      ensured << :ensured
    end
    fiber.kill
    assert_failed Ringspun::TerminatedError, evaluation
    assert_equal [:ensured], ensured
    assert_equal(5, conproc { wait(0).then { 5 } }.call_detached.await_result)
  end

  def test_fiber_kill_in_a_call_in_it
    fiber = inner = nil
    evaluation = begun do
      fiber = Fiber.current
      conproc { (inner = current).then { wait(Float::INFINITY) } }.call
    end
    fiber.kill
    assert_failed Ringspun::TerminatedError, evaluation
    assert_failed Ringspun::TerminatedError, inner
  end

  def test_fiber_kill_does_not_hold_up_those_behind_it
    ran = []
    conproc { Fiber.current.kill }.call_and_forget
    3.times { |i| conproc { ran << i }.call_and_forget }
    settle
    assert_equal [0, 1, 2], ran
  end

  def test_fiber_kill_of_itself
    assert_failed Ringspun::TerminatedError, conproc { Fiber.current.kill }.call_detached
    assert_raises(Ringspun::TerminatedError) { conproc { Fiber.current.kill }.call_nonblock }
    assert_raises(Ringspun::TerminatedError) { conproc { current && Fiber.current.kill }.call_nonblock }
    assert_equal true, wait(0)
  end

  def test_fiber_raise_in_one_that_is_concluded
    fiber = nil
    seen = []
    evaluation = begun do
      fiber = Fiber.current
      wait(Float::INFINITY)
    ensure
      begin
        wait(Float::INFINITY)
      rescue Failure
        seen << :raised
      end
    end
    concluder = begun { evaluation.conclude_to(1) }
    fiber.raise(Failure)
    assert_equal :concluded, concluder.await_result
    assert_equal [1, [:raised]], [evaluation.await_result, seen]
  end

  # --- Thread#raise and Thread#kill ---

  def test_thread_raise_in_one_that_runs
    error = error_of do
      on_thread do
        evaluation = conproc { Thread.current.raise(Failure, "to who runs") }.call_detached
        [evaluation.await_result(&:message), wait(0)]
      end.then { |seen| assert_equal ["to who runs", true], seen }
    end
    assert_nil error
  end

  def test_thread_raise_while_all_wait_goes_to_the_root
    ensured = []
    seen = on_thread do
      thread = Thread.current
      evaluation = waiting(ensured)
      Thread.new { Thread.pass until thread.stop?; thread.raise(Failure, "to the root") }
      message = error_of { evaluation.await_result }.message
      [message, evaluation.concluded?, wait(0)].tap { evaluation.conclude_to(1) }
    end
    assert_equal ["to the root", false, true], seen
    assert_equal [:ensured], ensured
  end

  def test_thread_kill_runs_all_ensure_blocks
    ensured = []
    ready = Thread::Queue.new
    thread = Thread.new do
      2.times { |i| waiting(ensured, i) }
      nested = begun { conproc { begin; wait(Float::INFINITY); ensure; ensured << :inner; end }.call }
      ready << 1
      nested.await_result
    ensure
      Ringspun::Machine.current.close
    end
    ready.pop
    thread.kill.join
    assert_equal [0, 1, :inner], ensured.sort_by(&:to_s)
  end

  # --- exit ---

  def test_exit_leaves_through_the_wait_of_the_root
    evaluation = conproc { wait(0).then { exit 3 } }.call_detached
    assert_equal 3, assert_raises(SystemExit) { wait(1) }.status
    assert_failed SystemExit, evaluation
    assert_equal true, wait(0)
  end

  %w[call call_nonblock call_detached call_and_forget].each do |form|
    define_method("test_exit_out_of_a_#{form}_ends_the_program") do
      answer = child(<<~RUBY)
        other = Ringspun.concurrent_proc { begin; Ringspun.wait(100); ensure; puts "other ensured"; end }.call_nonblock
        begin
          Ringspun.concurrent_proc { begin; Ringspun.wait(0); exit 3; ensure; puts "ensured"; end }.#{form}
          Ringspun.wait(100)
        ensure
          puts "root ensured"
        end
      RUBY
      assert_equal ["ensured\nroot ensured\n", "", 3], [answer.out, answer.err, answer.status.exitstatus]
    end

    define_method("test_exit_out_of_a_#{form}_in_a_run_unwinds_all") do
      answer = child(<<~RUBY)
        Ringspun.run do
          Ringspun.concurrent_proc { begin; Ringspun.wait(100); ensure; puts "other ensured"; end }.call_nonblock
          Ringspun.concurrent_proc { begin; Ringspun.wait(0); exit 3; ensure; puts "ensured"; end }.#{form}
          Ringspun.wait(100)
        end
      RUBY
      assert_equal [["ensured", "other ensured"], "", 3], [answer.out.lines(chomp: true), answer.err, answer.status.exitstatus]
    end
  end

  def test_exit_with_a_bang
    answer = child("Ringspun.concurrent_proc { exit!(4) }.call_detached.await_result")
    assert_equal 4, answer.status.exitstatus
  end

  def test_abort
    answer = child("Ringspun.concurrent_proc { abort 'why' }.call_detached\nRingspun.wait(100)")
    assert_equal [1, "why\n"], [answer.status.exitstatus, answer.err]
  end
end

# Ctrl-C.
class EvaluationSignalTest < Minitest::Test
  include Signals

  HELPERS = <<~'RUBY'
    def evaluation(name, seconds = 100)
      Ringspun.concurrent_proc { begin; Ringspun.wait(seconds); ensure; puts name; end }.call_detached
    end
  RUBY

  def test_int_in_a_run_while_all_wait
    lines = ended_by("INT", HELPERS + <<~RUBY)
      Ringspun.run do
        all = Array.new(2) { |i| evaluation("evaluation \#{i}") }
        kill_when_asleep("INT")
        Ringspun.await_fastest(*all)
      ensure
        puts "root"
      end
    RUBY
    assert_equal ["evaluation 0", "evaluation 1", "root"], lines.sort
  end

  def test_int_in_a_run_while_one_runs
    lines = ended_by("INT", HELPERS + <<~RUBY)
      Ringspun.run do
        evaluation("waits")
        Ringspun.concurrent_proc do
          kill_myself("INT")
          10_000.times { |i| i * i }
          puts "computed to the end"
          Ringspun.wait(0)
          puts "never"
        end.call_detached.await_result
      end
    RUBY
    assert_equal ["computed to the end", "waits"], lines
  end

  def test_int_in_a_call_in_a_nonblock
    lines = ended_by("INT", HELPERS + <<~RUBY)
      Ringspun.run do
        inner = Ringspun.concurrent_proc { begin; kill_when_asleep("INT"); Ringspun.wait(100); ensure; puts "inner"; end }
        Ringspun.concurrent_proc { begin; inner.call; ensure; puts "outer"; end }.call_nonblock.await_result
      end
    RUBY
    assert_equal %w[inner outer], lines
  end

  def test_int_without_a_run
    lines = ended_by("INT", HELPERS + <<~RUBY)
      one = evaluation("evaluation")
      kill_when_asleep("INT")
      begin
        one.await_result
      ensure
        puts "root"
      end
    RUBY
    assert_equal %w[root], lines
  end

  def test_int_that_the_program_rescues
    assert_program("rescued\n5\nevaluation\n", HELPERS + <<~RUBY)
      one = evaluation("evaluation")
      kill_when_asleep("INT")
      begin
        one.await_result
      rescue Interrupt
        puts "rescued"
      end
      puts Ringspun.concurrent_proc { Ringspun.wait(0.001).then { 5 } }.call_detached.await_result
      one.conclude_to(1)
    RUBY
  end
end

class SimulatedEvaluationInterruptTest < EvaluationInterruptTest
  include OnSimulation

  # A simulated machine waits for no other thread.
  def test_thread_raise_while_all_wait_goes_to_the_root = pass
end
