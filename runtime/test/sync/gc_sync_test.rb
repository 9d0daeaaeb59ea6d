# frozen_string_literal: true

# gc stress: short
# pass: collections

require "test_helper"
require "support/strands"

# Locks, semaphores, conditions and barriers keep alive who waits in them; see gc_test.rb, too. Few allocations each, so
# that each can be a collection.
class GCSyncTest < Minitest::Test
  include Strands

  def setup = @seen = []

  def teardown
    GC.stress = false
    super
  end

  # Strands of which nobody but the list in which they wait knows anything. The time of some may be up by then.
  def waiting(count)
    Array.new(count) { |i| machine.spin { (@seen << yield.to_s + i.to_s).last } }
    yield_until("they wait") { machine.strands.drop(1).all? { |strand| strand.state == :parked } }
    nil
  end

  def stress
    GC.compact
    GC.stress = true
    Array.new(20) { |i| "over #{i}" }
  end

  def finish = yield_until { machine.metrics[:strands_live] == 1 }

  def test_a_mutex
    mutex = Ringspun::Mutex.new.lock
    waiting(3) { mutex.synchronize { "m" + machine.yield.to_s } }
    stress
    mutex.unlock
    finish
    assert_equal [%w[m0 m1 m2], false], [@seen, mutex.locked?]
  end

  def test_a_mutex_whose_waiters_are_cancelled_and_time_out
    mutex = Ringspun::Mutex.new.lock
    waiting(2) { mutex.lock(timeout: 0.001) rescue $!.class }
    victim = parked { mutex.lock }
    stress
    machine.terminate(victim)
    assert_ends_with Ringspun::TerminatedError, victim
    finish
    mutex.unlock
    assert_equal %w[Ringspun::TimeoutError0 Ringspun::TimeoutError1], @seen.sort
  end

  def test_a_semaphore
    semaphore = Ringspun::Semaphore.new(2).acquire.acquire
    waiting(3) { semaphore.hold { "s" + machine.yield.to_s } }
    stress
    2.times { semaphore.release }
    finish
    assert_equal [%w[s0 s1 s2], 2], [@seen.sort, semaphore.available]
  end

  def test_a_condition
    mutex, condition = Ringspun::Mutex.new, Ringspun::Condition.new
    waiting(3) { mutex.synchronize { condition.wait(mutex).then { "c" } } }
    stress
    condition.signal
    condition.broadcast
    finish
    assert_equal %w[c0 c1 c2], @seen
  end

  def test_a_barrier
    barrier = Ringspun::Barrier.new(3)
    waiting(2) { barrier.wait }
    stress
    barrier.wait
    finish
    assert_equal %w[false0 false1], @seen.sort
  end
end
