# frozen_string_literal: true

require "test_helper"
require "timeout"
require "support/killed_anywhere"
require "support/scheduled"

# Ringspun.offload, and the hook of newer Rubies that uses it.
class SchedulerOffloadTest < Minitest::Test
  include KilledAnywhere
  include Scheduled

  def test_the_value
    assert_everywhere(:value) { Ringspun.offload { :value } }
    here = nil
    assert_both(true) { (here = Thread.current).then { Ringspun.offload { Thread.current != here } } }
  end

  def test_the_error
    assert_everywhere([Failure, "there"]) do
      error_of { Ringspun.offload { raise Failure, "there" } }.then { |error| [error.class, error.message] }
    end
    assert_both(SystemExit) { error_of { Ringspun.offload { exit } }.class }
  end

  # As a thread would that the strand makes. The thread of the pool was made by another strand, and has run blocks of others.
  def test_it_sees_the_storage_of_its_caller_and_nothing_of_others
    seen = Ringspun.run do |machine|
      [1, 2, nil].map do |number|
        machine.spin do
          Fiber[:mine] = number
          [Ringspun.offload { was_there }, Fiber[:mine], Ringspun.offload { was_there.last }]
        end.await
      end
    end
    assert_equal [1, 2, nil].map { |number| [[number, nil, nil], number, nil] }, seen
  end

  def was_there
    [Fiber[:mine], Fiber[:left], Thread.current[:left]].tap { Fiber[:mine] = Fiber[:left] = Thread.current[:left] = 9 }
  end

  # A thread that waits for its next block keeps nothing alive that belongs to a request.
  def test_a_thread_keeps_nothing_of_who_made_it
    Ringspun.run do |machine|
      machine.spin { (Fiber[:mine] = Object.new) && Ringspun.offload { Thread.current[:left] = Object.new } }.await
    end
    threads = Thread.list.select { |thread| thread.name == "ringspun offload" }
    assert_equal [[]], threads.map(&:keys).uniq
  end

  def test_where_it_is_simply_called
    assert_equal(Thread.current, Ringspun.offload { Thread.current })
    simulate { assert_equal Thread.current, Ringspun.offload { Thread.current } }
    assert_equal(true, with_scheduler { Ringspun.offload { Thread.current }.equal?(Thread.current) })
  end

  def test_without_a_block
    assert_raises(Ringspun::UsageError) { Ringspun.offload }
    assert_both(Ringspun::UsageError) { error_of { Ringspun.offload }.class }
  end

  # The block waits for what only another strand does.
  def test_others_run_meanwhile
    assert_both(:from_a_strand) do
      queue = Thread::Queue.new
      Fiber.schedule { queue << :from_a_strand }
      Ringspun.offload { queue.pop }
    end
  end

  def test_several_at_once
    assert_both([0, 1, 2]) do
      queues = Array.new(4) { Thread::Queue.new }
      got = []
      all = Array.new(3) { |i| schedule { got << Ringspun.offload { (queues[i + 1] << queues[i].pop).then { i } } } }
      queues.first << :passed_on
      join(*all)
      got.sort
    end
  end

  def test_no_more_than_the_limit_at_once
    with_limit(2) do
      assert_both([2, 10]) do
        lock = Thread::Mutex.new
        running = most = done = 0
        all = Array.new(10) do
          schedule do
            Ringspun.offload do
              lock.synchronize { most = [most, running += 1].max }
              sleep(0.001) until most > 1 # the thread of the second may begin when the other has done all the rest
              5.times { Thread.pass }
              sleep(0.001)
              lock.synchronize { running -= 1 }
            end
            done += 1
          end
        end
        join(*all)
        [most, done]
      end
    end
  end

  # A pool has grown by the limit that it had; a new process's, or ractor's, starts anew.
  def with_limit(limit, &block)
    assert_predicate(in_child do
      Ringspun.offload_limit = limit
      instance_exec(&block)
    end, :success?)
  end

  def test_the_limit
    assert_operator Ringspun.offload_limit, :>, 0
    [0, -1, 1.5, nil, "2"].each do |bad|
      error = assert_raises(Ringspun::UsageError) { Ringspun.offload_limit = bad }
      assert_match(/positive Integer/, error.message)
    end
    with_limit(3) { assert_equal 3, Ringspun.offload_limit }
  end

  def test_many
    assert_both(Array.new(200) { |i| i * 2 }) do
      got = []
      join(*Array.new(200) { |i| schedule { got << Ringspun.offload { i * 2 } } })
      got.sort
    end
  end

  def test_inside_another
    assert_both(%i[inner outer]) { Ringspun.offload { [Ringspun.offload { :inner }, :outer] } }
  end

  # It runs to its end; the cancellation meets the next wait.
  def test_a_cancellation_while_it_runs
    assert_both([:value, Ringspun::Cancelled]) do
      started, release = Array.new(2) { Thread::Queue.new }
      outcome = []
      strand = machine.spin do
        outcome << Ringspun.offload { (started << true).then { release.pop } }
        sleep
      rescue Ringspun::Cancelled => e
        outcome << e.class
        raise
      end
      started.pop
      machine.terminate(strand)
      sleep(0.001)
      release << :value
      error_of { strand.join }
      outcome
    end
  end

  def test_a_timeout_while_it_runs
    assert_both([:value, Timeout::Error]) do
      release = Thread::Queue.new
      outcome = []
      Fiber.schedule { sleep(0.003).then { release << :value } }
      error = error_of do
        Timeout.timeout(0.001) do
          outcome << Ringspun.offload { release.pop }
          sleep
        end
      end
      outcome << error.class
    end
  end

  # --- its threads ---

  def test_a_block_that_ends_its_thread
    with_limit(2) do
      assert_both([nil] * 10 + [:value]) { Array.new(10) { Ringspun.offload { Thread.exit } } << Ringspun.offload { :value } }
    end
  end

  def test_threads_that_are_killed
    with_limit(2) do
      assert_both([:value]) do
        5.times do
          Ringspun.offload {}
          pool_threads.each(&:kill)
        end
        Array.new(5) { Ringspun.offload { :value } }.uniq
      end
    end
  end

  # Wherever it is. A block that has begun may end with its thread; one that has not is run by another thread.
  def test_a_thread_that_is_killed_anywhere
    seen = []
    1.step do |number|
      begun = []
      killed, value = killed_at(number) { |pool| pool.call { begun << number and :value } }
      break unless killed

      seen << value
      assert_equal [[number], true], [begun, [:value, nil].include?(value)], "killed at line #{number}: #{value.inspect}"
    end
    assert_operator seen.count(:value), :>, 10
  end

  # Work that was interrupted before it has begun is not done.
  def test_a_thread_that_is_killed_anywhere_with_work_of_the_hook
    1.step do |number|
      begun = []
      killed, done = killed_at(number) { |pool| pool.lend(-> { begun << number }, false) }
      break assert_operator(number, :>, 10) unless killed

      assert_equal [[number], true], [begun, done], "killed at line #{number}"
    end
  end

  # Wherever its thread is. It ends, and where it is said to be done it is.
  def test_work_of_the_hook_that_is_recalled_anywhere
    recall = ->(_, loan) { loan.recall if loan.respond_to?(:recall) && !loan.instance_variable_get(:@lock).locked? }
    1.step do |number|
      begun = []
      recalled, done = killed_at(number, recall) { |pool| pool.lend(-> { begun << number }, false) }
      break assert_operator(number, :>, 10) unless recalled

      assert_equal [number], begun, "recalled at line #{number}" if done
    end
  end

  # @return [Array] whether its thread came to that line, and what the call has returned
  def killed_at(number, *end_it)
    pool = Ringspun.const_get(:Offload).new(1)
    another_killed_at(number, "ringspun/offload.rb", *end_it) do
      Ringspun.run { yield pool }.tap { Ringspun::Machine.current.close }
    end
  end

  def test_threads_that_are_killed_before_they_begin
    with_limit(2) do
      left = 2
      deadly = Module.new do
        define_method(:new) { |*all, &block| super(*all, &block).tap { |thread| thread.kill if (left -= 1) >= 0 } }
      end
      Thread.singleton_class.prepend(deadly)
      assert_equal([:value, -1], Ringspun.run { [Ringspun.offload { :value }, left] })
    end
  end

  def test_no_thread_can_be_made
    with_limit(2) do
      assert_equal([ThreadError] * 5 + [:value], Ringspun.run do
        errors = without_threads { Array.new(5) { error_of { Ringspun.offload {} }.class } }
        errors << Ringspun.offload { :value }
      end)
    end
  end

  # It is done by the thread that there is.
  def test_no_second_thread_can_be_made
    with_limit(2) do
      assert_equal(%i[first second], Ringspun.run do
        started, release = Array.new(2) { Thread::Queue.new }
        first = machine.spin { Ringspun.offload { (started << true).then { release.pop }.then { :first } } }
        started.pop
        second = without_threads { parked { Ringspun.offload { :second } } }
        release << true
        [first, second].map(&:await)
      end)
    end
  end

  # A thread that waits for work will not end anybody's wait.
  def test_a_deadlock_beside_idle_threads
    assert_child "true\ndeadlock\n", <<~RUBY
      def idle = Thread.list.select { |thread| thread.name == "ringspun offload" }
      begin
        Ringspun.run do
          Ringspun.offload {}
          Thread.pass until idle.all?(&:stop?)
          Ringspun::Queue.new.pop
        ensure
          puts idle.any?
        end
      rescue Ringspun::DeadlockError
        puts "deadlock"
      end
    RUBY
  end

  def test_no_deadlock_while_a_thread_that_was_idle_works
    assert_child "1\n2\n", <<~RUBY
      Ringspun.run do
        puts Ringspun.offload { 1 }
        Thread.pass until (Thread.list - [Thread.current]).all?(&:stop?)
        puts Ringspun.offload { sleep(0.01).then { 2 } }
      end
    RUBY
  end

  def pool_threads = Thread.list.select { |thread| thread.name == "ringspun offload" }

  def without_threads
    refusal = Module.new { def new = raise(ThreadError, "no more") }
    Thread.singleton_class.prepend(refusal)
    yield
  ensure
    refusal.remove_method(:new)
  end

  # --- forks ---

  def test_after_a_fork
    Ringspun.run { Ringspun.offload {} }
    status = in_child { assert_equal(:in_the_child, Ringspun.run { Ringspun.offload { :in_the_child } }) }
    assert_predicate status, :success?
    assert_equal(:in_the_parent, Ringspun.run { Ringspun.offload { :in_the_parent } })
  end

  def test_a_fork_while_it_runs
    Ringspun.run do
      release = Thread::Queue.new
      waiting = schedule { Ringspun.offload { release.pop } }
      status = in_child { assert_equal(:in_the_child, Ringspun.offload { :in_the_child }) }
      assert_predicate status, :success?
      release << true
      join(waiting)
    end
  end

  def test_in_a_ractor
    answer = child(<<~RUBY)
      Warning[:experimental] = false
      ractor = Ractor.new { Ringspun.run { Ringspun.offload { "in a ractor" } } }
      puts ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    assert_equal ["in a ractor\n", ""], [answer.out, answer.err]
  end

  # --- the hook ---

  def test_blocking_operation_wait
    assert_both([nil, true]) do
      ran_on = nil
      here = Thread.current
      [Fiber.scheduler.blocking_operation_wait(-> { ran_on = Thread.current }), ran_on != here]
    end
  end

  # What waits lets the block go before it goes on itself.
  def test_a_cancellation_interrupts_what_the_hook_was_given
    assert_both([:block, :strand, Ringspun::TerminatedError]) do
      seen = []
      started = Thread::Queue.new
      strand = machine.spin do
        Fiber.scheduler.blocking_operation_wait(lambda do
          (started << true).then { Thread::Queue.new.pop }
        ensure
          sleep(0.01)
          seen << :block
        end)
      ensure
        seen << :strand
      end
      started.pop
      machine.terminate(strand)
      error = error_of { strand.join }
      [*seen, error.class]
    end
  end

  def test_a_timeout_interrupts_it
    assert_both([Timeout::Error, :later]) do
      error = error_of { Timeout.timeout(0.005) { Fiber.scheduler.blocking_operation_wait(-> { sleep }) } }
      value = nil
      Fiber.scheduler.blocking_operation_wait(-> { value = :later })
      [error.class, value]
    end
  end

  # What has come to its end by then counts, and the cancellation meets the next wait.
  def test_work_that_is_done_although_it_was_interrupted
    assert_both(%i[done refused]) do
      seen = []
      started = Thread::Queue.new
      strand = machine.spin do
        Fiber.scheduler.blocking_operation_wait(lambda do
          (started << true).then { sleep }
        rescue Exception
          nil
        end)
        seen << :done
        sleep
      rescue Ringspun::Cancelled
        seen << :refused
        raise
      end
      started.pop
      machine.terminate(strand)
      error_of { strand.join }
      seen
    end
  end

  def test_work_of_one_that_is_cancelled_while_it_runs
    assert_both([nil, nil]) do
      value = machine.scope do |scope|
        scope.cancel
        Fiber.scheduler.blocking_operation_wait(-> { sleep })
        :never
      end
      [value, Fiber.scheduler.blocking_operation_wait(-> {})]
    end
  end

  # An ensure block may compress what is left.
  def test_work_of_one_that_was_cancelled_before
    assert_both(%i[first second]) do
      seen = []
      strand = parked do
        sleep
      ensure
        %i[first second].each { |name| Fiber.scheduler.blocking_operation_wait(-> { sleep(0.01).then { seen << name } }) }
      end
      machine.terminate(strand)
      error_of { strand.join }
      seen
    end
  end

  def test_work_without_end_leaves_the_threads_of_offload
    assert_both(%i[offloaded lent]) do
      count = Ringspun.offload_limit + 1
      started = Thread::Queue.new
      strands = Array.new(count) do
        machine.spin { Fiber.scheduler.blocking_operation_wait(-> { (started << true).then { sleep } }) }
      end
      count.times { started.pop }
      seen = [Ringspun.offload { :offloaded }]
      Fiber.scheduler.blocking_operation_wait(-> { seen << :lent })
      strands.each { |strand| machine.terminate(strand) }
      strands.each { |strand| error_of { strand.join } }
      seen
    end
  end

  def test_the_error_of_work
    assert_both([Failure, SystemExit]) do
      [-> { raise Failure }, -> { exit }].map { |work| error_of { Fiber.scheduler.blocking_operation_wait(work) }.class }
    end
  end

  def test_a_scheduler_that_says_what_it_is_given
    spy = Class.new(Ringspun::Scheduler) do
      def given = @given ||= []
      def blocking_operation_wait(work) = (given << work).then { super }
    end.new
    ran = nil
    with_scheduler(spy) { Fiber.schedule { Fiber.scheduler.blocking_operation_wait(-> { ran = Thread.current }) } }
    assert_equal [1, true], [spy.given.size, !ran.nil?]
    assert_respond_to Ringspun::Scheduler.new, :blocking_operation_wait
    assert_raises(NoMethodError) { Ringspun::Scheduler.new.no_such_hook(1) }
    assert_raises(ArgumentError) { Ringspun::Scheduler.new.blocking_operation_wait }
  end
end
