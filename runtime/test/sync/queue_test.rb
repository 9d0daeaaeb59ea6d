# frozen_string_literal: true

require "test_helper"
require "support/queue_case"

# Ringspun::Queue. What a limit adds is in sized_queue_test.rb.
class QueueTest < QueueCase
  def queue(...) = Ringspun::Queue.new(...)

  # --- what is inside ---

  def test_items_come_out_in_the_order_in_which_they_went_in
    one = queue
    assert_same one, one.push(1)
    assert_same one, one << 2
    assert_same one, one.enq(nil)
    assert_equal [3, 3, false], [one.size, one.length, one.empty?]
    assert_equal [1, 2, nil], [one.pop, one.shift, one.deq]
    assert_equal [0, true], [one.size, one.empty?]
  end

  def test_initial_items
    [[], [1, 2], 1..3, { a: 1 }, nil].each do |items|
      ours, stock = queue(items), Thread::Queue.new(items)
      assert_equal Array.new(stock.size) { stock.pop }, Array.new(ours.size) { ours.pop }
    end
    [1, Object.new].each { |items| assert_raises(Ringspun::UsageError) { queue(items) } }
    assert_raises(ArgumentError) { queue([], 1) }
  end

  def test_the_array_it_was_made_of_stays_as_it_is
    items = [1, 2]
    one = queue(items)
    one.pop
    one.push(3).push(4)
    assert_equal [1, 2], items
  end

  def test_a_hash_is_an_item
    assert_equal({ a: 1 }, queue.push({ a: 1 }).pop)
  end

  def test_clear
    one = queue([1, 2])
    assert_same one, one.clear
    assert_empty one
    assert_equal 3, one.push(3).pop
  end

  def test_a_timeout_is_looked_at_although_nobody_waits
    assert_raises(Ringspun::UsageError) { queue([1]).pop(timeout: "soon") }
    assert_raises(Ringspun::UsageError) { queue([1]).pop(timeout: "1") }
    error = assert_raises(Ringspun::UsageError) { queue.push(1, timeout: 1) }
    assert_match(/SizedQueue/, error.message)
    assert_raises(Ringspun::UsageError) { Ringspun::SizedQueue.new(1).push(1, timeout: "soon") }
  end

  def test_arguments_that_it_does_not_know
    [[:pop, [], { wait: 1 }], [:push, [1], { wait: 1 }], [:push, [], {}], [:pop, [true, 1], {}], [:close, [1], {}],
     [:clear, [1], {}]].each do |name, arguments, options|
      assert_raises(ArgumentError) { queue([1]).__send__(name, *arguments, **options) }
    end
    assert_match(/unknown keyword: :wait/, error_of { queue.push(1, wait: 1) }.message)
    one = queue
    error_of { one.push(1, wait: 1) }
    assert_empty one
  end

  def test_copies_are_refused
    one = queue([1])
    error = assert_raises(Ringspun::UsageError) { one.dup }
    assert_match(/Ringspun::Queue cannot be copied/, error.message)
    assert_raises(Ringspun::UsageError) { one.clone }
    assert_equal 1, one.pop
  end

  def test_subclasses
    assert_equal 1, Class.new(Ringspun::Queue).new([1]).pop
    assert_operator Ringspun::SizedQueue, :<, Ringspun::Queue
  end

  # --- waiting ---

  def test_a_pop_waits_for_an_item
    on_both do
      one = queue
      strand = parked { one.pop }
      assert_equal 1, one.num_waiting
      one.push(:item)
      assert_equal [0, 0], [one.num_waiting, one.size]
      assert_equal :item, strand.await
    end
  end

  def test_who_waits_longest_is_served_first
    on_both do
      one = queue
      served = []
      strands = Array.new(5) { |i| parked { served << [i, one.pop] } }
      assert_equal 5, one.num_waiting
      5.times { |item| one.push(item) }
      machine.join(*strands)
      assert_equal Array.new(5) { |i| [i, i] }, served
    end
  end

  def test_an_item_that_is_handed_over_cannot_be_taken_in_between
    on_both do
      one = queue
      strand = parked { one.pop }
      one.push(:item)
      assert_raises(Ringspun::UsageError) { one.pop(true) }
      assert_equal :item, strand.await
    end
  end

  def test_every_kind_of_item_is_handed_over
    on_both do
      [nil, false, 0, Failure, Failure.new, :symbol, [1]].each do |item|
        one = queue
        strand = parked { [one.pop] }
        one.push(item)
        assert_equal [item], strand.await
      end
    end
  end

  def test_the_root_waits_as_well
    one = queue
    strand = machine.spin { one.push(1) }
    assert_equal 1, one.pop
    strand.join
  end

  def test_items_survive_collections_while_nobody_has_them
    one = queue
    strand = parked { one.pop }
    one.push("han" + "ded")
    one.push("in" + "side")
    GC.start
    assert_equal %w[handed inside], [strand.await, one.pop]
  end

  # --- without waiting ---

  def test_non_block
    one = queue([1])
    assert_equal 1, one.pop(true)
    error = assert_raises(Ringspun::UsageError) { one.pop(true) }
    assert_match(/empty/, error.message)
    assert_raises(Ringspun::UsageError) { one.close.pop(true) }
    assert_equal 2, queue([2]).pop(false)
  end

  def test_non_block_and_a_timeout_exclude_each_other
    assert_raises(ArgumentError) { queue.pop(true, timeout: 1) }
    assert_raises(ArgumentError) { queue([1]).pop(true, timeout: 1) }
    assert_raises(ArgumentError) { queue.push(1, true) }
  end

  # --- close ---

  def test_a_closed_queue_can_be_emptied_and_not_filled
    one = queue([1, 2])
    refute_predicate one, :closed?
    assert_same one, one.close
    assert_same one, one.close
    assert_predicate one, :closed?
    [:push, :<<, :enq].each { |name| assert_raises(Ringspun::ClosedError) { one.__send__(name, 3) } }
    assert_equal [1, 2, nil, nil], Array.new(4) { one.pop }
    assert_nil one.pop(timeout: 5)
  end

  def test_close_gives_nil_to_who_waits
    on_both do
      one = queue
      strands = Array.new(3) { parked { [one.pop] } }
      one.close
      assert_equal 0, one.num_waiting
      assert_equal [[nil]] * 3, machine.await(*strands)
    end
  end

  def test_an_item_before_the_close_still_arrives
    on_both do
      one = queue
      first, second = Array.new(2) { parked { [one.pop] } }
      one.push(:item).close
      assert_equal [[:item], [nil]], machine.await(first, second)
    end
  end

  # --- cancellation ---

  def test_a_cancelled_popper_loses_no_item
    on_both do
      one = queue
      first, second = Array.new(2) { parked { one.pop } }
      machine.terminate(first)
      one.push(:item)
      assert_equal :item, second.await
      assert_ends_with Ringspun::TerminatedError, first
      assert_equal 0, one.num_waiting
    end
  end

  def test_a_cancellation_after_the_hand_over_leaves_the_item_with_its_new_owner
    on_both do
      one = queue
      got = []
      strand = parked do
        got << one.pop
        machine.yield
        got << :never
      end
      one.push(:item)
      cancel(strand)
      assert_equal [[:item], 0], [got, one.size]
    end
  end

  def test_an_exception_takes_nobody_elses_turn
    on_both do
      one = queue
      strands = Array.new(3) { |i| parked { [i, one.pop] } }
      machine.schedule(strands[1], Failure.new)
      one.push(:a).push(:b)
      assert_equal [[0, :a], [2, :b]], machine.await(strands[0], strands[2])
      assert_ends_with Failure, strands[1]
    end
  end

  def test_a_pop_that_need_not_wait_is_not_refused_while_cancelled
    one = queue([1])
    seen = []
    strand = parked do
      machine.sleep
    ensure
      seen << one.pop << error_of { one.pop }.class
    end
    cancel(strand)
    assert_equal [1, Ringspun::Cancelled], seen
  end

  # --- timeouts ---

  def test_a_timeout_answers_nil
    simulate do
      one = queue
      assert_equal(2.5, elapsed_of { assert_nil one.pop(timeout: 2.5) })
      assert_equal(0, elapsed_of { assert_nil one.pop(timeout: 0) })
      assert_equal [0, 0], [one.num_waiting, machine.metrics[:timers]]
    end
  end

  def test_an_item_before_the_timeout
    simulate do
      one = queue
      strand = machine.spin { elapsed_of { assert_equal :item, one.pop(timeout: 5) } }
      machine.sleep(1)
      one.push(:item)
      assert_equal 1, strand.await
      assert_equal 0, machine.metrics[:timers]
    end
  end

  def test_who_has_timed_out_takes_no_item
    simulate do
      one = queue
      early = machine.spin { [one.pop(timeout: 1)] }
      late = machine.spin { one.pop(timeout: 10) }
      machine.sleep(2)
      one.push(:item)
      assert_equal [[nil], :item], machine.await(early, late)
    end
  end

  # Whichever comes first at that moment, the item is either answered or still there.
  def test_an_item_at_the_very_moment_of_the_timeout_is_not_lost
    ROUNDS.times do |seed|
      Ringspun::Simulation.run(seed: seed) do
        one = queue
        strand = machine.spin { one.pop(timeout: 1) }
        pusher = machine.spin { machine.sleep(1).then { one.push(:item) } }
        machine.join(pusher)
        assert_equal [:item], [strand.await, *(one.pop(true) unless one.empty?)].compact
      end
    end
  end

  def test_what_is_no_length_of_time
    [Float::NAN, "1", :soon].each { |value| assert_raises(Ringspun::UsageError) { queue.pop(timeout: value) } }
    assert_equal 1, queue([1]).pop(timeout: nil)
  end

  # --- each ---

  def test_each_until_it_is_closed_and_empty
    one = queue([1, nil])
    got = []
    strand = parked { one.each { |item| got << item } }
    one.push(3)
    one.push(false)
    one.close
    assert_same one, strand.await
    assert_equal [1, nil, 3, false], got
    assert_same one, one.each { flunk }
  end

  def test_each_is_broken_off
    one = queue([1, 2, 3])
    assert_equal 2, one.each { |item| break item if item == 2 }
    assert_equal 1, one.size
    assert_raises(Ringspun::UsageError) { one.each }
    strand = parked { queue.each { flunk } }
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
  end

  # --- between machines ---

  def test_it_belongs_to_the_machine_that_used_it_first
    one = queue
    one.push(1)
    errors = on_thread do
      [-> { one.push(2) }, -> { one.pop }, -> { one.close }, -> { one.clear }].map { |use| error_of(&use).class }
    end
    assert_equal [Ringspun::WrongThreadError] * 4, errors
    assert_equal [1, false], [one.pop, one.closed?]
  end

  def test_making_one_does_not_bind_it
    one = queue([1])
    assert_equal(1, on_thread { one.pop })
  end

  def test_after_the_end_of_its_machine_another_may_use_it
    one = queue
    on_thread { one.push(1) }
    assert_equal 1, one.pop
  end

  # --- as the stock one does ---

  def test_any_order_of_operations_is_answered_as_by_the_stock_queue
    ROUNDS.times do |seed|
      random = Random.new(seed)
      ours, stock = queue, Thread::Queue.new
      40.times do |step|
        operation = random.rand(40).zero? ? :close.to_proc : OPERATIONS.sample(random: random)
        assert_same_as_stock(ours, stock, "seed #{seed}, step #{step}", &operation)
      end
    end
  end

  # Poppers come, are cancelled and time out, while items go in: none is lost, doubled or overtaken.
  def test_no_order_of_events_loses_an_item
    Ringspun::Simulation.explore(ROUNDS) do
      random = Random.new(machine.__send__(:sim_random))
      one = queue
      got = []
      poppers = Array.new(20) { machine.spin { (item = one.pop(timeout: random.rand)) && got << item } }
      30.times do |i|
        machine.terminate(poppers.sample(random: random)) if random.rand(3).zero?
        one.push(i)
        machine.sleep(random.rand / 10)
      end
      poppers.each { |strand| error_of { strand.join } }
      got << one.pop until one.empty?
      assert_equal [*0...30], got
    end
  end
end
