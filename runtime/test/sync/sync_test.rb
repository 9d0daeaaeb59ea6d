# frozen_string_literal: true

require "test_helper"
require "support/strands"

# What Semaphore, Condition and Barrier have in common is in what they do about cancellations; see mutex_test.rb, too.
class SyncTest < Minitest::Test
  include Strands

  def setup = @seen = []

  def cancel(strand)
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
  end
end

class SemaphoreTest < SyncTest
  def test_permits
    semaphore = Ringspun::Semaphore.new(2)
    assert_equal 2, semaphore.available
    assert_same semaphore, semaphore.acquire.acquire
    assert_equal 0, semaphore.available
    assert_same semaphore, semaphore.release
    assert_equal 1, semaphore.available
    semaphore.release
  end

  def test_no_more_than_that_many_at_once
    semaphore = Ringspun::Semaphore.new(3)
    inside = most = 0
    strands = Array.new(20) do
      machine.spin do
        semaphore.hold do
          most = [most, inside += 1].max
          2.times { machine.yield }
          inside -= 1
        end
      end
    end
    machine.join(*strands)
    assert_equal [3, 0, 3], [most, inside, semaphore.available]
  end

  def test_first_come_first_served
    semaphore = Ringspun::Semaphore.new(1).acquire
    strands = Array.new(4) { |i| parked { semaphore.hold { @seen << i } } }
    assert_equal 4, semaphore.waiting
    semaphore.release
    assert_equal 0, semaphore.available # handed over
    machine.join(*strands)
    assert_equal [0, 1, 2, 3], @seen
  end

  def test_who_comes_later_does_not_overtake
    semaphore = Ringspun::Semaphore.new(1).acquire
    waiting = parked { semaphore.hold { @seen << :first } }
    semaphore.release
    semaphore.hold { @seen << :second }
    waiting.join
    assert_equal %i[first second], @seen
  end

  def test_hold
    semaphore = Ringspun::Semaphore.new(1)
    assert_equal 5, semaphore.hold { 5 }
    assert_raises(Failure) { semaphore.hold { raise Failure } }
    assert_equal 6, semaphore.hold { break 6 }
    assert_equal 1, semaphore.available
    assert_match(/needs a block/, assert_raises(Ringspun::UsageError) { semaphore.hold }.message)
    assert_equal 1, semaphore.available
  end

  def test_a_permit_may_come_back_from_another_strand
    semaphore = Ringspun::Semaphore.new(1).acquire
    machine.spin { semaphore.release }.join
    assert_equal 1, semaphore.available
  end

  def test_more_back_than_there_are
    semaphore = Ringspun::Semaphore.new(2)
    assert_raises(Ringspun::UsageError) { semaphore.release }
    assert_equal 2, semaphore.available
  end

  def test_numbers_of_permits_that_make_no_sense
    [0, -1, 1.9, 2**64, "1", nil].each { |permits| assert_raises(Ringspun::UsageError) { Ringspun::Semaphore.new(permits) } }
    assert_raises(ArgumentError) { Ringspun::Semaphore.new }
  end

  def test_making_one_does_not_bind_it
    semaphore = Ringspun::Semaphore.new(1)
    assert_equal 1, simulate { semaphore.hold { semaphore.available + 1 } }.value
  end

  def test_a_size_is_for_ever
    assert_raises(Ringspun::UsageError) { Ringspun::Semaphore.new(1).__send__(:initialize, 2) }
  end

  def test_a_cancelled_waiter_takes_no_permit
    semaphore = Ringspun::Semaphore.new(1).acquire
    cancel(parked { semaphore.hold { flunk } })
    assert_equal 0, semaphore.waiting
    semaphore.release
    assert_equal 1, semaphore.available
  end

  def test_a_cancellation_after_the_hand_over_gives_the_permit_back
    semaphore = Ringspun::Semaphore.new(1).acquire
    waiting = parked { semaphore.hold { machine.yield } }
    semaphore.release
    cancel(waiting)
    assert_equal 1, semaphore.available
  end

  def test_timeout
    semaphore = Ringspun::Semaphore.new(1).acquire
    assert_raises(Ringspun::TimeoutError) { semaphore.acquire(timeout: 0.001) }
    assert_equal 0, semaphore.waiting
    semaphore.release
    assert_same semaphore, semaphore.acquire(timeout: 0)
    semaphore.release
  end

  def test_it_belongs_to_its_machine
    semaphore = Ringspun::Semaphore.new(1)
    semaphore.hold { nil }
    on_thread { assert_instance_of Ringspun::WrongThreadError, error_of { semaphore.acquire } }
    assert_equal(1, semaphore.hold { 1 })
  end
