# frozen_string_literal: true

# Mutexes, semaphores, conditions, barriers and queues, on this state's machine and on simulated ones.
class SyncTest < Minitest::Test
  include Strands

  # The block on both machines, in a scope.
  def on_both(&block)
    in_scope(&block)
    [false, true].each { |faults| Ringspun::Simulation.run(faults: faults) { in_scope(&block) } }
  end

  # Strands that wait, each with its number.
  def waiting(scope, count)
    strands = Array.new(count) { |number| scope.spin { yield number } }
    machine.yield
    strands
  end

  def error_of
    yield
    nil
  rescue Exception => error
    error
  end

  def cancel(strand)
    machine.terminate(strand)
    assert_raises(Ringspun::TerminatedError) { strand.await }
  end

  def elapsed_of
    before = machine.now
    yield
    (machine.now - before).round(3)
  end

  def simulate(&block) = Ringspun::Simulation.run(faults: false) { in_scope(&block) }
end

class MutexTest < SyncTest
  def test_alone
    on_both do
      mutex = Ringspun::Mutex.new
      assert_same mutex, mutex.lock
      assert_equal [true, true, false], [mutex.locked?, mutex.owned?, mutex.try_lock]
      assert_same mutex, mutex.unlock
      assert_equal [false, false], [mutex.locked?, mutex.owned?]
      assert_equal 5, (mutex.synchronize { 5 })
      assert_raises(ArgumentError) { mutex.synchronize { raise ArgumentError } }
      assert_equal 6, (mutex.synchronize { mutex.unlock and 6 })
      assert_raises(Ringspun::UsageError) { mutex.synchronize }
      refute_predicate mutex, :locked?
    end
  end

  def test_what_is_refused
    on_both do |scope|
      mutex = Ringspun::Mutex.new
      assert_includes assert_raises(Ringspun::UsageError) { mutex.unlock }.message, "does not hold"
      mutex.lock
      assert_includes assert_raises(Ringspun::DeadlockError) { mutex.lock(timeout: 0) }.message, "not reentrant"
      assert_equal Ringspun::UsageError, scope.spin { error_of { mutex.unlock }.class }.await
      assert_equal [[false, true, false]], waiting(scope, 1) { [mutex.try_lock, mutex.locked?, mutex.owned?] }.map(&:await)
      assert_raises(ArgumentError) { mutex.lock(1) }
      assert_raises(ArgumentError) { mutex.lock(timeuot: 1) }
      ["1", 0.0 / 0].each { |seconds| assert_raises(Ringspun::UsageError) { mutex.lock(timeout: seconds) } }
    end
  end

  def test_it_is_handed_over_to_who_has_waited_longest
    on_both do |scope|
      mutex, order = Ringspun::Mutex.new.lock, []
      strands = waiting(scope, 4) { |number| mutex.synchronize { machine.yield and order << number } }
      assert_equal 4, mutex.waiting
      mutex.unlock
      assert_equal [true, false, false], [mutex.locked?, mutex.owned?, mutex.try_lock]
      strands.each(&:await)
      assert_equal [[0, 1, 2, 3], false], [order, mutex.locked?]
    end
  end

  def test_the_lock_of_a_strand_that_ends_is_free
    on_both do |scope|
      mutex = Ringspun::Mutex.new
      scope.spin { mutex.lock }.await
      assert_equal [false, true], [mutex.locked?, mutex.try_lock]
      mutex.unlock
      owner = scope.spin { mutex.lock and 3.times { machine.yield } }
      machine.yield
      assert_equal [0, 1], waiting(scope, 2) { |number| mutex.synchronize { number } }.map(&:await)
      owner.await
    end
  end

  def test_cancellations
    on_both do |scope|
      mutex = Ringspun::Mutex.new.lock
      first, second, third = waiting(scope, 3) { |number| mutex.synchronize { machine.yield and number } }
      cancel(first)
      mutex.unlock
      machine.terminate(second) # which has it already
      assert_equal 2, third.await
      assert_raises(Ringspun::TerminatedError) { second.await }
      refute_predicate mutex, :locked?
    end
  end

  # The holder lets others run, and one of them is on its way out.
  def test_on_the_way_out
    on_both do |scope|
      [[Ringspun::Mutex.new, :synchronize], [Ringspun::Semaphore.new(1), :hold]].each do |lock, hold|
        held = false
        holder = scope.spin { lock.__send__(hold) { 3.times { machine.yield } } }
        leaver = scope.spin do
          begin
            wait(1000)
          ensure
            lock.__send__(hold) { held = true }
          end
        end
        machine.yield
        cancel(leaver)
        holder.await
        assert held, hold
      end
    end
  end

  def test_timeouts
    simulate do |scope|
      mutex = Ringspun::Mutex.new
      scope.spin { mutex.synchronize { wait(5) } }
      machine.yield
      assert_equal(2, elapsed_of { assert_raises(Ringspun::TimeoutError) { mutex.lock(timeout: 2) } })
      assert_equal(3, elapsed_of { assert_same mutex, mutex.lock(timeout: 10) })
    end
  end

  def test_in_a_generator
    on_both do |scope|
      mutex = Ringspun::Mutex.new.lock
      strand = scope.spin { Fiber.new { mutex.synchronize { :inside } }.resume }
      machine.yield
      mutex.unlock
      assert_equal :inside, strand.await
    end
  end

  def test_where_c_has_called
    mutex = Ringspun::Mutex.new
    in_scope do |scope|
      strand = scope.spin { mutex.synchronize { machine.yield } }
      machine.yield
      assert_raises(Ringspun::UsageError) { Hash.new { mutex.synchronize { 1 } }[1] }
      strand.await
    end
    assert_equal 1, (Hash.new { mutex.synchronize { 1 } }[1]) # which need not wait
  end

  def test_a_deadlock
    mutex = Ringspun::Mutex.new.lock
    assert_raises(Ringspun::DeadlockError) do
      in_scope { |scope| scope.spin { mutex.lock } }
    end
    mutex.unlock
  end

  def test_whose_it_is
    mutex = Ringspun::Mutex.new.lock
    simulate do
      assert_includes assert_raises(Ringspun::UsageError) { mutex.locked? }.message, "Ringspun::Mutex is used by another machine"
    end
    assert_same mutex, mutex.unlock
  end

  def test_the_lock_of_a_machine_that_is_closed_is_nobodys
    mutex = Ringspun::Mutex.new
    semaphore = Ringspun::Semaphore.new(1)
    2.times { simulate { |scope| mutex.lock and semaphore.acquire and scope.spin { error_of { mutex.lock(timeout: 1) } } } }
    assert_equal [false, 1, 5], [mutex.locked?, semaphore.available, (mutex.synchronize { 5 })]
  end

  def test_copies_and_second_sizes
    all = [Ringspun::Mutex.new, Ringspun::Semaphore.new(1), Ringspun::Condition.new, Ringspun::Barrier.new(1), Ringspun::Queue.new]
    all.each do |one|
      assert_includes assert_raises(Ringspun::UsageError) { one.dup }.message, "cannot be copied"
      assert_raises(Ringspun::UsageError) { one.send(:initialize, *([1] if one.respond_to?(:available) || one.is_a?(Ringspun::Barrier))) }
    end
    assert_raises(TypeError) { Class.new(Ringspun::Mutex) { define_method(:initialize) { nil } }.new.lock }
    [0, -1, 1.5, "1", nil].each do |size|
      [Ringspun::Semaphore, Ringspun::Barrier, Ringspun::SizedQueue].each do |type|
        assert_raises(Ringspun::UsageError) { type.new(size) }
      end
    end
  end

  # Class#new of mruby hands on an empty Hash of options, which is no size.
  def test_a_size_that_is_missing_is_said_to_be_missing
    [Ringspun::Semaphore, Ringspun::Barrier, Ringspun::SizedQueue].each do |type|
      missing = -> { type.new }
      with_block = -> { type.new { flunk } }
      [missing, with_block].each do |call|
        assert_equal "wrong number of arguments (given 0, expected 1)", assert_raises(ArgumentError, &call).message
      end
      error = assert_raises(Ringspun::UsageError) { type.new(permits: 1) }
      assert_includes error.message, "expected an Integer, 1 or more, got {"
    end
  end
