# frozen_string_literal: true

require "test_helper"
require "support/strands"

class MutexTest < Minitest::Test
  include Strands

  def setup = @mutex = Ringspun::Mutex.new

  # A strand that holds the lock until something is pushed to the queue.
  def holder
    gate = Ringspun::Queue.new
    [parked { @mutex.synchronize { gate.pop } }, gate]
  end

  # --- alone ---

  def test_lock_and_unlock
    refute_predicate @mutex, :locked?
    assert_same @mutex, @mutex.lock
    assert_equal [true, true], [@mutex.locked?, @mutex.owned?]
    assert_same @mutex, @mutex.unlock
    assert_equal [false, false], [@mutex.locked?, @mutex.owned?]
  end

  def test_synchronize
    assert_equal 5, @mutex.synchronize { @mutex.owned? && 5 }
    assert_raises(Failure) { @mutex.synchronize { raise Failure } }
    refute_predicate @mutex, :locked?
    assert_match(/needs a block/, assert_raises(Ringspun::UsageError) { @mutex.synchronize }.message)
    refute_predicate @mutex, :locked?
  end

  # Names of strands begin anew with every machine.
  def test_the_lock_of_a_machine_that_is_closed_is_nobodys
    mutex = Ringspun::Mutex.new
    on_thread { mutex.lock }
    on_thread do
      assert_equal [false, false], [mutex.owned?, mutex.locked?]
      assert_raises(Ringspun::UsageError) { mutex.unlock }
      assert_equal(1, mutex.synchronize { 1 })
    end
  end

  def test_the_lock_of_a_thread_that_has_ended_is_nobodys
    assert_child("parked\n1\nfalse\n", <<~RUBY)
      mutex = Ringspun::Mutex.new
      waiter = nil
      Thread.new do
        mutex.lock
        waiter = machine.spin { mutex.lock }
        machine.yield
        puts waiter.state
      end.join
      puts mutex.synchronize { 1 }
      puts waiter.machine.terminate(waiter)
    RUBY
  end

  def test_try_lock
    assert @mutex.try_lock
    refute @mutex.try_lock
    refute machine.spin { @mutex.try_lock }.await
    @mutex.unlock
  end

  def test_it_is_not_reentrant
    @mutex.synchronize do
      error = assert_raises(Ringspun::DeadlockError) { @mutex.lock }
      assert_match(/not reentrant/, error.message)
      assert_raises(Ringspun::DeadlockError) { @mutex.synchronize {} }
      assert_raises(Ringspun::DeadlockError) { @mutex.lock(timeout: 0) }
      assert_predicate @mutex, :owned?
    end
    refute_predicate @mutex, :locked?
  end

  def test_only_its_owner_may_unlock
    assert_raises(Ringspun::UsageError) { @mutex.unlock }
    strand, gate = holder
    assert_raises(Ringspun::UsageError) { @mutex.unlock }
    refute_predicate @mutex, :owned?
    assert_predicate @mutex, :locked?
    gate.push(nil)
    strand.join
  end

  def test_synchronize_whose_block_has_unlocked
    assert_equal 5, @mutex.synchronize { @mutex.unlock && 5 }
    strand = machine.spin do
      @mutex.synchronize { @mutex.unlock.then { machine.yield } }
    end
    machine.yield
    @mutex.synchronize { strand.join } # and it did not unlock ours
  end

  # --- several ---

  def test_only_one_at_a_time
    inside = 0
    most = 0
    strands = Array.new(10) do
      machine.spin do
        5.times do
          @mutex.synchronize do
            most = [most, inside += 1].max
            machine.yield
            inside -= 1
          end
        end
      end
    end
    machine.join(*strands)
    assert_equal [1, 0], [most, inside]
  end

  def test_first_come_first_served
    order = []
    @mutex.lock
    strands = Array.new(5) { |i| parked { @mutex.synchronize { order << i } } }
    assert_equal 5, @mutex.waiting
    @mutex.unlock
    machine.join(*strands)
    assert_equal [0, 1, 2, 3, 4], order
    assert_equal 0, @mutex.waiting
  end

  def test_it_is_handed_over_and_cannot_be_taken_in_between
    @mutex.lock
    strand = parked { @mutex.synchronize { :got_it } }
    @mutex.unlock
    assert_predicate @mutex, :locked?
    refute @mutex.try_lock
    refute_predicate @mutex, :owned?
    assert_equal :got_it, strand.await
  end

  def test_it_is_kept_across_waits
    strand, gate = holder
    other = machine.spin { @mutex.synchronize { :other } }
    5.times { machine.yield }
    assert_equal :parked, other.state
    gate.push(nil)
    assert_equal :other, other.await
    strand.join
  end

  def test_a_strand_that_ends_without_unlocking_has_given_it_up
    machine.spin { @mutex.lock }.join
    refute_predicate @mutex, :locked?
    assert_equal(5, @mutex.synchronize { 5 })
  end

  # Who waits must learn of it: nobody will ever unlock.
  def test_a_strand_that_ends_without_unlocking_while_others_wait
    gate = Ringspun::Queue.new
    owner = parked { @mutex.lock.then { gate.pop } }
    waiting = Array.new(2) { |i| parked { @mutex.synchronize { i } } }
    gate.push(nil)
    owner.join
    assert_equal [0, 1], machine.timeout(1) { machine.await(*waiting) }
  ensure
    waiting&.each { |strand| machine.terminate(strand).then { error_of { strand.join } } }
  end

  # --- cancellations ---

  def test_a_cancelled_waiter_does_not_get_it
    strand, gate = holder
    waiting = parked { @mutex.synchronize { flunk } }
    machine.terminate(waiting)
    assert_ends_with Ringspun::TerminatedError, waiting
    assert_equal 0, @mutex.waiting
    assert_predicate @mutex, :locked?
    gate.push(nil)
    strand.join
    refute_predicate @mutex, :locked?
  end

  def test_a_cancelled_waiter_does_not_release_what_it_never_held
    strand, gate = holder
    waiting = parked { @mutex.synchronize { flunk } }
    third = parked { @mutex.synchronize { :third } }
    machine.terminate(waiting)
    error_of { waiting.join }
    assert_equal :parked, third.state
    gate.push(nil)
    assert_equal :third, third.await
    strand.join
  end

  def test_a_cancellation_after_the_hand_over_leaves_it_with_its_new_owner
    seen = []
    @mutex.lock
    waiting = parked do
      @mutex.synchronize do
        seen << @mutex.owned?
        machine.yield
      end
    end
    third = parked { @mutex.synchronize { :third } }
    @mutex.unlock
    machine.terminate(waiting)
    assert_ends_with Ringspun::TerminatedError, waiting
    assert_equal :third, third.await
    assert_equal [true], seen
    refute_predicate @mutex, :locked?
  end

  def test_an_exception_after_the_hand_over
    @mutex.lock
    waiting = parked { @mutex.synchronize { machine.yield } }
    @mutex.unlock
    machine.schedule(waiting, Failure.new)
    assert_ends_with Failure, waiting
    refute_predicate @mutex, :locked?
  end

  def test_unlocking_while_cancelled
    strand = parked { @mutex.synchronize { machine.sleep } }
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    refute_predicate @mutex, :locked?
  end

  def test_locking_while_cancelled_needs_no_wait
    strand = parked do
      machine.sleep
    ensure
      @mutex.synchronize { @seen = true }
    end
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert @seen
  end

  # --- timeouts ---

  def test_a_timeout
    simulate do
      mutex = Ringspun::Mutex.new
      strand = machine.spin { mutex.synchronize { machine.sleep(5) } }
      machine.yield
      before = machine.now
      assert_raises(Ringspun::TimeoutError) { mutex.lock(timeout: 2) }
      assert_in_delta 2, machine.now - before, 1e-6
      assert_equal 0, mutex.waiting
      assert_same mutex, mutex.lock(timeout: 10)
      assert_in_delta 5, machine.now - before, 1e-3
      mutex.unlock
      strand.join
    end
  end

  def test_a_timeout_of_nothing_and_of_what_is_none
    @mutex.lock(timeout: 0)
    @mutex.unlock
    strand, gate = holder
    assert_raises(Ringspun::TimeoutError) { @mutex.lock(timeout: 0) }
    ["1", Float::NAN].each { |value| assert_raises(Ringspun::UsageError) { @mutex.lock(timeout: value) } }
    assert_raises(ArgumentError) { @mutex.lock(timeuot: 1) }
    assert_raises(ArgumentError) { @mutex.lock(1) }
    gate.push(nil)
    strand.join
  end

  # --- whose it is ---

  def test_it_belongs_to_the_machine_that_used_it_first
    @mutex.synchronize {}
    on_thread do
      %i[lock unlock try_lock locked? owned? waiting].each do |name|
        assert_instance_of Ringspun::WrongThreadError, error_of { @mutex.public_send(name) }, name
      end
      assert_instance_of Ringspun::WrongThreadError, error_of { @mutex.synchronize {} }
    end
  end

  def test_making_one_does_not_bind_it
    on_thread { @mutex.synchronize {} }
    assert_equal(5, @mutex.synchronize { 5 }) # that machine is closed
  end

  def test_it_can_be_used_without_a_run
    assert_equal 5, @mutex.synchronize { machine.spin { 5 }.await }
  end

  def test_subclasses_and_copies
    assert_equal 5, Class.new(Ringspun::Mutex).new.synchronize { 5 }
    copies = [@mutex, Ringspun::Semaphore.new(1), Ringspun::Condition.new, Ringspun::Barrier.new(1), Ringspun::Queue.new]
    copies.each { |original| assert_raises(Ringspun::UsageError) { original.dup } }
  end
end
