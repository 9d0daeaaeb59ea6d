# frozen_string_literal: true

require "test_helper"
require "support/on_simulation"
require "support/strands"

# A strand computes for so long that two times are due when the machine comes to look: that at which a wait would have got
# something, and after it the limit of that wait. On virtual time, in which nothing else can be late.
class LateTest < Minitest::Test
  include OnSimulation
  include Strands

  def faults = false

  LIMIT = 0.002

  def before_the_limit(&block) = parked { machine.sleep(LIMIT / 2).then { block.call } }
  def stall = machine.spin { machine.__send__(:sim_advance, 10 * LIMIT) }

  def test_an_item_of_a_queue
    queue = Ringspun::Queue.new
    before_the_limit { queue.push(:item) }
    stall
    assert_equal :item, queue.pop(timeout: LIMIT)
    assert_empty queue
  end

  def test_of_two_that_pop_the_first_gets_it
    queue = Ringspun::Queue.new
    before_the_limit { queue.push(:item) }
    first, second = Array.new(2) { machine.spin { queue.pop(timeout: LIMIT) } }
    until_parked(first, second)
    stall
    assert_equal [:item, nil], machine.await(first, second)
  end

  def test_a_place_in_a_queue
    queue = Ringspun::SizedQueue.new(1).push(1)
    before_the_limit { queue.pop }
    stall
    assert_same queue, queue.push(2, timeout: LIMIT)
    assert_equal [1, 2], [queue.size, queue.pop]
  end

  def test_a_place_in_a_queue_for_one_that_pops
    queue = Ringspun::SizedQueue.new(1).push(1)
    popper = nil
    before_the_limit do
      queue.pop
      popper = machine.spin { queue.pop }
    end
    stall
    queue.push(2, timeout: LIMIT)
    assert_equal 2, popper.await
  end

  def test_no_place_in_a_queue_that_is_closed_by_then
    queue = Ringspun::SizedQueue.new(1).push(1)
    before_the_limit { queue.pop && queue.close }
    stall
    assert_nil queue.push(2, timeout: LIMIT)
    assert_empty queue
  end

  def test_a_mutex
    mutex = Ringspun::Mutex.new
    parked { mutex.synchronize { machine.sleep(LIMIT / 2) } }
    stall
    assert_same mutex, mutex.lock(timeout: LIMIT)
    assert_predicate mutex, :owned?
    mutex.unlock
  end

  def test_a_semaphore
    semaphore = Ringspun::Semaphore.new(1).acquire
    before_the_limit { semaphore.release }
    stall
    assert_same semaphore, semaphore.acquire(timeout: LIMIT)
    assert_raises(Ringspun::TimeoutError) { semaphore.acquire(timeout: LIMIT) }
  end

  def test_what_is_scheduled
    me = machine.running
    before_the_limit { machine.schedule(me, :value) }
    stall
    assert_equal :value, machine.park(LIMIT)
    assert_raises(Ringspun::TimeoutError) { machine.park(LIMIT) }
  end

  def test_the_first_of_several
    queue = Ringspun::Queue.new
    before_the_limit { queue.push(:item) }
    stall
    assert_equal [queue, :item], Ringspun.select(queue, timeout: LIMIT)
  end

  def test_the_result_of_an_evaluation
    evaluation = Ringspun.concurrent_proc { Ringspun.wait(LIMIT / 2).then { :value } }.call_nonblock
    stall
    assert_equal :value, evaluation.await_result(within: LIMIT)
  end

  # What guide 2 says of the others: a signal leaves nothing to find, and what a deadline cuts short stays so.
  def test_where_the_limit_is_what_counts
    condition = Ringspun::Condition.new
    before_the_limit { condition.signal }
    stall
    assert_raises(Ringspun::TimeoutError) { condition.wait(timeout: LIMIT) }
    value = machine.spin { machine.sleep(LIMIT / 2) }
    machine.yield
    stall
    assert_raises(Ringspun::TimeoutError) { machine.timeout(LIMIT) { value.await } }
  end
end