end

class ConditionTest < SyncTest
  def setup
    super
    @condition = Ringspun::Condition.new
    @mutex = Ringspun::Mutex.new
  end

  def waiting(name, **options) = parked { @mutex.synchronize { @condition.wait(@mutex, **options).then { @seen << name } } }

  def test_signal_wakes_the_one_that_has_waited_longest
    strands = %i[a b c].map { |name| waiting(name) }
    assert_equal 3, @condition.waiting
    assert_equal true, @condition.signal
    strands[0].join
    assert_equal [[:a], 2], [@seen, @condition.waiting]
    2.times { @condition.signal }
    machine.join(*strands)
    assert_equal %i[a b c], @seen
    assert_equal false, @condition.signal
  end

  def test_broadcast_wakes_all
    strands = %i[a b c].map { |name| waiting(name) }
    assert_equal 3, @condition.broadcast
    machine.join(*strands)
    assert_equal %i[a b c], @seen
    assert_equal 0, @condition.broadcast
  end

  def test_a_signal_that_nobody_waits_for_is_gone
    @condition.signal
    strand = waiting(:a)
    assert_empty @seen
    @condition.signal
    strand.join
  end

  def test_it_gives_the_mutex_up_while_it_waits_and_has_it_again_after
    strand = parked { @mutex.synchronize { @condition.wait(@mutex).then { @seen << @mutex.owned? } } }
    refute_predicate @mutex, :locked?
    @mutex.synchronize do
      @condition.signal
      3.times { machine.yield }
      assert_empty @seen
    end
    strand.join
    assert_equal [true], @seen
    refute_predicate @mutex, :locked?
  end

  def test_it_gives_the_mutex_to_who_waits_for_it
    order = []
    first = machine.spin { @mutex.synchronize { (order << :first).then { @condition.wait(@mutex) }.then { order << :again } } }
    second = machine.spin { @mutex.synchronize { (order << :second).then { @condition.signal } } }
    machine.join(first, second)
    assert_equal %i[first second again], order
  end

  def test_without_a_mutex
    strand = parked { @condition.wait.then { :woken } }
    @condition.signal
    assert_equal :woken, strand.await
  end

  def test_a_mutex_that_it_does_not_hold
    assert_raises(Ringspun::UsageError) { @condition.wait(@mutex) }
    assert_raises(Ringspun::UsageError) { @condition.wait(Thread::Mutex.new) }
    assert_raises(Ringspun::UsageError) { @condition.wait(5) }
  end

  def wait_at(depth) = depth.zero? ? @condition.wait(@mutex) : catch { wait_at(depth - 1) }

  def lower(frames, depth) = frames.zero? ? wait_at(depth) : [1].each_entry { return lower(frames - 1, depth) }

  def too_deep?(frames, depth)
    strand = machine.spin do
      @mutex.lock
      lower(frames, depth) && false
    rescue SystemStackError
      true
    ensure
      @seen << @mutex.owned?
      @mutex.unlock if @mutex.owned?
    end
    machine.yield
    @condition.signal
    strand.await
  end

  def test_a_wait_too_deep_in_the_stack_keeps_the_mutex
    20.times do |frames| # of another size than those of `catch`, so that the last one ends here and there
      assert((1..1 << 16).bsearch { |depth| too_deep?(frames, depth) }, "no end of the stack found")
    end
    assert_equal [true], @seen.uniq
  end

  def test_a_cancelled_wait_has_the_mutex_again
    strand = parked do
      @mutex.synchronize do
        @condition.wait(@mutex)
      ensure
        @seen << @mutex.owned?
      end
    end
    cancel(strand)
    assert_equal [[true], false, 0], [@seen, @mutex.locked?, @condition.waiting]
  end

  def test_a_cancelled_wait_waits_for_the_mutex
    strand = parked do
      @mutex.synchronize do
        @condition.wait(@mutex)
      ensure
        @seen << @mutex.owned?
      end
    end
    @mutex.lock
    machine.terminate(strand)
    3.times { machine.yield }
    assert_predicate strand, :alive?
    @mutex.unlock
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [[true], false], [@seen, @mutex.locked?]
  end

  def test_a_cancellation_while_it_is_already_cancelled
    strand = parked do
      machine.sleep
    ensure
      @mutex.synchronize { @seen << error_of { @condition.wait(@mutex) }.class << @mutex.owned? }
    end
    cancel(strand)
    assert_equal [Ringspun::Cancelled, true], @seen
    refute_predicate @mutex, :locked?
  end

  def test_a_cancelled_waiter_takes_no_signal
    first, second = %i[a b].map { |name| waiting(name) }
    cancel(first)
    @condition.signal
    second.join
    assert_equal [:b], @seen
  end

  def test_timeout
    strand = machine.spin { @mutex.synchronize { [error_of { @condition.wait(@mutex, timeout: 0.001) }.class, @mutex.owned?] } }
    assert_equal [Ringspun::TimeoutError, true], strand.await
    refute_predicate @mutex, :locked?
  end

  def test_a_wrong_timeout_leaves_the_mutex_alone
    @mutex.synchronize do
      assert_raises(Ringspun::UsageError) { @condition.wait(@mutex, timeout: "1") }
      assert_predicate @mutex, :owned?
    end
  end

  def test_it_belongs_to_its_machine
    @condition.signal
    on_thread { assert_instance_of Ringspun::WrongThreadError, error_of { @condition.signal } }
  end
