# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# The end of a scheduler: of its thread, of the program, of a forked child; and when nothing can go on.
class SchedulerEndTest < Minitest::Test
  include Scheduled

  # --- closing ---

  def test_closed_when_its_thread_ends
    scheduler = Ringspun::Scheduler.new
    refute_predicate scheduler, :closed?
    with_scheduler(scheduler) { refute_predicate scheduler, :closed? }
    assert_predicate scheduler, :closed?
  end

  def test_closed_when_its_thread_ends_with_an_error
    scheduler = Ringspun::Scheduler.new
    assert_raises(Failure) { with_scheduler(scheduler) { raise Failure } }
    assert_predicate scheduler, :closed?
  end

  def test_closed_when_its_thread_is_killed
    scheduler = Ringspun::Scheduler.new
    with_scheduler(scheduler) { Thread.current.kill }
    assert_predicate scheduler, :closed?
  end

  def test_closed_when_another_is_set
    with_scheduler do |first|
      ended = false
      Fiber.schedule { sleep(0.001).then { ended = true } }
      Fiber.set_scheduler(nil)
      assert_equal [true, true, nil], [first.closed?, ended, Fiber.scheduler]
    end
  end

  def test_closed_at_the_end_of_a_run
    scheduler = Ringspun.run { Fiber.scheduler }
    assert_predicate scheduler, :closed?
    assert_nil Fiber.scheduler
  end

  def test_its_machine_goes_with_it
    before = Leaks.descriptors
    used = with_scheduler { Fiber.schedule {}.then { machine } }
    assert_predicate used, :closed?
    assert_equal before, Leaks.descriptors
  end

  def test_a_machine_that_was_there_before_stays
    on_thread do
      present = machine
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { sleep(0) }
      Fiber.set_scheduler(nil)
      assert_equal [false, true], [present.closed?, machine.equal?(present)]
    end
  end

  def test_what_is_scheduled_while_it_closes
    order = []
    with_scheduler do
      Fiber.schedule { sleep(0.001).then { Fiber.schedule { sleep(0.001).then { order << :inner } } }.then { order << :outer } }
    end
    assert_equal %i[outer inner], order
  end

  def test_run_runs_all
    with_scheduler do |scheduler|
      order = []
      3.times { |i| Fiber.schedule { sleep((3 - i) / 1000.0).then { order << i } } }
      scheduler.run
      assert_equal [0, 1, 2], order.sort
      scheduler.run
    end
  end

  # Its report is cancelled before it is made. It may be made anew before run raises the error, and not when the machine closes.
  def test_an_error_that_run_raises_is_not_reported_after_that
    asked = reported = nil
    _, err = capture_io do
      with_scheduler do |scheduler|
        waiting = nil
        machine = Ringspun::Machine.new(on_error: lambda { |*|
          asked = true
          machine.schedule(waiting)
          machine.terminate(machine.running)
          machine.sleep
        })
        Fiber.schedule { raise Failure, "raised" }
        Fiber.schedule { (waiting = machine.running).then { machine.park } }
        assert_equal "raised", assert_raises(Failure) { scheduler.run }.message
        reported = $stderr.string.dup
        machine.close
      end
    end
    assert asked
    assert_equal reported, err
  end

  # --- the program's end ---

  def test_at_the_end_of_the_program
    assert_child "scheduled\nend of the script\nran on\nat_exit\n", <<~RUBY
      at_exit { puts "at_exit" }
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { puts("scheduled").then { sleep(0.001) }.then { puts "ran on" } }
      puts "end of the script"
    RUBY
  end

  def test_what_was_written_is_there_at_the_end
    answer = ruby_child(<<~RUBY)
      require "ringspun"
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { sleep(0).then { $stdout.write("buffered") } }
      $stdout.write("once ")
    RUBY
    assert_equal ["once buffered", "", true], [answer.out, answer.err, answer.status.success?]
  end

  def test_an_error_at_the_end_of_the_program
    answer = child(<<~RUBY)
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { sleep(0.001).then { raise "told once" } }
      Fiber.schedule { sleep(0.002).then { puts "goes on" } }
    RUBY
    assert_equal "goes on\n", answer.out
    assert_equal 1, answer.err.scan("told once").size, answer.err
    refute_predicate answer.status, :success?
  end

  def test_exit_in_a_strand
    answer = child(<<~RUBY)
      Ringspun.run do
        Fiber.schedule { begin; sleep; ensure; puts "ensured"; end }
        Fiber.schedule { sleep(0.001).then { exit(3) } }
        sleep
      end
    RUBY
    assert_equal ["ensured\n", "", 3], [answer.out, answer.err, answer.status.exitstatus]
  end

  def test_exit_in_a_strand_of_set_scheduler
    answer = child(<<~RUBY)
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { begin; sleep; ensure; puts "ensured"; end }
      Fiber.schedule { sleep(0.001).then { exit(3) } }
    RUBY
    assert_equal ["ensured\n", "", 3], [answer.out, answer.err, answer.status.exitstatus]
  end

  # --- fork ---

  # Each a line in one piece, since two processes write: with a scheduler CRuby writes what `puts` adds by itself.
  FORKED = <<~'RUBY'
    def say(text) = $stdout.write("#{text}\n")

    def forks
      Fiber.schedule { begin; sleep(0.01); say "other"; ensure; say "other ensured"; end }
      Fiber.schedule do
        child = fork do
          Fiber.schedule { sleep(0.001).then { say "child's own" } }
          sleep(0.002)
          say "child"
        end
        say "status #{Process.wait2(child).last.exitstatus}"
      end
    end
  RUBY

  # Only what it does itself: nothing of the parent's strands, and none of its at_exit blocks.
  def test_a_fork_inside_a_scheduled_fiber
    answer = child(FORKED + <<~RUBY)
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      forks
    RUBY
    assert_forked answer
  end

  def test_a_fork_inside_a_run
    assert_forked child("#{FORKED}Ringspun.run { forks }")
  end

  def assert_forked(answer)
    assert_equal ["child", "child's own", "other", "other ensured", "status 0"], answer.out.lines(chomp: true).sort
    assert_equal ["", true], [answer.err, answer.status.success?]
  end

  def test_a_fork_without_a_block
    answer = child(<<~RUBY)
      parent = $$
      at_exit { puts "at_exit \#{$$ == parent}" }
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      # Each a line in one piece: with a scheduler CRuby writes what `puts` adds by itself.
      Fiber.schedule { sleep(0.005).then { print "other\n" } }
      Fiber.schedule do
        if (child = fork)
          Process.wait(child)
          print "parent\n"
        else
          sleep(0.001)
          print "child\n"
        end
      end
    RUBY
    assert_equal ["at_exit true", "child", "other", "parent"], answer.out.lines(chomp: true).sort
    assert_equal ["", true], [answer.err, answer.status.success?]
  end

  def test_a_fork_at_the_root
    answer = child(<<~RUBY)
      $stdout.sync = false
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { sleep(0.005).then { puts "parent's" } }
      child = fork do
        Fiber.schedule { sleep(0.001).then { puts "child's" } }
      end
      Process.wait(child)
    RUBY
    assert_equal ["child's", "parent's"], answer.out.lines(chomp: true).sort
    assert_equal ["", true], [answer.err, answer.status.success?]
  end

  # --- nothing can go on ---

  def test_a_deadlock_names_what_is_waited_for
    answer = child(<<~RUBY)
      Ringspun.run do
        mutex, queue = Thread::Mutex.new, Thread::Queue.new
        Fiber.schedule { mutex.synchronize { queue.pop } }
        Fiber.schedule { mutex.lock }
        Fiber.schedule { Thread::SizedQueue.new(1).then { |full| 2.times { full << 1 } } }
        Fiber.schedule { Thread::Mutex.new.then { |own| own.synchronize { Thread::ConditionVariable.new.wait(own) } } }
        Fiber.schedule { Ringspun::Queue.new.pop }
        Fiber.schedule { Fiber.scheduler.block("something of its own") }
      end
    RUBY
    assert_equal ["", 1], [answer.out, answer.status.exitstatus]
    assert_match(/DeadlockError/, answer.err)
    ["a Thread::Mutex", "a Thread::Queue", "a Thread::SizedQueue", "a ConditionVariable", "an item of a Queue",
     "something of its own"].each { |what| assert_includes answer.err, "waits for #{what}" }
  end

  def test_a_deadlock_at_the_end_of_the_program
    answer = child(<<~RUBY)
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { begin; Thread::Queue.new.pop; ensure; puts "ensured"; end }
    RUBY
    assert_equal ["ensured\n", 1], [answer.out, answer.status.exitstatus]
    assert_match(/waits for a Thread::Queue/, answer.err)
  end

  def test_a_simulated_deadlock
    error = assert_raises(Ringspun::DeadlockError) do
      simulate do
        Fiber.schedule { Thread::Queue.new.pop }
        Thread::Mutex.new.then { |mutex| Fiber.schedule { mutex.synchronize { sleep } }.then { mutex.lock } }
      end
    end
    assert_match(/waits for a Thread::Queue/, error.message)
    assert_match(/waits for a Thread::Mutex/, error.message)
  end

  # Another thread may still come: it is no deadlock, and its item is taken.
  def test_no_deadlock_while_a_thread_runs
    assert_child "late\n", <<~RUBY
      queue = Thread::Queue.new
      Thread.new { sleep(0.05).then { queue << "late" } }
      Ringspun.run { puts queue.pop }
    RUBY
  end
end