end

class SemaphoreTest < SyncTest
  def test_no_more_than_that_many_at_once
    on_both do |scope|
      semaphore, inside, most = Ringspun::Semaphore.new(3), 0, 0
      strands = Array.new(10) do
        scope.spin do
          semaphore.hold do
            most = [most, inside += 1].max
            2.times { machine.yield }
            inside -= 1
          end
        end
      end
      strands.each(&:await)
      assert_equal [3, 0, 3], [most, inside, semaphore.available]
    end
  end

  def test_permits
    on_both do |scope|
      semaphore = Ringspun::Semaphore.new(1).acquire
      first, second = waiting(scope, 2) { |number| semaphore.hold { number } }
      assert_equal [2, 0], [semaphore.waiting, semaphore.available]
      cancel(first)
      scope.spin { semaphore.release }.await
      assert_equal [1, 1], [second.await, semaphore.available]
      assert_includes assert_raises(Ringspun::UsageError) { semaphore.release }.message, "more often than acquired"
      assert_raises(ArgumentError) { semaphore.hold { raise ArgumentError } }
      assert_raises(Ringspun::UsageError) { semaphore.hold }
      assert_equal 1, semaphore.available
    end
  end

  def test_timeouts
    simulate do
      semaphore = Ringspun::Semaphore.new(1).acquire
      assert_equal(2, elapsed_of { assert_raises(Ringspun::TimeoutError) { semaphore.acquire(timeout: 2) } })
      assert_equal 0, semaphore.waiting
    end
  end
