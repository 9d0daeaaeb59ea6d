# frozen_string_literal: true

require "test_helper"
require "timeout"
require "support/scheduled"

# Thread::Queue and Thread::SizedQueue, between strands and between threads.
class SchedulerQueueTest < Minitest::Test
  include Scheduled

  STORM = GCStress::WANTED ? 50 : 5_000

  def test_pop_waits_for_an_item
    assert_everywhere([0, 1, 2, nil]) do
      queue = Thread::Queue.new
      Fiber.schedule { 3.times { |i| (queue << i).then { sleep(0.001) } }.then { queue.close } }
      Array.new(4) { queue.pop }
    end
  end

  def test_each_item_goes_to_one_in_the_order_in_which_they_came
    assert_everywhere([[0, :a], [1, :b], [2, :c]]) do
      queue = Thread::Queue.new
      got = []
      waiting = Array.new(3) { |i| schedule { got << [i, queue.pop] } }
      %i[a b c].each { |item| queue << item }
      join(*waiting)
      got
    end
  end

  # CRuby takes the time from the real clock when the hook has returned.
  def test_a_simulation_has_no_time_for_them
    {
      pop: -> { Thread::Queue.new.pop(timeout: 0.001) },
      pop_from_a_sized_one: -> { Thread::SizedQueue.new(1).pop(timeout: 1) },
      push: -> { Thread::SizedQueue.new(1).then { |full| (full << 1).push(2, timeout: 1) } }
    }.each do |name, wait|
      error = simulate { error_of(&wait) }.value
      assert_kind_of Ringspun::UnsupportedError, error, name
      assert_match(/use Ringspun::Queue/, error.message)
      assert_equal 0, simulate { error_of(&wait) }.elapsed
    end
    assert_equal(:item, simulate { Thread::Queue.new([:item]).pop(timeout: 1) }.value)
    assert_nil(simulate { Thread::Queue.new.pop(timeout: 0) }.value)
    assert_nil(simulate { Thread::Queue.new.pop(timeout: -1) }.value)
    result = simulate { error_of { Timeout.timeout(60) { Thread::Queue.new.pop } }.class }
    assert_equal [Timeout::Error, 60], [result.value, result.elapsed.round]
  end

  def test_pop_with_a_timeout
    assert_both([nil, :item, nil, :late]) do
      queue = Thread::Queue.new
      got = [queue.pop(timeout: 0.0001)]
      queue << :item
      got << queue.pop(timeout: 0.0001) << queue.pop(timeout: 0)
      Fiber.schedule { sleep(0.001).then { queue << :late } }
      got << queue.pop(timeout: 1000)
    end
  end

  def test_timeouts_that_are_no_time
    assert_everywhere([nil, nil, TypeError, :item]) do
      queue, full = Thread::Queue.new, Thread::SizedQueue.new(1)
      full << 1
      got = [queue.pop(timeout: -1), full.push(2, timeout: -0.5), error_of { queue.pop(timeout: "x") }.class]
      Fiber.schedule { sleep(0.001).then { queue << :item } }
      got << queue.pop(timeout: Float::INFINITY)
    end
  end

  def test_pop_without_waiting
    assert_everywhere([ThreadError, 0]) { Thread::Queue.new.then { |queue| [error_of { queue.pop(true) }.class, queue.num_waiting] } }
  end

  def test_close_ends_all_who_wait
    assert_everywhere([nil, nil, nil, ClosedQueueError]) do
      queue = Thread::Queue.new
      got = []
      waiting = Array.new(3) { schedule { got << queue.pop } }
      queue.close
      join(*waiting)
      got << error_of { queue << 1 }.class
    end
  end

  def test_num_waiting
    assert_everywhere([2, 0]) do
      queue = Thread::Queue.new
      waiting = Array.new(2) { schedule { queue.pop } }
      seen = [queue.num_waiting]
      2.times { queue << 1 }
      join(*waiting)
      seen << queue.num_waiting
    end
  end

  def test_an_item_from_another_thread
    queue = Thread::Queue.new
    thread = start_with { [].tap { |got| Fiber.schedule { got << queue.pop } } }
    Thread.pass until queue.num_waiting == 1
    until_stopped(thread)
    queue << :done
    assert_equal [:done], thread.value
  end

  def test_an_item_for_another_thread
    queue = Thread::Queue.new
    taker = until_stopped(Thread.new { queue.pop })
    with_scheduler { Fiber.schedule { sleep(0.001).then { queue << :done } } }
    assert_equal :done, taker.value
  end

  # --- SizedQueue ---

  def test_push_waits_for_a_place
    assert_everywhere([:pushed_0, :pushed_1, 0, :pushed_2, 1, 2]) do
      queue = Thread::SizedQueue.new(2)
      order = []
      pushing = schedule { 3.times { |i| (queue << i).then { order << :"pushed_#{i}" } } }
      2.times { (order << queue.pop).then { sleep(0.001) } }
      order << queue.pop
      join(pushing)
      order
    end
  end

  def test_push_with_a_timeout
    assert_both([nil, true, ThreadError]) do
      queue = Thread::SizedQueue.new(1)
      queue << 1
      got = [queue.push(2, timeout: 0.0001)]
      Fiber.schedule { sleep(0.001).then { queue.pop } }
      got << queue.push(3, timeout: 1000).equal?(queue) << error_of { queue.push(4, true) }.class
    end
  end

  def test_a_larger_queue_has_room
    assert_everywhere(3) do
      queue = Thread::SizedQueue.new(1)
      pushing = schedule { 3.times { queue << 1 } }
      queue.max = 3
      join(pushing)
      queue.size
    end
  end

  def test_close_ends_all_who_push
    assert_everywhere([ClosedQueueError, 1, nil]) do
      queue = Thread::SizedQueue.new(1)
      queue << 1
      error = nil
      pushing = schedule { error = error_of { queue << 2 } }
      queue.close
      join(pushing)
      [error.class, queue.pop, queue.pop]
    end
  end

  def test_clear_makes_room
    assert_everywhere(1) do
      queue = Thread::SizedQueue.new(1)
      queue << 1
      pushing = schedule { queue << 2 }
      queue.clear
      join(pushing)
      queue.size
    end
  end

  # --- one that gives up when its item has come ---

  # CRuby has taken it out of the list already: the item must go to it, or to the next.
  def test_a_waiter_that_is_cancelled_when_its_item_has_come
    assert_everywhere([[:first, :item], 0]) do
      queue = Thread::Queue.new
      got = []
      first = parked { got << [:first, queue.pop] }
      second = parked { got << [:second, queue.pop] }
      queue << :item
      machine.terminate(first)
      error_of { first.join }
      machine.terminate(second)
      error_of { second.join }
      [got.first, queue.size]
    end
  end

  def test_a_waiter_that_was_cancelled_before_its_item_came
    assert_everywhere([[:second, :item], 1]) do
      queue = Thread::Queue.new
      got = []
      first = parked { got << [:first, queue.pop] }
      second = parked { got << [:second, queue.pop] }
      machine.terminate(first)
      error_of { first.join }
      queue << :item
      second.join
      [got.first, got.size]
    end
  end

  # Its time is up, and in the same round the item comes: one of the two waiters has it.
  def test_a_waiter_whose_time_is_up_when_its_item_comes
    30.times do
      Ringspun.run do
        queue = Thread::Queue.new
        got = []
        waiting = [schedule { got << queue.pop(timeout: 0.002) }, schedule { got << queue.pop }]
        sleep(0.002)
        queue << :item
        sleep(0.004)
        queue << :other
        queue.close
        join(*waiting)
        assert_equal [:item], got.grep(:item), got.inspect
      end
    end
  end

  # --- many ---

  # Several threads push, the strands of several others take.
  def test_a_storm_of_items
    queue = Thread::Queue.new
    got = Array.new(2) { [] }
    takers = got.map do |items|
      start_with { 10.times { Fiber.schedule { (item = queue.pop) ? items << item : break while true } } }
    end
    pushers = Array.new(3) { |i| Thread.new { STORM.times { |n| queue << [i, n] } } }
    pushers.each(&:join)
    queue.close
    takers.each(&:value)
    assert_equal Array.new(3) { |i| Array.new(STORM) { |n| [i, n] } }.flatten(1), got.flatten(1).sort
  end

  def test_a_storm_through_a_small_queue
    queue = Thread::SizedQueue.new(3)
    taker = Thread.new { [].tap { |items| (item = queue.pop) ? items << item : break while true } }
    pushing = Array.new(2) do |i|
      start_with { 5.times { |j| Fiber.schedule { (STORM / 10).times { |n| queue << [i, j, n] } } } }
    end
    pushing.each(&:value)
    queue.close
    got = taker.value
    assert_equal STORM, got.size
    assert_equal got.uniq, got
    got.group_by { |i, j, _| [i, j] }.each_value { |items| assert_equal items.sort, items }
  end

  # Both directions at once, and with an answer to each.
  def test_a_storm_of_questions_and_answers
    questions = Thread::Queue.new
    server = Thread.new { (answer, n = questions.pop) ? answer << (n * 2) : break while true }
    answers = nil
    with_scheduler do
      answers = Array.new(20) do |i|
        [].tap do |doubled|
          Fiber.schedule do
            answer = Thread::Queue.new
            (STORM / 50).times { |n| (questions << [answer, (i * 1000) + n]).then { doubled << answer.pop } }
          end
        end
      end
    end
    questions << nil
    server.join
    assert_equal(Array.new(20) { |i| Array.new(STORM / 50) { |n| ((i * 1000) + n) * 2 } }, answers)
  end
end
