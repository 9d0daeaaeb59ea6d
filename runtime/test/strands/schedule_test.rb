# frozen_string_literal: true

require "test_helper"
require "support/strands"

# What a strand can be told: a value, an exception, that it shall end.
class ScheduleTest < Minitest::Test
  include Strands

  # --- values ---

  def test_park_answers_what_is_scheduled
    strand = parked { machine.park }
    assert_equal true, machine.schedule(strand, :value)
    assert_equal :value, strand.await
  end

  def test_without_a_value_it_is_nil
    strand = parked { [machine.park] }
    machine.schedule(strand)
    assert_equal [nil], strand.await
  end

  def test_what_was_scheduled_before_is_kept_in_order
    strand = machine.spin { Array.new(3) { machine.park } }
    [1, nil, 3].each { |value| machine.schedule(strand, value) }
    assert_equal [1, nil, 3], strand.await
  end

  def test_what_is_scheduled_while_it_parks_and_before_it_runs_again
    strand = parked { Array.new(3) { machine.park } }
    [1, 2, 3].each { |value| machine.schedule(strand, value) }
    assert_equal [1, 2, 3], strand.await
  end

  def test_other_waits_are_not_ended_by_a_value
    simulate do
      strand = parked { [machine.sleep(5), machine.park] }
      machine.schedule(strand, :early)
      machine.sleep(1)
      assert_equal :parked, strand.state
      assert_equal [5, :early], strand.await
    end
  end

  def test_a_strand_schedules_for_itself
    strand = machine.spin { machine.schedule(machine.running, 1).then { machine.park } }
    assert_equal 1, strand.await
  end

  def test_the_root_parks_as_well
    root = machine.running
    strand = machine.spin { machine.schedule(root, :for_root) }
    assert_equal :for_root, machine.park
    strand.join
  end

  def test_an_exception_class_is_a_value
    strand = parked { machine.park }
    machine.schedule(strand, ArgumentError)
    assert_same ArgumentError, strand.await
  end

  def test_scheduling_for_one_that_has_ended
    strand = machine.spin {}
    strand.join
    assert_equal [false, false, false],
                 [machine.schedule(strand, 1), machine.schedule(strand, Failure.new), machine.terminate(strand)]
  end

  def test_only_strands_of_this_machine
    foreign = on_thread { machine.spin {}.tap(&:join) }
    assert_raises(Ringspun::UsageError) { machine.schedule(foreign) }
    assert_raises(Ringspun::UsageError) { machine.terminate(foreign) }
    assert_raises(Ringspun::UsageError) { machine.schedule(:strand) }
    assert_raises(Ringspun::UsageError) { machine.terminate(nil) }
    assert_raises(ArgumentError) { machine.schedule }
  end

  # --- timeouts of park ---

  def test_park_times_out
    simulate do
      before = machine.now
      assert_raises(Ringspun::TimeoutError) { machine.park(2.5) }
      assert_in_delta 2.5, machine.now - before, 1e-6
    end
    assert_raises(Ringspun::TimeoutError) { machine.park(0) }
  end

  def test_a_value_before_the_timeout
    simulate do
      strand = parked { [machine.park(5), (machine.park(5) rescue :late)] }
      machine.schedule(strand, 1)
      assert_equal [1, :late], strand.await
    end
  end

  def test_a_value_that_comes_too_late_is_there_for_the_next_park
    simulate do
      strand = machine.spin do
        first = error_of { machine.park(1) }
        [first.class, machine.park]
      end
      machine.sleep(2)
      machine.schedule(strand, :late)
      assert_equal [Ringspun::TimeoutError, :late], strand.await
    end
  end

  # The timer fires in the same pass in which the value comes: whichever was first, nothing is lost.
  def test_a_value_in_the_very_moment_of_the_timeout
    20.times do
      strand = machine.spin do
        first = error_of { return_first = machine.park(0.000_5) and break_with(return_first) }
        first ? machine.park : :direct
      end
      until_parked(strand)
      sleep(0.000_6) # the whole thread: the timer is overdue and has not been looked at
      machine.schedule(strand, :kept)
      assert_includes %i[kept direct], strand.await
    end
  end

  def break_with(value) = assert_equal(:kept, value)

  def test_park_refuses_what_is_no_length_of_time
    [Float::NAN, "1", :soon].each { |value| assert_raises(Ringspun::UsageError) { machine.park(value) } }
    strand = parked { machine.park(nil) }
    machine.schedule(strand, 1)
    assert_equal 1, strand.await
  end

  # --- exceptions ---

  def test_an_exception_ends_any_wait
    gate = Ringspun::Queue.new
    mutex = Ringspun::Mutex.new.lock
    waits = [-> { machine.park }, -> { machine.sleep }, -> { gate.pop }, -> { mutex.lock }, -> {
      machine.running.machine.sleep(9)
    }]
    waits.each_with_index do |wait, i|
      strand = parked(&wait)
      machine.schedule(strand, Failure.new("for #{i}"))
      assert_ends_with Failure, strand, /for #{i}/
    end
    assert_equal [0, 0], [gate.num_waiting, mutex.waiting]
    mutex.unlock
  end

  def test_an_exception_leaves_no_timer_behind
    strand = parked { machine.sleep(60) }
    machine.schedule(strand, Failure.new)
    assert_ends_with Failure, strand
    assert_equal 0, machine.metrics[:timers]
  end

  def test_ensure_blocks_may_wait_after_it
    seen = []
    strand = parked do
      machine.sleep
    ensure
      machine.sleep(0)
      seen << :unwound
    end
    machine.schedule(strand, Failure.new)
    assert_ends_with Failure, strand
    assert_equal [:unwound], seen
  end

  def test_several_exceptions_in_order
    strand = parked { [Failure, ArgumentError].map { error_of { machine.sleep }.class }.push(machine.sleep(0)) }
    machine.schedule(strand, Failure.new)
    machine.schedule(strand, ArgumentError.new)
    assert_equal [Failure, ArgumentError, 0], strand.await
  end

  def test_an_exception_for_one_that_runs_meets_its_next_wait
    strand = machine.spin do
      machine.schedule(machine.running, Failure.new)
      before = :went_on
      [before, error_of { machine.yield }.class, machine.yield]
    end
    assert_equal [:went_on, Failure, nil], strand.await
  end

  def test_an_exception_for_one_that_is_ready_does_not_take_away_what_it_waited_for
    gate = Ringspun::Queue.new
    strand = parked { [gate.pop, error_of { machine.yield }.class] }
    gate.push(:item)
    machine.schedule(strand, Failure.new)
    assert_equal [:item, Failure], strand.await
  end

  def test_an_exception_before_the_start
    ran = false
    strand = machine.spin { ran = true }
    machine.schedule(strand, Failure.new)
    assert_ends_with Failure, strand
    refute ran
  end

  def test_exceptions_and_values_do_not_disturb_each_other
    strand = parked { [error_of { machine.park }.class, machine.park] }
    machine.schedule(strand, Failure.new)
    machine.schedule(strand, 1)
    assert_equal [Failure, 1], strand.await
  end

  def test_an_exception_waits_for_the_end_of_a_shield
    strand = parked do
      value = Ringspun.shield { machine.park }
      [value, error_of { machine.yield }.class]
    end
    machine.schedule(strand, Failure.new)
    machine.yield
    assert_equal :parked, strand.state
    machine.schedule(strand, 1)
    assert_equal [1, Failure], strand.await
  end

  # --- terminate ---

  def test_terminate_before_the_start
    ran = false
    strand = machine.spin { ran = true }
    assert_equal true, machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    refute ran
  end

  def test_terminate_while_it_waits
    seen = []
    strand = parked do
      machine.sleep
    rescue Ringspun::Cancelled
      seen << :cancelled
      raise
    ensure
      seen << :ensured
    end
    machine.terminate(strand)
    assert_equal :ready, strand.state
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal %i[cancelled ensured], seen
    assert_nil strand.error
  end

  def test_terminate_while_it_is_ready
    gate = Ringspun::Queue.new
    seen = []
    strand = parked do
      seen << gate.pop
      machine.yield
      seen << :never
    end
    gate.push(:item)
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [:item], seen
  end

  def test_terminate_by_the_handle
    unwound = false
    strand = parked do
      machine.sleep
    ensure
      unwound = true
    end
    assert_equal true, strand.terminate
    assert_raises(Ringspun::TerminatedError) { strand.join }
    assert unwound
    assert_equal false, strand.terminate
  end

  def test_terminate_by_the_handle_from_another_thread
    strand = parked { machine.sleep }
    assert_equal true, Thread.new { strand.terminate }.value
    assert_raises(Ringspun::TerminatedError) { strand.join }
  end

  def test_terminate_itself
    seen = []
    strand = machine.spin do
      machine.terminate(machine.running)
      seen << :goes_on
      machine.yield
      seen << :never
    end
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [:goes_on], seen
  end

  def test_every_later_wait_is_refused
    refused = []
    strand = parked do
      machine.sleep
    ensure
      [-> { machine.yield }, -> { machine.sleep(0) }, -> { machine.park }, -> { machine.spin {}.join },
       -> { Ringspun::Queue.new.pop }, -> { machine.scope { machine.yield } }].each { |wait| refused << error_of(&wait).class }
    end
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [Ringspun::Cancelled] * 6, refused
    machine.yield
  end

  def test_rescuing_every_error_does_not_stop_it
    strand = parked do
      machine.sleep
    rescue => _error
      flunk
    end
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
  end

  def test_a_strand_that_takes_no_notice_has_a_value_after_all
    strand = parked do
      machine.sleep
    rescue Ringspun::Cancelled
      :stubborn
    end
    machine.terminate(strand)
    assert_equal :stubborn, strand.await
  end

  def test_an_error_on_the_way_out_goes_to_who_waits
    strand = parked do
      machine.sleep
    ensure
      raise Failure
    end
    machine.terminate(strand)
    assert_ends_with Failure, strand
  end

  def test_terminate_twice
    count = 0
    strand = parked do
      machine.sleep
    ensure
      count += 1
    end
    2.times { machine.terminate(strand) }
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal 1, count
  end

  def test_terminate_does_not_reach_what_it_has_spun
    inner = nil
    strand = parked do
      inner = machine.spin { machine.park }
      machine.sleep
    end
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    until_parked(inner)
    machine.schedule(inner, 1)
    assert_equal 1, inner.await
  end

  def test_terminate_reaches_into_the_scopes_it_has_open
    inner = nil
    strand = parked { machine.scope { |scope| (inner = scope.spin { machine.sleep }).join } }
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal :done, inner.state
  end

  # --- from other threads ---

  def test_schedule_from_another_thread
    root = machine.running
    mine = machine
    thread = Thread.new { [mine.schedule(root, 1), mine.schedule(root, 2)] }
    assert_equal [1, 2], [machine.park, machine.park]
    assert_equal [true, true], thread.value
  end

  def test_an_exception_from_another_thread
    root = machine.running
    mine = machine
    thread = Thread.new { mine.schedule(root, Failure.new) }
    assert_raises(Failure) { machine.park }
    thread.join
  end

  def test_terminate_from_another_thread
    strand = parked { machine.sleep }
    mine = machine
    thread = Thread.new { mine.terminate(strand) }
    assert_ends_with Ringspun::TerminatedError, strand
    assert thread.value
  end

  def test_between_two_machines
    answers = Thread::Queue.new
    thread = Thread.new do
      answers << machine << machine.running
      question, whom = machine.park
      whom.machine.schedule(whom, question * 2)
      machine.close
    end
    theirs, their_root = answers.pop, answers.pop
    theirs.schedule(their_root, [21, machine.running])
    assert_equal 42, machine.park
    thread.join
  end

  def test_scheduling_for_a_closed_machine_from_another_thread
    strand = mine = nil
    on_thread { (mine = machine) && (strand = machine.spin { 1 }) }
    assert_equal false, mine.schedule(strand)
  end

  # A handler runs between two instructions of a strand, or while the machine sleeps.
  def test_schedule_from_a_signal_handler
    assert_child "1\n2\n", <<~'RUBY'
      Ringspun.run do |machine|
        strand = machine.running
        count = 0
        trap("USR1") { machine.schedule(strand, count += 1) }
        Process.kill(:USR1, Process.pid)
        puts machine.park
        spawn("sleep 0.05; kill -USR1 #{Process.pid}")
        puts machine.park(20)
      end
    RUBY
  end

  def test_terminate_from_a_signal_handler
    assert_child "ended\n", <<~'RUBY'
      Ringspun.run do |machine|
        strand = machine.spin { machine.sleep(20) }
        trap("USR1") { machine.terminate(strand) }
        spawn("sleep 0.05; kill -USR1 #{Process.pid}")
        begin
          strand.join
        rescue Ringspun::TerminatedError
          puts "ended"
        end
      end
    RUBY
  end

  # --- what was scheduled before does not stand above what ends the wait ---

  def test_park_in_a_terminated_strand
    strand = machine.spin do
      machine.schedule(machine.running, 1)
      machine.terminate(machine.running)
      machine.park
    end
    assert_ends_with Ringspun::TerminatedError, strand
  end

  def test_a_strand_that_schedules_itself_starves_nobody
    ended = false
    strand = machine.spin do
      until ended
        machine.schedule(machine.running, 1)
        machine.park
      end
    end
    machine.spin { ended = true }
    strand.await
  end
end
