# frozen_string_literal: true


require "test_helper"
require "support/strands"

# What Queue and SizedQueue have in common. Where Thread::Queue has an answer, it is the same, but for the errors' classes.
class QueueCase < Minitest::Test
  include Strands

  # How many random runs of each kind.
  ROUNDS = GCStress::WANTED ? 1 : 50

  # On the machine of this thread, on a simulated one, and on one where much goes wrong.
  def on_both(&block)
    Ringspun.run(&block)
    simulate(&block)
    Ringspun::Simulation.run(seed: 1, &block)
  end

  def cancel(strand)
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
  end

  def elapsed_of
    before = machine.now
    yield
    (machine.now - before).round(6)
  end

  # What an operation answers or raises, in words that fit the stock classes and ours.
  def outcome_of(queue)
    answer = yield queue
    answer.equal?(queue) ? :self : answer
  rescue ThreadError, Ringspun::UsageError
    :would_wait
  rescue ClosedQueueError, Ringspun::ClosedError
    :closed
  rescue ArgumentError
    :wrong_arguments
  end

  def assert_same_as_stock(ours, stock, what = nil, &operation)
    assert_equal [outcome_of(stock, &operation)], [outcome_of(ours, &operation)], what
  end
end

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
    [1, Object.new].each { |items| assert_raises(TypeError) { queue(items) } }
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
    [-1, Float::NAN, "1", :soon].each { |value| assert_raises(Ringspun::UsageError) { queue.pop(timeout: value) } }
    assert_equal 1, queue([1]).pop(timeout: nil)
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

  OPERATIONS = [
    ->(q) { q.push(1) }, ->(q) { q << 2 }, ->(q) { q.pop(true) }, ->(q) { q.pop(timeout: 0) }, ->(q) { q.shift(true) },
    ->(q) { q.size }, ->(q) { q.empty? }, ->(q) { q.num_waiting }, ->(q) { q.closed? }, ->(q) { q.clear },
    ->(q) { q.pop(1, 2) }, ->(q) { q.pop(no: 1) }
  ].freeze

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

class SizedQueueTest < QueueCase
  def sized(max, *items)
    items.each_with_object(Ringspun::SizedQueue.new(max)) { |item, queue| queue.push(item) }
  end

  # --- its size ---

  def test_max
    assert_equal 3, sized(3).max
    [0, -1].each { |max| assert_raises(Ringspun::UsageError) { sized(max) } }
    [nil, "1"].each { |max| assert_raises(TypeError) { sized(max) } }
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

  def test_what_is_no_length_of_time
    one = sized(1, 1)
    [-1, Float::NAN, "1"].each { |value| assert_raises(Ringspun::UsageError) { one.push(2, timeout: value) } }
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

  PUSHES = [*QueueTest::OPERATIONS.first(2), ->(q) { q.push(3, timeout: 0) }, ->(q) { q.push(4, true) }].freeze
  OTHERS = [
    *QueueTest::OPERATIONS.drop(2), ->(q) { q.push(4, true, timeout: 1) }, ->(q) { q.max },
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
