# frozen_string_literal: true

require "test_helper"
require "support/on_simulation"
require "support/strands"

# An error is never lost: somebody joins its strand, or it is reported, or it ends the program.
class UnjoinedTest < Minitest::Test
  include Strands

  def reported(&block)
    out, err = capture_io { Ringspun.run(&block) }
    assert_empty out
    err
  end

  # --- reports ---

  def test_an_error_that_nobody_joins_is_reported
    text = reported do |machine|
      strand = machine.spin { raise Failure, "lonely" }
      yield_until { !strand.alive? }
    end
    assert_match(/\Aringspun: #<Ringspun::Strand:\S+ done> ended with an error that nobody joined: .*lonely/m, text)
    assert_includes text, "#{File.basename(__FILE__)}:"
    assert_equal 1, text.scan("lonely").size
  end

  def test_it_is_reported_once
    reported { failed("lonely") }
    assert_empty reported {}
  end

  def test_the_run_is_not_ended_by_it
    value = nil
    reported do
      failed("lonely")
      value = machine.spin { 5 }.await
    end
    assert_equal 5, value
  end

  def test_a_joined_error_is_not_reported
    assert_empty(reported { error_of { failed("joined").join } })
    assert_empty(reported { error_of { machine.await(failed("joined")) } })
  end

  def test_an_error_with_a_joiner_waiting_is_not_reported
    assert_empty(reported { error_of { machine.spin { raise Failure }.join } })
  end

  def test_an_error_that_somebody_has_looked_at_is_not_reported
    assert_empty(reported { failed("seen").error })
  end

  def test_a_terminated_strand_is_no_error
    text = reported do
      strand = parked { machine.sleep }
      machine.terminate(strand)
      yield_until { !strand.alive? }
    end
    assert_empty text
  end

  def test_an_error_while_the_run_waits_for_its_last_strands
    text = reported do
      machine.spin { machine.sleep(0.001).then { raise Failure, "late" } }
      nil
    end
    assert_match(/late/, text)
  end

  def test_errors_beyond_what_is_kept_are_all_reported
    text = reported do
      200.times { |i| machine.spin { raise Failure, "number #{i};" } }
      3.times { machine.yield }
    end
    assert_equal (0...200).to_a, text.scan(/number (\d+);/).flatten.map(&:to_i).sort
  end

  def test_an_error_whose_text_raises_is_reported_by_its_class
    text = reported do
      machine.spin { raise Class.new(Failure) { def message = raise("no text") }.set_temporary_name("mute failure") }
      machine.yield
      failed("ordinary")
    end
    assert_match(/mute failure.*ordinary/m, text)
  end

  # Whoever takes standard error may run strands in its write.
  def test_strands_that_fail_while_errors_are_reported
    stderr, $stderr = $stderr, StringIO.new
    $stderr.define_singleton_method(:write) { |*texts| super(*texts).tap { Ringspun::Machine.current.yield } }
    Ringspun.run do
      3.times { |i| machine.spin { i.times { machine.yield }.then { raise Failure, "number #{i};" } } }
      62.times { machine.spin { raise Failure, "number 9;" } }
      nil
    end
    text = $stderr.string
    assert_equal %w[0 1 2] + ["9"] * 62, text.scan(/number (\d);/).flatten.sort
  ensure
    $stderr = stderr
  end

  # Outside of Ringspun.run nothing ends that could report, but the program.
  def test_the_program_ends_before_anybody_joins
    answer = child('machine.spin { raise "left behind" }; machine.yield')
    assert_match(/nobody joined.*left behind/, answer.err)
  end

  def test_a_thread_ends_before_anybody_joins
    answer = child('Thread.new { machine.spin { raise "left behind" }; machine.yield; machine.close }.join')
    assert_match(/nobody joined.*left behind/, answer.err)
  end

  def test_a_thread_ends_without_closing_its_machine
    answer = child('Thread.new { machine.spin { raise "left behind" }; machine.yield }.join')
    assert_match(/nobody joined.*left behind/, answer.err)
  end

  def test_the_next_machine_tells_what_a_thread_left_behind
    answer = child(<<~RUBY)
      Thread.new { machine.spin { raise "left behind" }; machine.yield }.join
      machine
      warn "and then the rest"
    RUBY
    assert_match(/nobody joined.*left behind.*and then the rest/m, answer.err)
  end

  def test_the_wait_for_several_ends_before_the_error_comes
    text = reported do
      failing = machine.spin { machine.park && raise("unread") }
      sleeper = machine.spin { machine.sleep }
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { machine.await(failing, sleeper) } }
      machine.schedule(failing, true)
      machine.terminate(sleeper)
    end
    assert_equal 1, text.scan("unread").size
  end

  def test_of_several_errors_the_others_go_with_the_first
    assert_empty(reported do
      error = error_of { machine.await(*%w[one two three].map { |name| failed(name) }) }
      assert_equal ["one", %w[two three]], [error.message, Ringspun.suppressed(error).map(&:message)]
    end)
  end

  def test_an_error_that_comes_after_its_scope_was_closed
    child = nil
    late = -> { machine.park && raise("late") }
    text = reported do
      machine.spin do
        Enumerator.new { |yielder| machine.scope { |scope| yielder << (child = scope.spin(&late)) } }.next
      end.join
      machine.schedule(child, true)
      yield_until { !child.alive? }
    end
    assert_equal 1, text.scan("late").size
  end

  # --- what concerns the program ---

  def test_exit_in_a_strand_is_raised_in_the_root
    error = assert_raises(SystemExit) do
      Ringspun.run do
        machine.spin { exit 3 }
        machine.sleep
      end
    end
    assert_equal 3, error.status
  end

  def test_exit_unwinds_the_others
    seen = []
    assert_raises(SystemExit) do
      Ringspun.run do
        2.times do |i|
          machine.spin do
            machine.sleep
          ensure
            seen << i
          end
        end
        machine.spin { exit }
        machine.sleep
      end
    end
    assert_equal [0, 1], seen.sort
  end

  def test_the_programs_exit_status
    answer = child("at_exit { puts :at_exit }; Ringspun.run { machine.spin { exit 7 }; machine.sleep }")
    assert_equal ["at_exit\n", "", 7], [answer.out, answer.err, answer.status.exitstatus]
    assert_equal 1, child('Ringspun.run { machine.spin { abort "bye" }; machine.sleep }').status.exitstatus
  end

  def test_interrupt_and_other_exceptions_are_raised_in_the_root
    [Interrupt.new("x"), SignalException.new("USR1"), Exception.new("plain")].each do |exception|
      raised = error_of do
        Ringspun.run do
          machine.spin { raise exception }
          machine.sleep
        end
      end
      assert_same exception, raised
    end
  end

  def test_exit_outside_of_a_run
    strand = machine.spin { exit 4 }
    assert_equal 4, assert_raises(SystemExit) { machine.sleep }.status
    assert_instance_of SystemExit, strand.error
    machine.yield # once only
  end

  def test_exit_in_a_strand_that_the_root_joins
    assert_equal 5, assert_raises(SystemExit) { machine.spin { exit 5 }.await }.status
    machine.yield
  end

  def test_exit_in_a_scope_goes_the_way_of_every_error
    other = nil
    error = assert_raises(SystemExit) do
      machine.scope do |scope|
        other = scope.spin { machine.sleep }
        scope.spin { exit 6 }
        machine.sleep
      end
    end
    assert_equal [6, :done], [error.status, other.state]
    machine.yield
  end

  def test_exit_in_the_block_of_a_run
    assert_equal(9, assert_raises(SystemExit) { Ringspun.run { exit 9 } }.status)
  end

  def test_exit_bang_ends_at_once
    answer = child(<<~RUBY)
      Ringspun.run do
        machine.spin { begin; machine.sleep; ensure; puts "never"; end }
        machine.yield
        machine.spin { exit! 8 }.join
      end
    RUBY
    assert_equal ["", 8], [answer.out, answer.status.exitstatus]
  end
end

class SimulatedUnjoinedTest < UnjoinedTest
  include OnSimulation
end
