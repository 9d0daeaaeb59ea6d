# frozen_string_literal: true

require "test_helper"
require "support/signals"

# What stock Ruby can wait for in a signal handler or a finalizer, in one that runs while the machine sleeps: no strand can be
# switched to, so it waits as it would without a scheduler.
class SchedulerHandlerTest < Minitest::Test
  include Signals

  WAITS = {
    join: "Thread.new { 1 }.join.value",
    join_of_one_that_waits: "Thread.new { sleep(0.002).then { 1 } }.value",
    join_with_a_limit: "Thread.new { 1 }.join(1000).value",
    join_that_takes_too_long: "Thread.new { sleep }.then { |thread| thread.join(0.002).inspect.tap { thread.kill } }",
    item: "Thread::Queue.new.then { |queue| Thread.new { queue << 1 }.then { queue.pop } }",
    late_item: "Thread::Queue.new.then { |queue| Thread.new { sleep(0.002).then { queue << 1 } }.then { queue.pop } }",
    item_that_does_not_come: "Thread::Queue.new.pop(timeout: 0.002).inspect",
    place: "Thread::SizedQueue.new(1).push(1).then { |full| Thread.new { full.pop }.then { full.push(1).pop } }",
    several: "Array.new(3) { |i| Thread.new { i } }.sum(&:value)"
  }.freeze

  # In the fiber that sleeps in the machine: while it waits for time, for an item itself, or for another strand.
  SLEEPERS = {
    a_sleep: "sleep 0.001 until $done",
    an_item: "$own.pop",
    a_strand: "Ringspun.spin { sleep 0.001 until $done }.await"
  }.freeze

  # A thread that might wake somebody: a signal may be on its way for long, and meanwhile nothing else is there to be waited for.
  SOMEBODY = "Thread.new { sleep }"

  WAITS.each do |name, wait|
    SLEEPERS.each do |where, sleeper|
      define_method(:"test_#{name}_during_#{where}") do
        expected = name.match?(/too_long|not_come/) ? "nil" : { several: "3" }.fetch(name, "1")
        assert_program "#{expected}\nfine\n", <<~RUBY
          #{SOMEBODY}
          $own, $done = Thread::Queue.new, false
          trap("USR1") { puts #{wait}; ($done = true).then { $own << :item } }
          Ringspun.run { kill_when_asleep("USR1").then { #{sleeper} } }
          puts "fine"
        RUBY
      end
    end
  end

  # The strand and the handler wait in the same fiber, and each for its own.
  def test_the_same_queue
    assert_program "1\n2\n", <<~RUBY
      #{SOMEBODY}
      queue = Thread::Queue.new
      trap("USR1") { Thread.new { queue << 1 }.then { puts queue.pop }.then { Thread.new { queue << 2 } } }
      Ringspun.run { kill_when_asleep("USR1").then { puts queue.pop } }
    RUBY
  end

  def test_an_error_ends_the_wait
    assert_program "ensured\nFailure\nfine\n", <<~RUBY
      Failure = Class.new(StandardError)
      main = Thread.current
      trap("USR1") { Thread.new { main.raise(Failure) }.then { Thread::Queue.new.pop } }
      begin
        Ringspun.run { kill_when_asleep("USR1").then { begin; sleep; ensure; puts "ensured"; end } }
      rescue Failure => error
        puts error.class
      end
      Ringspun.run { puts Fiber.schedule { Thread.new { 1 }.join }.then { "fine" } }
    RUBY
  end

  # A handler may not take a lock, but a finalizer may, and then sleep in it.
  def test_the_sleep_of_a_mutex
    assert_program "woken\ntime\nfine\n", <<~RUBY
      Likeness = Struct.new(:scheduler) { def sleep(seconds) = scheduler.kernel_sleep(seconds) }
      trap("USR1") do
        scheduler, fiber, likeness = Fiber.scheduler, Fiber.current, Likeness.new(Fiber.scheduler)
        Thread.new { scheduler.unblock(Thread::Mutex.new, fiber) }
        likeness.sleep(nil)
        puts "woken"
        likeness.sleep(0.001)
        puts "time"
      end
      Ringspun.run { |machine| wake_when_killed_asleep("USR1").then { machine.park } }
      puts "fine"
    RUBY
  end

  # Nobody could end its block when the time is up. What has no limit needs nobody.
  def test_a_timeout
    assert_program "1\nRingspun::UsageError\n", <<~RUBY
      require "timeout"
      trap("USR1") { (puts Timeout.timeout(nil) { 1 }).then { Timeout.timeout(1000) { puts "never" } } }
      begin
        Ringspun.run { kill_when_asleep("USR1").then { sleep } }
      rescue Ringspun::UsageError => error
        puts error.class
      end
    RUBY
  end

  # For what only strands could do the handler is told so.
  def test_a_strand_in_a_handler
    assert_program "Ringspun::UsageError\n", <<~RUBY
      trap("USR1") { Fiber.schedule {} }
      begin
        Ringspun.run { kill_when_asleep("USR1").then { sleep } }
      rescue Ringspun::UsageError => error
        puts error.class
      end
    RUBY
  end
end
