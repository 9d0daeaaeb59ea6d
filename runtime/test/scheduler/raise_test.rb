# frozen_string_literal: true

require "test_helper"
require "socket"
require "timeout"
require "support/scheduled"

# Fiber#raise and Fiber#kill, on fibers that wait in each of the hooks; and the hook fiber_interrupt.
class SchedulerRaiseTest < Minitest::Test
  include Scheduled

  # Of what can be waited for: made before, and given back after.
  WAITS = {
    sleep: -> { sleep },
    sleep_with_an_end: -> { sleep(1000) },
    queue: -> { Thread::Queue.new.pop },
    place: -> { Thread::SizedQueue.new(1).then { |queue| 2.times { queue << 1 } } },
    condition: -> { Thread::Mutex.new.then { |mutex| mutex.synchronize { Thread::ConditionVariable.new.wait(mutex) } } },
    timeout: -> { Timeout.timeout(1000) { sleep } },
    select_nothing: -> { IO.select(nil, nil, nil, 1000) },
    enumerator: -> { Enumerator.new { sleep }.next }
  }.freeze

  # For which the system is needed, or its clock.
  OUTSIDE = {
    queue_with_a_timeout: -> { Thread::Queue.new.pop(timeout: 1000) },
    read: -> { with_pair(IO.pipe) { |reader, _| reader.read } },
    wait_readable: -> { with_pair(IO.pipe) { |reader, _| reader.wait_readable } },
    select: -> { with_pair(IO.pipe) { |reader, _| IO.select([reader]) } },
    socket: -> { with_pair(UNIXSocket.pair) { |socket, _| socket.recv(1) } },
    accept: -> { with_pair([TCPServer.new("127.0.0.1", 0)]) { |server| server.accept } },
    thread: -> { with_thread { |thread| thread.join } },
    thread_with_a_timeout: -> { with_thread { |thread| thread.join(1000) } },
    process: -> { with_process { |pid| Process.wait(pid) } }
  }.freeze

  def with_pair(pair)
    yield(*pair)
  ensure
    pair.each(&:close)
  end

  def with_thread
    thread = Thread.new { sleep }
    yield thread
  ensure
    thread.kill.join
  end

  def with_process
    pid = spawn("exec sleep 1000")
    yield pid
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  # Unlike a cancellation, both come from a plain fiber of the same machine, and the raising one goes on after it.
  def raised_in(wait)
    outcome = []
    fiber = Fiber.schedule do
      outcome << :begin
      instance_exec(&wait)
      outcome << :never
    rescue Failure => e
      outcome << e.message
    ensure
      outcome << :ensured
    end
    fiber.raise(Failure, "here")
    outcome << :raiser
    sleep(0.001) while fiber.alive?
    outcome
  end

  def killed_in(wait)
    outcome = []
    fiber = Fiber.schedule do
      instance_exec(&wait)
      outcome << :never
    rescue Exception => e
      outcome << e.class
    ensure
      outcome << :ensured
    end
    fiber.kill
    outcome << :killer
    sleep(0.001) while fiber.alive?
    outcome
  end

  WAITS.each do |name, wait|
    define_method(:"test_raise_in_#{name}") do
      assert_everywhere([:begin, "here", :ensured, :raiser].sort_by(&:to_s)) { raised_in(wait).sort_by(&:to_s) }
    end

    define_method(:"test_kill_in_#{name}") do
      assert_everywhere(%i[ensured killer]) { killed_in(wait).sort }
    end
  end

  OUTSIDE.each do |name, wait|
    define_method(:"test_raise_in_#{name}") do
      assert_both([:begin, "here", :ensured, :raiser].sort_by(&:to_s)) { raised_in(wait).sort_by(&:to_s) }
    end

    define_method(:"test_kill_in_#{name}") do
      assert_both(%i[ensured killer]) { killed_in(wait).sort }
    end
  end

  def test_raise_in_a_waiter_for_a_lock_that_a_thread_holds
    mutex = Thread::Mutex.new
    holding, release = Array.new(2) { Thread::Queue.new }
    holder = Thread.new { mutex.synchronize { (holding << true).then { release.pop } } }
    holding.pop
    assert_both([:begin, "here", :ensured, :raiser].sort_by(&:to_s)) { raised_in(-> { mutex.lock }).sort_by(&:to_s) }
    assert_both(%i[ensured killer]) { killed_in(-> { mutex.lock }).sort }
    release << true
    holder.join
    refute_predicate mutex, :locked?
  end

  def test_raise_in_one_that_has_ended
    assert_everywhere(FiberError) { error_of { Fiber.schedule {}.raise(Failure) }.class }
  end

  def test_an_error_that_is_not_rescued_is_the_strands
    error = assert_raises(Failure) { with_scheduler { Fiber.schedule { sleep }.raise(Failure, "not rescued") } }
    assert_equal "not rescued", error.message
  end

  def test_raise_in_oneself
    assert_everywhere([Failure, :after]) do
      outcome = []
      Fiber.schedule { outcome << error_of { Fiber.current.raise(Failure) }.class << :after }
      outcome
    end
  end

  def test_an_ensure_block_that_waits_after_a_kill
    assert_everywhere(%i[killer waited]) do
      outcome = []
      fiber = Fiber.schedule do
        sleep
      ensure
        sleep(0.001)
        outcome << :waited
      end
      fiber.kill
      outcome << :killer
      sleep(0.01)
      outcome
    end
  end

  # --- fiber_interrupt ---

  def test_fiber_interrupt
    assert_everywhere([true, :goes_on, IOError, false]) do
      outcome = []
      fiber = Fiber.schedule { outcome << error_of { sleep }.class }
      outcome << Fiber.scheduler.fiber_interrupt(fiber, IOError.new("closed")) << :goes_on
      sleep(0.001)
      outcome << Fiber.scheduler.fiber_interrupt(fiber, IOError.new("closed"))
    end
  end

  def test_fiber_interrupt_of_one_that_waits_inside_of_an_enumerator
    assert_everywhere([true, IOError]) do
      inner = nil
      error = nil
      Fiber.schedule { error = error_of { Enumerator.new { (inner = Fiber.current).then { sleep } }.next } }
      told = Fiber.scheduler.fiber_interrupt(inner, IOError.new("closed"))
      sleep(0.001)
      [told, error.class]
    end
  end

  def test_fiber_interrupt_from_another_thread
    scheduler = Ringspun::Scheduler.new
    fiber = error = nil
    ready = Thread::Queue.new
    thread = start_with(scheduler) { fiber = Fiber.schedule { (ready << true).then { error = error_of { sleep } } } }
    ready.pop
    until_stopped(thread)
    assert scheduler.fiber_interrupt(fiber, IOError.new("closed"))
    thread.value
    assert_kind_of IOError, error
    refute scheduler.fiber_interrupt(fiber, IOError.new("closed"))
  end
end
