# frozen_string_literal: true

require "test_helper"
require "support/signals"

# Ringspun.run; what it does with signals is in signal_test.rb.
class RunTest < Minitest::Test
  include Signals

  def test_the_value_of_the_block
    assert_equal 5, Ringspun.run { 5 }
    assert_nil Ringspun.run {}
  end

  def test_the_block_gets_the_machine
    assert_same machine, Ringspun.run { |running| running }
  end

  def test_the_block_runs_in_a_strand_of_its_own
    root = machine.running
    refute_same root, Ringspun.run { machine.running }
  end

  def test_a_run_without_a_block
    assert_raises(Ringspun::UsageError) { Ringspun.run }
  end

  def test_it_waits_for_strands_spun_meanwhile
    seen = []
    Ringspun.run do |machine|
      machine.spin { 3.times { machine.yield }.then { seen << :one } }
      Ringspun.spin { machine.spin { machine.sleep(0.000_1).then { seen << :two } } }
    end
    assert_equal %i[one two], seen.sort
  end

  def test_it_does_not_wait_for_strands_spun_before
    before = machine.spin { machine.park }
    assert_equal(5, Ringspun.run { 5 })
    assert_predicate before, :alive?
    machine.schedule(before)
    before.join
  end

  def test_strands_spun_after_it_belong_to_nobody
    Ringspun.run {}
    strand = machine.spin { machine.park }
    Ringspun.run {}
    assert_predicate strand, :alive?
    machine.schedule(strand)
    strand.join
  end

  def test_it_ends_strands_beside_it_and_waits_for_those_that_are_needed
    seen = []
    hold = lambda do |name, **needed|
      machine.__send__(:spin_beside, **needed) do |done|
        seen << :"#{name}_runs_at_once"
        machine.sleep(0.001)
        done.call
        machine.sleep
      ensure
        seen << name
      end
    end
    Ringspun.run { [hold.call(:needed, needed: true), hold.call(:other)].each { |strand| assert_predicate strand, :alive? } }
    assert_equal %i[needed_runs_at_once other_runs_at_once needed other], seen
  end

  def test_it_waits_for_a_strand_beside_it_for_a_second_at_most
    took = on_thread do
      machine = Ringspun::Machine.new(backend: :sim, faults: false)
      before = machine.now
      Ringspun.run { machine.__send__(:spin_beside, needed: true) { machine.sleep } }
      machine.now - before
    end
    assert_in_delta 1, took, 0.01
  end

  def test_strands_beside_it_in_a_forked_child
    Ringspun.run do |machine|
      strand = machine.__send__(:spin_beside, needed: true) { machine.park }
      pid = fork { machine.__send__(:spin_beside) { machine.sleep } }
      assert_predicate Process::Status.wait(pid), :success?
      machine.schedule(strand)
    end
  end

  def test_an_error_of_the_block_cancels_the_others_and_is_raised
    seen = []
    error = assert_raises(Failure) do
      Ringspun.run do |machine|
        until_parked(machine.spin do
          machine.sleep
        ensure
          seen << :unwound
        end)
        raise Failure, "of the block"
      end
    end
    assert_equal ["of the block", [:unwound]], [error.message, seen]
  end

  def test_an_error_of_a_strand_that_is_joined_ends_the_run_by_way_of_the_block
    assert_raises(Failure) { Ringspun.run { |machine| machine.spin { raise Failure }.await } }
  end

  def test_one_after_the_other
    assert_equal [0, 1, 2], Array.new(3) { |i| Ringspun.run { |machine| machine.yield || i } }
  end

  def test_after_one_that_failed
    error_of { Ringspun.run { raise Failure } }
    value = Ringspun.run { |machine| machine.spin { 5 }.await }
    assert_equal 5, value
  end

  def test_after_one_that_was_left_by_throw
    assert_raises(UncaughtThrowError) { catch(:out) { Ringspun.run { throw :out } } }
    assert_equal(5, Ringspun.run { 5 })
  end

  def test_cancelled_by_its_own_strands_termination
    assert_raises(Ringspun::TerminatedError) do
      Ringspun.run { |machine| machine.terminate(machine.running).then { machine.yield } }
    end
    machine.yield
  end

  # --- inside another ---

  def test_nested_is_a_scope
    seen = []
    value = Ringspun.run do
      inner = Ringspun.run do |machine|
        machine.yield
        seen << :inner
        5
      end
      seen << :outer
      inner
    end
    assert_equal [5, %i[inner outer]], [value, seen]
  end

  def test_an_error_of_a_nested_run_can_be_rescued
    value = Ringspun.run do
      error_of { Ringspun.run { raise Failure } }.class
    end
    assert_equal Failure, value
  end

  def test_nested_in_a_strand
    assert_equal 5, Ringspun.run { |machine| machine.spin { Ringspun.run { machine.yield || 5 } }.await }
  end

  def test_nested_runs_at_the_same_time
    values = Ringspun.run do |machine|
      machine.await(*Array.new(3) { |i| machine.spin { Ringspun.run { machine.sleep(0.000_1).then { i } } } })
    end
    assert_equal [0, 1, 2], values
  end

  # --- on other threads ---

  def test_on_several_threads
    values = Array.new(4) do |i|
      Thread.new do
        Ringspun.run { |machine|
          machine.await(*Array.new(10) { |j|
            machine.spin {
              machine.sleep(0.000_1).then {
                i * j
              }
            }
          }).sum
        }
      ensure
        machine.close
      end
    end
    assert_equal([0, 45, 90, 135], values.map(&:value))
  end

  def test_on_another_thread_while_one_runs_here
    value = Ringspun.run { on_thread { Ringspun.run { |machine| machine.yield || :there } } }
    assert_equal :there, value
  end

  def test_one_that_is_refused_leaves_nothing_behind
    assert_program "Ringspun::UsageError\nProc\n", <<~'RUBY'
      trap("USR1") { begin; Ringspun.run {}; rescue Ringspun::UsageError => error; puts error.class; $told = true; end }
      $told = false
      kill_when_asleep(:USR1)
      machine.sleep(0.01) until $told
      Ringspun.run { puts trap("INT", "DEFAULT").class }
    RUBY
  end

  # --- options of the machine ---

  def test_a_machine_of_its_own
    on_thread do
      assert_equal(:epoll, Ringspun.run(backend: :epoll, file_io: :offload) { |machine| machine.backend.name })
      refute_predicate Ringspun::Machine, :current?
      # And so again, with others.
      name = Ringspun.run(backend: :sim, seed: 1, faults: false) { |machine| machine.sleep(3600) && machine.backend.name }
      assert_equal :sim, name
      refute_predicate Ringspun::Machine, :current?
    end
  end

  def test_its_limits_are_those_that_were_asked_for
    on_thread do
      error = assert_raises(Ringspun::LimitError) { Ringspun.run(strands_max: 2) { |machine| machine.spin {} } }
      assert_match(/at most 2 strands/, error.message)
      refute_predicate Ringspun::Machine, :current?
    end
  end

  def test_it_is_closed_after_an_error_as_well_and_the_error_stays
    on_thread do
      made = nil
      error = error_of { Ringspun.run(busy_poll: false) { |machine| (made = machine) && raise(Failure, "mine") } }
      assert_equal "mine", error.message
      assert_predicate made, :closed?
    end
  end

  def test_options_where_there_is_a_machine
    machine
    with_options = -> { Ringspun.run(backend: :epoll) { flunk } }
    [with_options, -> { Ringspun.run { with_options.call } }].each do |wrong|
      error = assert_raises(Ringspun::UsageError, &wrong)
      assert_match(/\ARingspun\.run: backend: can only be chosen where the machine is made/, error.message)
    end
    assert_equal(:value, Ringspun.run(on_error: nil) { :value })
  end

  def test_options_that_are_none
    on_thread do
      error = assert_raises(Ringspun::UsageError) { Ringspun.run(speed: 9) { flunk } }
      assert_match(/unknown option :speed; known are :backend, /, error.message)
      assert_raises(Ringspun::UsageError) { Ringspun.run(backend: :epoll, on_error: 1) { flunk } }
      refute_predicate Ringspun::Machine, :current?
    end
  end

  def test_its_machine_in_a_forked_child
    assert_child "epoll in the child\nfalse\n", <<~'RUBY'
      Ringspun.run(backend: :epoll) do |machine|
        pid = fork
        pid ? Process.wait(pid) : puts("#{machine.backend.name} in the child")
      end
      p Ringspun::Machine.current?
    RUBY
  end

  def test_inside_a_fiber
    assert_equal 5, Fiber.new { Ringspun.run { |machine| machine.sleep(0.000_1).then { 5 } } }.resume
  end

  # Each strand that awaits another ends with the same error, which ends the program and not just a strand.
  def test_an_error_that_is_no_standard_error_is_raised_once
    failure = Class.new(Exception) # rubocop:disable Lint/InheritException
    2.times do
      assert_raises(failure) do
        Ringspun.run do |machine|
          first = machine.spin { machine.yield.then { raise failure } }
          Array.new(3) { machine.spin { first.join } }.each(&:join)
        end
      end
      assert_equal(5, Ringspun.run { |machine| machine.sleep(0.000_1).then { 5 } })
    end
  end

  def test_the_backtrace_of_an_error_says_where
    error = assert_raises(Failure) { Ringspun.run { raise Failure } }
    assert_match(/run_test\.rb:#{__LINE__ - 1}/, error.backtrace.first)
  end
end
