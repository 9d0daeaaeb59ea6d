# frozen_string_literal: true

require "test_helper"
require "support/on_simulation"
require "support/strands"

# An error that nobody joins is told while the machine still runs: a second after its strand's end, or at once.
class UnreadTest < Minitest::Test
  include Strands

  SECONDS = 30

  # What is told goes to `@told`, and ends the wait of whoever waits for so many.
  def setup
    super
    @told = []
  end

  def note
    lambda do |error, strand|
      @told << [error.message, strand]
      machine.schedule(@waiter, :told) if @waiter
    end
  end

  def until_told(count)
    @waiter = machine.running
    machine.timeout(SECONDS) { machine.park until @told.size >= count }
  ensure
    @waiter = nil
  end

  def messages = @told.map(&:first)

  def reported(&block)
    out, err = capture_io(&block)
    assert_empty out
    err
  end

  # --- when ---

  def test_one_that_is_joined_after_the_collector_has_moved_it
    on_thread do
      Ringspun.run(on_error: note) do
        strands = Array.new(50) { |i| failed(i.to_s) }
        GC.verify_compaction_references(toward: :empty, expand_heap: true)
        strands.each { |strand| assert_raises(Failure) { strand.join } }
      end
    end
    assert_empty messages
  end

  def test_it_is_told_while_the_run_goes_on
    strand = nil
    err = reported do
      Ringspun.run do
        Ringspun.run {} # another is no end of this one
        machine.__send__(:with_on_error, note) do
          strand = failed("lonely")
          assert_empty @told
          until_told(1)
        end
      end
    end
    assert_equal [["lonely", strand]], @told
    assert_empty err
  end

  def test_without_a_handler_it_is_a_warning
    text = nil
    err = reported do
      Ringspun.run do
        failed("lonely")
        machine.timeout(SECONDS) { machine.sleep(0.05) while $stderr.string.empty? }
        text = $stderr.string
      end
    end
    assert_match(/\Aringspun: #<Ringspun::Strand:\S+ done> ended with an error that nobody joined: .*lonely/m, text)
    assert_equal text, err
  end

  def test_a_strand_that_nobody_can_hold_at_once
    Ringspun.run(on_error: note) do
      Fiber.schedule { sleep(0).then { raise Failure, "detached" } }
      turns = 0
      machine.yield until @told.any? || (turns += 1) > 10
    end
    assert_equal ["detached"], messages
  end

  def test_a_concurrent_proc_at_once
    err = reported do
      Ringspun.run(on_error: note) do
        Ringspun.concurrently { raise Failure, "detached" }
        3.times { machine.yield }
        assert_match(/detached/, $stderr.string)
      end
    end
    assert_equal 1, err.lines.grep(/detached/).size, err
    assert_empty @told, "its own error handlers are told of it"
  end

  # --- once ---

  def test_more_than_are_kept_are_told_at_once
    Ringspun.run(on_error: note) do
      200.times { |i| machine.spin { raise Failure, "number #{i}" } }
      3.times { machine.yield }
      assert_operator @told.size, :>=, 200 - 64
    end
    assert_equal (0...200).map { |i| "number #{i}" }, messages
  end

  # --- who is told ---

  def test_the_handler_of_the_run_goes_before_that_of_the_machine
    told_machine = []
    on_thread do
      Ringspun::Machine.new(backend: :sim, faults: false, on_error: ->(error, _) { told_machine << error.message })
      Ringspun.run { failed("for the machine") }
      Ringspun.run(on_error: note) { failed("for the run") }
      failed("after the run")
    end
    assert_equal ["for the machine", "after the run"], told_machine
    assert_equal ["for the run"], messages
  end

  def test_a_scope_tells_of_its_strands_before_the_others_have_unwound
    order = []
    error = error_of do
      machine.scope(on_error: ->(failed, strand) { order << [failed.message, strand.state] }) do |scope|
        scope.spin do
          machine.sleep
        ensure
          3.times { Ringspun.shield { machine.yield } }
          order << :unwound
        end
        scope.spin { machine.yield && nil || raise(Failure, "child") }
      end
    end
    assert_equal [["child", :done], :unwound], order
    assert_equal "child", error.message
  end

  def cut_short(message)
    machine.sleep
  rescue Ringspun::Cancelled
    raise Failure, message
  end

  def test_a_scope_tells_of_those_that_it_suppresses_and_of_evaluations
    error = error_of do
      Ringspun.scope(on_error: note) do |scope|
        scope.spin { cut_short("second") }
        scope.concurrently { cut_short("third") }
        scope.spin { raise Failure, "first" }
      end
    end
    assert_equal "first", messages.first
    assert_equal %w[first second third], messages.sort
    assert_equal "first", error.message
    assert_equal %w[second third], Ringspun.suppressed(error).map(&:message).sort
  end

  def test_a_run_inside_another_is_a_scope_here_as_well
    Ringspun.run(on_error: ->(*) { flunk }) do
      error = error_of { Ringspun.run(on_error: note) { raise Failure, "no strand of its" } }
      assert_equal "no strand of its", error.message
      error = error_of { Ringspun.scope(on_error: note) { |scope| scope.spin { raise Failure, "child" } } }
      assert_equal "child", error.message
    end
    assert_equal ["child"], messages
  end

  def test_one_that_comes_after_its_scope_was_closed_goes_to_the_scopes_handler
    err = reported do
      Ringspun.run do
        child = nil
        machine.spin do
          Enumerator.new { |yielder|
            machine.scope(on_error: note) { |scope| yielder << (child = scope.spin { machine.park && raise(Failure, "late") }) }
          }.next
        end.join
        machine.schedule(child, true)
        yield_until { @told.any? }
      end
    end
    assert_equal ["late"], messages
    assert_empty err
  end

  def test_what_concerns_the_program_is_no_error_of_a_strand
    assert_raises(SystemExit) { machine.scope(on_error: note) { |scope| scope.spin { exit 3 } } }
    assert_raises(SystemExit) { Ringspun.run(on_error: note) { machine.spin { exit 3 } && machine.sleep } }
    assert_empty @told
  end

  # --- handlers ---

  def test_a_handler_may_wait_and_the_run_waits_for_it
    Ringspun.run(on_error: ->(error, _) { machine.sleep(0.001).then { @told << [error.message] } }) do
      failed("first")
      Fiber.schedule { raise Failure, "second" }
    end
    assert_equal %w[first second], messages.sort
  end

  def test_a_handler_that_fails
    err = reported do
      Ringspun.run(on_error: ->(*) { raise Failure, "and so do I" }) do
        Fiber.schedule { sleep(0).then { raise Failure, "lonely" } }
        3.times { machine.yield }
      end
    end
    assert_match(/nobody joined: .*lonely.*on_error: failed itself .*and so do I/m, err)
    assert_equal [1, 1], [err.scan("lonely (").size, err.scan("and so do I (").size], err
  end

  def test_a_handler_that_fails_at_the_end_of_the_run
    err = reported { Ringspun.run(on_error: ->(*) { raise Failure, "and so do I" }) { failed("lonely") } }
    assert_match(/nobody joined: .*lonely.*on_error: failed itself .*and so do I/m, err)
  end

  def test_exit_in_a_handler_is_raised_in_the_root
    err = reported do
      status = assert_raises(SystemExit) do
        Ringspun.run(on_error: ->(*) { exit 3 }) do
          Fiber.schedule { sleep(0).then { raise Failure, "lonely" } }
          machine.sleep
        end
      end.status
      assert_equal 3, status
    end
    assert_match(/lonely/, err)
  end

  def test_exit_in_a_handler_at_the_end_of_the_run
    err = reported do
      assert_equal 4, assert_raises(SystemExit) { Ringspun.run(on_error: ->(*) { exit 4 }) { failed("lonely") } }.status
    end
    assert_match(/lonely/, err)
  end

  def test_a_handler_that_is_cancelled_while_it_waits
    err = reported do
      assert_raises(Failure) do
        Ringspun.run(on_error: ->(*) { machine.sleep }) do
          Fiber.schedule { sleep(0).then { raise Failure, "lonely" } }
          3.times { machine.yield }
          raise Failure
        end
      end
    end
    assert_equal 1, err.scan("lonely (").size, err
  end

  def test_what_is_no_handler
    [-> { Ringspun.run(on_error: 1) {} }, -> { machine.scope(on_error: :no) {} }, -> { Ringspun.scope(on_error: Object) {} },
     -> { on_thread { Ringspun::Machine.new(on_error: "no") } }].each do |wrong|
      assert_match(/\Aon_error: must be something to call with an error and its strand, got /,
                   assert_raises(Ringspun::UsageError, &wrong).message)
    end
  end

  # --- what it is told with is nothing that lasts ---

  def test_it_keeps_no_run_and_no_machine_alive
    assert_child "1\n", <<~RUBY
      Ringspun.run(on_error: ->(*) {}) { machine.spin { raise "lonely" }; machine.yield }
      puts machine.strands.size
    RUBY
  end

  def test_it_is_no_hope_in_a_deadlock
    answer = child(<<~RUBY)
      begin
        Ringspun.run do
          machine.spin { raise "lonely" }
          machine.yield
          Ringspun::Queue.new.pop
        end
      rescue Ringspun::DeadlockError
        puts "deadlock"
      end
    RUBY
    assert_equal "deadlock\n", answer.out
    assert_match(/lonely/, answer.err)
  end

  def test_a_forked_child_tells_its_own
    answer = child(<<~RUBY)
      Ringspun.run(on_error: ->(error, _) { puts error.message }) do
        machine.spin { raise "of the parent" }
        machine.yield
        pid = machine.spin do
          next Process.pid unless fork.nil?

          machine.spin { raise "of the child" }
          machine.yield
        end.await
        Process.wait
        puts $?.exitstatus
      end
    RUBY
    assert_equal ["of the child\n1\nof the parent\n", ""], [answer.out, answer.err]
  end
end

# Where time passes by itself, and others than the machine's own strands may wake it.
class RealUnreadTest < Minitest::Test
  include Strands

  def test_while_others_take_turns_without_a_wait
    told = []
    Ringspun.run(on_error: ->(error, _) { told << error.message }) do
      machine.spin { raise Failure, "lonely" }
      yield_until { told.any? }
    end
    assert_equal ["lonely"], told
  end

  # As in a server: nothing is due, and something from outside may come at any time.
  def test_while_the_root_sleeps_without_an_end
    turns = nil
    told = []
    Ringspun.run do
      root = machine.running
      machine.__send__(:with_on_error, ->(error, _) { (told << error.message) && machine.schedule(root, Failure.new) }) do
        machine.spin { raise Failure, "lonely" }
        before = machine.metrics[:polls]
        assert_raises(Failure) { machine.sleep }
        turns = machine.metrics[:polls] - before
      end
    end
    assert_equal ["lonely"], told
    assert_operator turns, :<, 50, "it goes round in circles until then"
  end
end

class SimulatedUnreadTest < UnreadTest
  include OnSimulation

  def faults = false

  # --- as on a real machine, whose tests would take a second each ---

  def test_without_a_run_as_well
    text = nil
    reported do
      failed("lonely")
      machine.timeout(SECONDS) { machine.sleep(0.05) while $stderr.string.empty? }
      text = $stderr.string
    end
    assert_match(/lonely/, text)
  end

  def test_who_joins_later_gets_it_raised_and_nothing_more_is_said
    err = reported do
      Ringspun.run(on_error: note) do
        strand = failed("lonely")
        until_told(1)
        assert_equal "lonely", assert_raises(Failure) { strand.await }.message
        assert_equal "lonely", strand.error.message
        assert_equal "lonely", assert_raises(Failure) { machine.await(strand) }.message
      end
    end
    assert_equal ["lonely"], messages
    assert_empty err
  end

  def test_several_in_their_order
    Ringspun.run(on_error: note) do
      5.times { |i| failed("number #{i}") }
      until_told(5)
    end
    assert_equal (0..4).map { |i| "number #{i}" }, messages
  end

  def test_one_that_comes_while_others_are_told
    Ringspun.run(on_error: note) do
      failed("first")
      until_told(1)
      failed("second")
      until_told(2)
    end
    assert_equal %w[first second], messages
  end

  def test_what_the_end_of_the_run_tells_is_not_told_again
    err = reported do
      Ringspun.run(on_error: note) { failed("first") }
      Ringspun.run(on_error: note) do
        failed("second")
        until_told(2)
      end
    end
    assert_equal %w[first second], messages
    assert_empty err
  end

  # --- to the nanosecond, on a clock that jumps ---

  def test_exactly_a_second_later
    times = []
    simulate do
      started = machine.now
      machine.__send__(:with_on_error, ->(*) { times << (machine.now - started) }) do
        machine.spin { machine.sleep(0.25).then { raise Failure } }
        machine.spin { machine.sleep(0.5).then { raise Failure } }
        machine.sleep(5)
      end
    end
    assert_equal [1.25, 1.5], times.map { |time| time.round(6) }
  end

  def test_a_joiner_in_time
    text = reported do
      simulate do
        strand = machine.spin { raise Failure }
        machine.sleep(0.9)
        assert_raises(Failure) { strand.join }
        machine.sleep(5)
      end
    end
    assert_empty text
  end

  def test_who_waits_for_several_waits_for_each
    text = reported do
      simulate do
        failing = machine.spin { raise Failure, "first" }
        assert_equal("first", error_of { machine.await([failing, machine.spin { machine.sleep(10) }].reverse) }.message)
      end
    end
    assert_empty text
  end

  def test_an_error_that_comes_after_that_of_another
    times = []
    simulate do
      started = machine.now
      machine.__send__(:with_on_error, ->(error, *) { times << [error.message, (machine.now - started).round(6)] }) do
        strands = [3, 1, 2].map { |seconds| machine.spin { machine.sleep(seconds).then { raise Failure, seconds.to_s } } }
        assert_equal "1", assert_raises(Failure) { machine.await(*strands) }.message
        assert_equal 1, machine.now - started
        machine.sleep(20)
      end
    end
    assert_equal [["2", 3.0], ["3", 4.0]], times
  end

  def test_who_has_waited_for_several_and_does_not_any_more
    times = []
    simulate do
      started = machine.now
      machine.__send__(:with_on_error, ->(*) { times << (machine.now - started).round(6) }) do
        failing = machine.spin { machine.sleep(4).then { raise Failure, "first" } }
        machine.spin { error_of { machine.timeout(3.5) { machine.await(machine.spin { machine.sleep(10) }, failing) } } }
        machine.sleep(20)
      end
    end
    assert_equal [5.0], times
  end

  def test_a_deadlock_does_not_wait_for_the_second
    unwound_at = nil
    reported do
      assert_raises(Ringspun::DeadlockError) do
        simulate do
          started = machine.now
          machine.spin { raise Failure }
          Ringspun::Queue.new.pop
        ensure
          unwound_at = machine.now - started
        end
      end
    end
    assert_equal 0.0, unwound_at
  end

  def test_the_run_ends_before_the_second
    err = reported { assert_equal 0.0, simulate { machine.spin { raise Failure } && machine.yield }.elapsed }
    refute_empty err
  end

  def test_equal_runs_stay_equal
    hashes = Array.new(2) do
      reported { @result = Ringspun::Simulation.run(seed: 5) { 3.times { machine.spin { raise Failure } } && machine.sleep(3) } }
      @result.trace_hash
    end
    assert_equal hashes[0], hashes[1]
  end

  def test_without_a_place_it_is_tried_again
    told_at = nil
    on_thread do
      Ringspun::Machine.new(backend: :sim, faults: false, strands_max: 3)
      started = machine.now
      Ringspun.run(on_error: ->(*) { told_at = (machine.now - started).round(6) }) do
        machine.spin { raise Failure, "lonely" }
        machine.yield
        machine.spin { machine.sleep(1.5) }
        machine.sleep(10)
      end
    end
    assert_equal 2.0, told_at
  end
end
