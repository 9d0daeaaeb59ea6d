# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# A thread with a scheduler that fails, is killed or exits cancels what it has scheduled, which would keep it for ever otherwise.
class FailingThreadTest < Minitest::Test
  include Scheduled

  class Overriding < Ringspun::Scheduler
    def scheduler_close = [1].each { super() }
  end

  # A fiber that ends only when it is cancelled, and then waits for a moment.
  def endless(seen)
    Fiber.schedule do
      sleep
    ensure
      Ringspun.shield { sleep(0.001) }
      seen << :unwound
    end
  end

  def thread_with(seen)
    start_with do
      2.times { endless(seen) }
      yield
    end
  end

  def test_one_that_fails
    seen = []
    error = assert_raises(Failure) { thread_with(seen) { raise Failure, "of the thread" }.value }
    assert_equal ["of the thread", %i[unwound unwound]], [error.message, seen]
  end

  def test_one_that_is_killed_by_itself
    seen = []
    assert_nil(thread_with(seen) { Thread.current.kill }.value)
    assert_equal %i[unwound unwound], seen
  end

  # While it waits at the root, in a loop of the machine, and while a strand runs.
  def test_one_that_is_killed_by_another
    waits = { root: -> { sleep }, machine: -> { machine.sleep }, queue: -> { Thread::Queue.new.pop },
              strand: -> { Fiber.schedule { Fiber.blocking { sleep } } }, none: -> { loop { Thread.pass } } }
    waits.each do |name, wait|
      seen = []
      ready = Thread::Queue.new
      thread = thread_with(seen) { (ready << 1).then { wait.call } }
      ready.pop
      until_stopped(thread) unless name == :none
      thread.kill
      assert_nil thread.value
      assert_equal [name, %i[unwound unwound]], [name, seen]
    end
  end

  def test_one_that_is_killed_while_it_waits_for_its_fibers
    seen = []
    thread = thread_with(seen) {}
    until_stopped(thread)
    thread.kill
    assert_nil thread.value
    assert_equal %i[unwound unwound], seen
  end

  def test_an_override_of_the_hook
    seen = []
    thread = start_with(Overriding.new) { endless(seen).then { raise Failure } }
    assert_raises(Failure) { thread.value }
    assert_equal [:unwound], seen
  end

  # It is the program's to say so, in an ensure as well.
  def test_a_scheduler_that_the_program_closes_waits
    seen = []
    thread = start_with do
      Fiber.schedule { sleep(0.001).then { seen << :ended } }
      raise Failure
    ensure
      Fiber.set_scheduler(nil)
    end
    assert_raises(Failure) { thread.value }
    assert_equal [:ended], seen
  end

  def test_errors_while_they_unwind_are_told_and_the_threads_own_is_raised
    _, err = capture_io do
      thread = start_with do
        Fiber.schedule do
          sleep
        ensure
          raise Failure, "while it unwound"
        end
        raise Failure, "of the thread"
      end
      assert_equal "of the thread", assert_raises(Failure) { thread.value }.message
    end
    assert_equal 1, err.scan("while it unwound").size, err
  end

  def test_what_is_scheduled_while_they_unwind_never_runs
    seen = []
    thread = start_with do
      Fiber.schedule do
        sleep
      ensure
        Ringspun.spin { seen << :spun }
        Fiber.schedule { seen << :begun and sleep and seen << :slept }
      end
      raise Failure
    end
    assert_raises(Failure) { thread.value }
    refute_includes seen, :slept
    refute_includes seen, :spun
  end

  def test_a_machine_that_was_there_before_goes_on
    on_thread do
      present = machine
      thread_ended = assert_raises(Failure) do
        Ringspun::Scheduler.new.then { |scheduler| Fiber.set_scheduler(scheduler) }
        Fiber.set_scheduler(nil)
        raise Failure
      end
      assert_equal [7, Failure], [present.spin { 7 }.await, thread_ended.class]
    end
  end

  # --- the main thread ---

  def test_a_program_that_fails
    answer = child(<<~RUBY)
      at_exit { puts "at_exit \#{Ringspun.spin { 5 }.await}" }
      machine
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { begin; sleep; ensure; puts "unwound"; end }
      raise "of the program"
    RUBY
    assert_equal ["unwound\nat_exit 5\n", 1], [answer.out, answer.status.exitstatus]
    assert_equal 1, answer.err.scan("of the program").size, answer.err
  end

  def test_a_program_that_exits
    answer = child(<<~RUBY)
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { begin; sleep; ensure; puts "unwound"; end }
      exit 3
    RUBY
    assert_equal ["unwound\n", "", 3], [answer.out, answer.err, answer.status.exitstatus]
  end

  def test_a_program_that_is_interrupted
    answer = child(<<~RUBY)
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { begin; sleep; ensure; puts "unwound"; end }
      Process.kill(:INT, $$)
      sleep
    RUBY
    assert_equal ["unwound\n", true], [answer.out, answer.status.signaled?]
  end
end