end

class ConditionTest < SyncTest
  def test_signals
    on_both do |scope|
      condition = Ringspun::Condition.new
      assert_equal [false, 0], [condition.signal, condition.broadcast]
      strands = waiting(scope, 3) { |number| condition.wait.equal?(condition) and number }
      assert_equal [3, true, 2], [condition.waiting, condition.signal, condition.waiting]
      machine.yield
      assert_equal [true, false, false], strands.map(&:done?)
      assert_equal [2, [0, 1, 2]], [condition.broadcast, strands.map(&:await)]
    end
  end

  def test_with_a_mutex
    on_both do |scope|
      mutex, condition = Ringspun::Mutex.new, Ringspun::Condition.new
      strands = waiting(scope, 3) { |number| mutex.synchronize { condition.wait(mutex) and mutex.owned? and number } }
      assert_equal 3, (mutex.synchronize { condition.broadcast })
      assert_equal [0, 1, 2], strands.map(&:await)
      assert_raises(Ringspun::UsageError) { condition.wait(mutex) }
      assert_raises(Ringspun::UsageError) { condition.wait(condition) }
      refute_predicate mutex, :locked?
    end
  end

  def test_the_mutex_is_locked_again_however_the_wait_ends
    on_both do |scope|
      mutex, condition, seen = Ringspun::Mutex.new, Ringspun::Condition.new, []
      strand = scope.spin do
        mutex.synchronize do
          condition.wait(mutex)
        ensure
          seen << mutex.owned?
        end
      end
      machine.yield
      mutex.lock
      machine.terminate(strand)
      3.times { machine.yield }
      assert_equal [], seen
      mutex.unlock
      assert_raises(Ringspun::TerminatedError) { strand.await }
      mutex.synchronize { assert_raises(Ringspun::TimeoutError) { condition.wait(mutex, timeout: 0.001) } and seen << mutex.owned? }
      assert_equal [true, true], seen
    end
  end

  def test_a_deadlock_while_the_mutex_is_held
    mutex, condition, seen = Ringspun::Mutex.new, Ringspun::Condition.new, []
    assert_raises(Ringspun::DeadlockError) do
      in_scope do |scope|
        scope.spin do
          mutex.synchronize do
            condition.wait(mutex)
          ensure
            seen << mutex.owned?
          end
        end
        machine.yield
        scope.spin { mutex.lock and condition.signal and condition.wait }
      end
    end
    assert_equal [[true], false], [seen, mutex.locked?]
  end
end

class BarrierTest < SyncTest
  def test_all_go_on_together
    on_both do |scope|
      barrier = Ringspun::Barrier.new(3)
      2.times do
        strands = waiting(scope, 2) { barrier.wait }
        assert_equal [2, true, 0], [barrier.waiting, barrier.wait, barrier.waiting]
        assert_equal [false, false], strands.map(&:await)
      end
      cancel(waiting(scope, 1) { barrier.wait }.first)
      assert_raises(Ringspun::TimeoutError) { barrier.wait(timeout: 0.001) }
      assert_equal 0, barrier.waiting
    end
  end
end