end

class AbandonedSyncTest < SyncTest
  # Its strands are gone, and what they held with them.
  def test_the_permits_of_a_machine_that_is_closed_are_free
    semaphore = Ringspun::Semaphore.new(2)
    on_thread { semaphore.acquire.acquire }
    assert_equal 2, semaphore.available
    2.times { semaphore.acquire(timeout: 10) }
    assert_equal 0, semaphore.available
    2.times { semaphore.release }
    assert_raises(Ringspun::UsageError) { semaphore.release }
  end
end

class BarrierTest < SyncTest
  def test_all_go_on_when_the_last_has_come
    barrier = Ringspun::Barrier.new(3)
    strands = Array.new(2) { parked { barrier.wait } }
    assert_equal 2, barrier.waiting
    assert_equal true, barrier.wait
    assert_equal [false, false], machine.await(*strands)
  end

  def test_it_can_be_used_again
    barrier = Ringspun::Barrier.new(2)
    rounds = Array.new(2) { |i| machine.spin { 5.times { |round| (@seen << [round, i]).then { barrier.wait } } } }
    machine.join(*rounds)
    assert_equal [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], @seen.map(&:first)
    assert_equal 0, barrier.waiting
  end

  def test_exactly_one_is_the_last
    barrier = Ringspun::Barrier.new(4)
    lasts = machine.await(*Array.new(8) { machine.spin { barrier.wait } })
    assert_equal 2, lasts.count(true)
  end

  def test_alone
    assert_equal true, Ringspun::Barrier.new(1).wait
  end

  def test_a_cancelled_one_does_not_count
    barrier = Ringspun::Barrier.new(2)
    cancel(parked { barrier.wait })
    strand = parked { barrier.wait }
    assert barrier.wait
    refute strand.await
  end

  def test_timeout
    barrier = Ringspun::Barrier.new(2)
    assert_raises(Ringspun::TimeoutError) { barrier.wait(timeout: 0.001) }
    assert_equal 0, barrier.waiting
  end

  def test_numbers_that_make_no_sense
    [0, -1, 1.9, "2", nil].each { |parties| assert_raises(Ringspun::UsageError) { Ringspun::Barrier.new(parties) } }
  end

  def test_it_belongs_to_its_machine
    barrier = Ringspun::Barrier.new(1)
    barrier.wait
    on_thread { assert_instance_of Ringspun::WrongThreadError, error_of { barrier.wait } }
  end
end
