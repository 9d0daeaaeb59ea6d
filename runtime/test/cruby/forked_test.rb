# frozen_string_literal: true

require "test_helper"
require "support/strands"

# A forked child of a run, or of a thread with a Ringspun::Scheduler, waits in strands as its parent does.
class ForkedSchedulerTest < Minitest::Test
  include Strands

  def test_the_child_has_its_scheduler
    Ringspun.run do
      scheduler = Fiber.scheduler
      asked_in_child = in_child do
        assert_equal [scheduler, scheduler, false], [Fiber.scheduler, Fiber.current_scheduler, Fiber.current.blocking?]
      end
      assert_predicate asked_in_child, :success?
      assert_same scheduler, Fiber.current_scheduler
    end
  end

  def test_stock_waits_of_the_child_let_others_run
    Ringspun.run { assert_predicate in_child { assert_others_run }, :success? }
  end

  def test_stock_waits_of_the_child_of_a_strand
    Ringspun.run { machine.spin { assert_predicate in_child { assert_others_run }, :success? }.await }
  end

  def test_stock_waits_of_the_child_of_a_child
    Ringspun.run { assert_predicate in_child { assert_predicate in_child { assert_others_run }, :success? }, :success? }
  end

  def test_a_scheduler_without_a_run
    Thread.new do
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Fiber.schedule { assert_predicate in_child { assert_others_run }, :success? }
    end.join
  end

  # Whoever has asked for a blocking fiber has one, in the child as well.
  def test_a_fork_in_a_blocking_fiber
    Ringspun.run do
      Fiber.blocking { assert_predicate in_child { assert_predicate Fiber.current, :blocking? }, :success? }
      refute_predicate Fiber.current, :blocking?
    end
  end

  def test_a_daemon
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      Ringspun.run do
        Process.daemon(true, true)
        done = Thread::Queue.new
        Fiber.schedule { sleep(0.001).then { done << writer.syswrite("others ran") } }
        done.pop
        exit!(true)
      end
    end
    writer.close
    Process.wait(pid)
    assert_equal "others ran", reader.read
  ensure
    reader.close
  end

  def test_forks_of_others_are_left_alone
    assert_predicate in_child { assert_nil Fiber.scheduler }, :success?
    assert_nil Fiber.scheduler
  end

  private

  # It reads what the other fiber writes when its sleep is over: on one thread, that takes hooks.
  def assert_others_run
    reader, writer = IO.pipe
    Fiber.schedule { sleep(0.001) && writer.write("x") }
    assert_equal "x", reader.read(1)
    refute_predicate Fiber.current, :blocking?
  ensure
    [reader, writer].each(&:close)
  end
end