class QueueTest < SyncTest
  def test_a_frozen_one
    on_both do
      queue = Ringspun::Queue.new.freeze
      assert_equal [1, 2], [queue.push(1).pop, Ringspun::Mutex.new.freeze.synchronize { 2 }]
    end
  end

  def test_first_in_first_out
    on_both do
      queue = Ringspun::Queue.new([1, 2])
      assert_same queue, queue.push(3)
      assert_same queue, queue << nil
      queue.enq({ a: 1 })
      assert_equal [5, 5, false], [queue.size, queue.length, queue.empty?]
      assert_equal [1, 2, 3, nil, { a: 1 }], [queue.pop, queue.shift, queue.deq, queue.pop, queue.pop]
      assert_equal [0, true], [queue.push(1).clear.size, queue.empty?]
      assert_equal [1, 2], Array.new(2) { Ringspun::Queue.new(1..2).pop + _1 }
    end
  end

  def test_a_pop_waits
    on_both do |scope|
      queue = Ringspun::Queue.new
      strands = waiting(scope, 3) { |number| [number, queue.pop] }
      assert_equal 3, queue.num_waiting
      queue << :first << nil << :third
      assert_equal [0, 0], [queue.num_waiting, queue.size]
      assert_raises(Ringspun::UsageError) { queue.pop(true) }
      assert_equal [[0, :first], [1, nil], [2, :third]], strands.map(&:await)
    end
  end

  def test_arguments
    on_both do
      queue = Ringspun::Queue.new([1, 2])
      assert_equal [1, 2], [queue.pop(true), queue.pop(false, timeout: nil)]
      assert_includes assert_raises(Ringspun::UsageError) { queue.pop(true) }.message, "empty"
      [-> { queue.pop(true, timeout: 1) }, -> { queue.pop(1, 2) }, -> { queue.pop(wait: 1) }, -> { queue.push },
       -> { queue.push(1, true) }, -> { queue.push(1, wait: 1) }, -> { Ringspun::Queue.new([], 1) }].each do |call|
        assert_raises(ArgumentError) { call.call }
      end
      assert_includes assert_raises(Ringspun::UsageError) { queue.push(1, timeout: 1) }.message, "SizedQueue"
      assert_raises(Ringspun::UsageError) { queue.pop(timeout: "soon") }
      assert_raises(Ringspun::UsageError) { Ringspun::Queue.new(1) }
      assert_empty queue
    end
  end

  def test_close
    on_both do |scope|
      queue = Ringspun::Queue.new
      strands = waiting(scope, 2) { [queue.pop] }
      queue.push(:item).close
      assert_equal [[[:item], [nil]], true, nil], [strands.map(&:await), queue.closed?, queue.pop]
      assert_includes assert_raises(Ringspun::ClosedError) { queue << 1 }.message, "closed"
      assert_equal [1, nil], Array.new(2) { (@filled ||= Ringspun::Queue.new([1]).close).pop }
      @filled = nil
    end
  end

  def test_each_until_it_is_closed_and_empty
    on_both do |scope|
      [Ringspun::Queue.new([1, nil]), Ringspun::SizedQueue.new(2) << 1 << nil].each do |queue|
        got = []
        strand = waiting(scope, 1) { queue.each { |item| got << item } }.first
        assert_equal [1, nil], got
        queue << false << nil
        machine.yield
        queue.push(nil).close
        assert_same queue, strand.await
        assert_equal [1, nil, false, nil, nil], got
        assert_same queue, (queue.each { flunk })
      end
    end
  end

  def test_each_is_broken_off
    on_both do |scope|
      queue = Ringspun::Queue.new([1, 2, 3])
      assert_equal 2, (queue.each { |item| break item if item == 2 })
      assert_raises(ArgumentError) { queue.each { |item| raise ArgumentError if item == 3 } }
      assert_equal [0, 0], [queue.size, queue.num_waiting]
      assert_includes assert_raises(Ringspun::UsageError) { queue.each }.message, "block"
      cancel(waiting(scope, 1) { queue.each { flunk } }.first)
      assert_equal 0, queue.num_waiting
      queue.push(:last).close
      assert_equal :last, queue.pop
    end
  end

  def test_cancellations
    on_both do |scope|
      queue, got = Ringspun::Queue.new, []
      first, second, third = waiting(scope, 3) { (got << queue.pop) && machine.yield }
      cancel(first)
      queue << 1 << 2
      machine.terminate(second) # which has it already
      third.await
      assert_equal [[1, 2], 0], [got, queue.num_waiting]
      assert_raises(Ringspun::TerminatedError) { second.await }
    end
  end

  def test_timeouts
    simulate do |scope|
      queue = Ringspun::Queue.new
      assert_equal(2, elapsed_of { assert_nil queue.pop(timeout: 2) })
      scope.spin { wait(1) and queue << :item }
      assert_equal(1, elapsed_of { assert_equal :item, queue.pop(timeout: 5) })
      full = Ringspun::SizedQueue.new(1) << 1
      assert_equal(2, elapsed_of { assert_nil full.push(2, timeout: 2) })
      assert_equal [1, 0], [full.size, full.num_waiting]
    end
  end

  def test_no_order_of_events_loses_an_item
    Ringspun::Simulation.explore(20) do
      queue, got = Ringspun::SizedQueue.new(2), []
      in_scope do |scope|
        poppers = Array.new(10) { |number| scope.spin { (item = queue.pop(timeout: 0.01 * number)) && got << item } }
        30.times do |item|
          machine.terminate(poppers[item / 3]) if item % 3 == 0
          got << queue.pop if queue.size == 2
          queue << item
          wait(0.003)
        end
      end
      got << queue.pop until queue.empty?
      assert_equal (0...30).to_a, got
    end
  end

  def test_whose_it_is
    queue = Ringspun::Queue.new << 1
    simulate { assert_raises(Ringspun::UsageError) { queue.pop } }
    inner = nil
    simulate { |scope| (inner = Ringspun::SizedQueue.new(1) << 2) && scope.spin { error_of { inner.push(3, timeout: 1) } } }
    assert_equal [1, 2], [queue.pop, inner.pop]
    assert_equal 3, (inner << 3).pop
  end
