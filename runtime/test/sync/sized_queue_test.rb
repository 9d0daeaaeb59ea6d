# frozen_string_literal: true

require "test_helper"
require "support/queue_case"

# Ringspun::SizedQueue. What it has in common with Queue is in queue_test.rb.
class SizedQueueTest < QueueCase
  def sized(max, *items)
    items.each_with_object(Ringspun::SizedQueue.new(max)) { |item, queue| queue.push(item) }
  end

  # --- its size ---

  def test_max
    assert_equal 3, sized(3).max
    [0, -1, 1.9, nil, "1"].each { |max| assert_raises(Ringspun::UsageError) { sized(max) } }
    assert_raises(ArgumentError) { Ringspun::SizedQueue.new }
    one = sized(3)
    assert_raises(Ringspun::UsageError) { one.max = 0 }
    assert_equal 3, one.max
  end

  def test_it_takes_no_more_than_fits
    on_both do
      one = sized(2, 1, 2)
      strand = parked { one.push(3) }
      assert_equal [2, 1], [one.size, one.num_waiting]
      assert_equal 1, one.pop
      assert_equal [2, 0], [one.size, one.num_waiting]
      assert_same one, strand.await
      assert_equal [2, 3], [one.pop, one.pop]
    end
  end

  def test_pushers_are_served_in_the_order_in_which_they_came
    on_both do
      one = sized(1, 0)
      served = []
      strands = Array.new(4) { |i| parked { one.push(i + 1).then { served << i } } }
      assert_equal [0, 1, 2, 3, 4], Array.new(5) { one.pop }
      machine.join(*strands)
      assert_equal [0, 1, 2, 3], served
    end
  end

  def test_nobody_overtakes_a_waiting_pusher
    on_both do
      one = sized(1, :first)
      waiting = parked { one.push(:second) }
      assert_equal :first, one.pop
      late = parked { one.push(:third) } # the place is the other's, though that has not run yet
      assert_equal %i[second third], Array.new(2) { one.pop }
      machine.join(waiting, late)
    end
  end

  def test_an_item_goes_straight_to_who_waits_for_one
    on_both do
      one = sized(1)
      strands = Array.new(2) { parked { one.pop } }
      one.push(1).push(2).push(3)
      assert_equal [1, 2], machine.await(*strands)
      assert_equal [3, 0], [one.pop, one.size]
    end
  end

  def test_a_producer_is_never_further_ahead_than_that
    on_both do
      one = sized(2)
      made = taken = ahead = 0
      producer = machine.spin do
        20.times { one.push(made += 1).then { ahead = [ahead, made - taken].max } }
        one.close
      end
      items = []
      while (item = one.pop)
        items << item
        taken += 1
        machine.yield
      end
      producer.join
      assert_equal [*1..20], items
      assert_includes 2..4, ahead
    end
  end

  def test_non_block
    one = sized(1)
    assert_same one, one.push(1, true)
    error = assert_raises(Ringspun::UsageError) { one.push(2, true) }
    assert_match(/full/, error.message)
    assert_raises(ArgumentError) { one.push(2, true, timeout: 1) }
    assert_equal [1, 0], [one.pop(true), one.size]
    assert_raises(Ringspun::ClosedError) { one.close.push(2, true) }
  end

  # --- clear and max= ---

  def test_clear_gives_the_places_to_who_waits
    on_both do
      one = sized(2, 1, 2)
      strands = [3, 4, 5].map { |item| parked { one.push(item) } }
      one.clear
      assert_equal [2, 1], [one.size, one.num_waiting]
      assert_equal [3, 4, 5], Array.new(3) { one.pop }
      machine.join(*strands)
    end
  end

  def test_more_room_is_given_to_who_waits
    on_both do
      one = sized(1, 1)
      strands = [2, 3, 4].map { |item| parked { one.push(item) } }
      one.max = 3
      assert_equal [3, 3, 1], [one.max, one.size, one.num_waiting]
      machine.join(*strands[0, 2])
      assert_equal [1, 2, 3, 4], Array.new(4) { one.pop }
      strands.last.join
    end
  end

  def test_less_room_keeps_what_is_inside
    on_both do
      one = sized(3, 1, 2, 3)
      one.max = 1
      strand = parked { one.push(4) }
      assert_equal [1, 2], [one.pop, one.pop]
      assert_equal [1, 1], [one.size, one.num_waiting]
      assert_equal [3, 4], [one.pop, one.pop]
      strand.join
    end
  end

  # --- close ---

  def test_close_refuses_pushers_that_wait
    on_both do
      one = sized(1, :inside)
      strands = Array.new(2) { parked { one.push(:never) } }
      one.close
      strands.each { |strand| assert_ends_with Ringspun::ClosedError, strand }
      assert_equal [:inside, nil], [one.pop, one.pop]
    end
  end

  def test_close_gives_nil_to_poppers_that_wait
    on_both do
      one = sized(1)
      strands = Array.new(2) { parked { [one.pop] } }
      one.close
      assert_equal [[nil]] * 2, machine.await(*strands)
      assert_raises(Ringspun::ClosedError) { one.push(1) }
    end
  end

  def test_a_pusher_that_was_served_before_the_close_has_pushed
    on_both do
      one = sized(1, 1)
      strand = parked { one.push(2) }
      one.pop
      one.close
      assert_same one, strand.await
      assert_equal [2, nil], [one.pop, one.pop]
    end
  end

  # --- cancellation ---

  def test_a_cancelled_pushers_item_is_not_inserted
    on_both do
      one = sized(1, 1)
      first, second = [2, 3].map { |item| parked { one.push(item) } }
      machine.terminate(first)
      assert_equal [1, 3, 0], [one.pop, one.pop, one.size]
      second.join
      assert_ends_with Ringspun::TerminatedError, first
    end
  end

  def test_a_cancellation_after_its_item_was_taken
    on_both do
      one = sized(1, 1)
      seen = []
      strand = parked do
        one.push(2)
        seen << :pushed
        machine.yield
        seen << :never
      end
      assert_equal 1, one.pop
      cancel(strand)
      assert_equal [2, [:pushed]], [one.pop, seen]
    end
  end

  def test_a_cancelled_popper_loses_no_item
    on_both do
      one = sized(1)
      first, second = Array.new(2) { parked { one.pop } }
      machine.terminate(first)
      one.push(:item)
      assert_equal :item, second.await
      assert_ends_with Ringspun::TerminatedError, first
    end
  end

  # --- timeouts ---

  def test_a_push_that_finds_no_place_in_time_answers_nil
    simulate do
      one = sized(1, 1)
      assert_equal(1.5, elapsed_of { assert_nil one.push(2, timeout: 1.5) })
      assert_equal(0, elapsed_of { assert_nil one.push(3, timeout: 0) })
      assert_equal [1, 0], [one.num_waiting + one.size, machine.metrics[:timers]]
      assert_equal [1, true], [one.pop, one.empty?]
      assert_same one, one.push(4, timeout: 0)
    end
  end

  def test_a_place_before_the_timeout
    simulate do
      one = sized(1, 1)
      strand = machine.spin { elapsed_of { assert_same one, one.push(2, timeout: 5) } }
      machine.sleep(1)
      one.pop
      assert_equal 1, strand.await
      assert_equal 2, one.pop
    end
  end

  def test_a_pop_times_out
    simulate do
      assert_equal(2, elapsed_of { assert_nil sized(1).pop(timeout: 2) })
    end
  end

  def test_each_makes_room
    one = sized(1, 1)
    pusher = parked { one.push(2) && one.push(3) && one.close }
    got = []
    one.each { |item| got << item }
    assert_equal [1, 2, 3], got
    pusher.join
  end

  def test_what_is_no_length_of_time
    one = sized(1, 1)
    [Float::NAN, "1"].each { |value| assert_raises(Ringspun::UsageError) { one.push(2, timeout: value) } }
    assert_equal [1, 0], [one.size, one.num_waiting]
    assert_raises(ArgumentError) { one.push(2, wait: 1) }
    assert_raises(ArgumentError) { one.push }
  end

  # --- the rest ---

  def test_it_belongs_to_the_machine_that_used_it_first
    one = sized(2, 1)
    errors = on_thread do
      [-> { one.push(2) }, -> { one.pop }, -> { one.max = 5 }].map { |use| error_of(&use).class }
    end
    assert_equal [Ringspun::WrongThreadError] * 3, errors
    assert_equal [1, 2], [one.size, one.max]
  end

  def test_copies_are_refused
    assert_match(/Ringspun::SizedQueue cannot be copied/, assert_raises(Ringspun::UsageError) { sized(1).dup }.message)
  end

  PUSHES = [*OPERATIONS.first(2), ->(q) { q.push(3, timeout: 0) }, ->(q) { q.push(4, true) }].freeze
  OTHERS = [
    *OPERATIONS.drop(2), ->(q) { q.push(4, true, timeout: 1) }, ->(q) { q.max },
    ->(q) { q.max = 2 }, ->(q) { q.max = 3 }
  ].freeze

  # Left out are pushes that would wait for ever, and where the queue is full and closed, as well: there the stock one
  # says that it is full when it is not to wait, and ours that it is closed, as both do to a push that may wait.
  def test_any_order_of_operations_is_answered_as_by_the_stock_queue
    ROUNDS.times do |seed|
      random = Random.new(seed)
      ours, stock = sized(2), Thread::SizedQueue.new(2)
      40.times do |step|
        pushes = stock.size < stock.max ? PUSHES : PUSHES.last(stock.closed? ? 0 : 2)
        operation = random.rand(40).zero? ? :close.to_proc : [*pushes, *OTHERS].sample(random: random)
        assert_same_as_stock(ours, stock, "seed #{seed}, step #{step}", &operation)
      end
    end
  end

  # Pushers and poppers come, are cancelled and time out: what a push has answered comes out once, and nothing else does.
  def test_no_order_of_events_loses_or_invents_an_item
    Ringspun::Simulation.explore(ROUNDS) do
      random = Random.new(machine.__send__(:sim_random))
      one = sized(2)
      pushed, got = [], []
      strands = Array.new(40) do |i|
        machine.sleep(random.rand / 10)
        seconds = random.rand
        if i.even? then machine.spin { pushed << i if one.push(i, timeout: seconds) }
        else machine.spin { (item = one.pop(timeout: seconds)) && got << item }
        end
      end
      strands.sample(10, random: random).each { |strand| machine.terminate(strand) }
      strands.each { |strand| error_of { strand.join } }
      got << one.pop until one.empty?
      assert_equal [pushed.sort, 0], [got.sort, one.num_waiting]
    end
  end
end