end

class SizedQueueTest < SyncTest
  def test_pushers_are_served_in_their_order
    on_both do |scope|
      queue = Ringspun::SizedQueue.new(2) << :one << :two
      strands = waiting(scope, 3) { |number| queue.push(number).equal?(queue) and number }
      assert_equal [2, 3, 2], [queue.size, queue.num_waiting, queue.max]
      assert_equal [:one, :two, 0, 1, 2], Array.new(5) { queue.pop }
      assert_equal [[0, 1, 2], 0], [strands.map(&:await), queue.size]
    end
  end

  def test_what_is_refused
    on_both do |scope|
      queue = Ringspun::SizedQueue.new(1)
      assert_same queue, queue.push(1, true)
      assert_includes assert_raises(Ringspun::UsageError) { queue.push(2, true) }.message, "full"
      assert_raises(ArgumentError) { queue.push(2, true, timeout: 1) }
      assert_raises(Ringspun::UsageError) { Hash.new { queue.push(2) }[1] }
      first, second = waiting(scope, 2) { |number| queue.push(number) }
      cancel(first)
      queue.close
      assert_raises(Ringspun::ClosedError) { second.await }
      assert_equal [1, nil], [queue.pop, queue.pop]
    end
  rescue Ringspun::ClosedError
    nil # of the strand, for its scope
  end

  def test_clear_and_max
    on_both do |scope|
      queue = Ringspun::SizedQueue.new(2) << 1 << 2
      strands = waiting(scope, 5) { |number| queue.push(10 + number) }
      assert_equal [2, 3], [queue.clear.size, queue.num_waiting]
      queue.max = 4
      assert_equal [4, 1], [queue.size, queue.num_waiting]
      queue.max = 1
      assert_raises(Ringspun::UsageError) { queue.max = 0 }
      assert_equal [10, 11, 12, 13, 14], Array.new(5) { queue.pop }
      strands.each(&:await)
    end
  end
end

# What only the collector sees.
class SyncGcTest < SyncTest
  def collect
    GC.start
    Array.new(20) { |number| "over #{number}" }
  end

  def test_items_inside_and_on_their_way
    [true, false].each do |generational|
      GC.generational_mode = generational
      on_both do |scope|
        queue = Ringspun::SizedQueue.new(2)
        popper = waiting(scope, 1) { queue.pop + "!" }.first
        3.times { |number| queue << ["item", number].join }
        pushers = waiting(scope, 2) { |number| queue << ["late", number].join }
        collect
        assert_equal %w[item0! item1 item2 late0 late1], [popper.await] + Array.new(4) { queue.pop.tap { collect } }
        pushers.each(&:await)
      end
    end
  ensure
    GC.generational_mode = true
  end

  def test_a_queue_keeps_nothing_that_was_taken
    queue = Ringspun::Queue.new
    fill(queue, 2_000)
    assert_equal 2_000, tracked
    1_000.times { queue.pop }
    clean_stack
    assert_equal 1_000, tracked
    fill(queue, 10)
    queue.clear
    clean_stack
    assert_equal 0, tracked
    assert_equal 5, (queue << 5).pop
  end

  def test_locks_that_nobody_has_any_more
    on_both do |scope|
      10.times { scope.spin { Ringspun::Mutex.new.lock and machine.yield and collect } }
      3.times { collect and machine.yield }
    end
    GC.start
  end

  private

  class Tracked; end

  def fill(queue, count) = count.times { queue << Tracked.new }
  def tracked = ObjectSpace.each_object(Tracked) { nil }

  def clean_stack(depth = 20)
    return GC.start if depth == 0

    clean_stack(depth - 1)
  end
end
