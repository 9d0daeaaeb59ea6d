# frozen_string_literal: true

require "test_helper"
require "support/on_simulation"
require "support/strands"

# Ringspun::Channel between the strands of one machine.
class ChannelTest < Minitest::Test
  include Strands

  def channel(capacity = 2) = Ringspun::Channel.new(capacity)

  # --- what is inside ---

  def test_values_come_out_in_the_order_in_which_they_went_in
    one = channel(3)
    assert_same one, one.push(1)
    assert_same one, one << nil
    assert_same one, one.push({ a: 1 })
    assert_equal [3, 3, 3, false], [one.size, one.length, one.capacity, one.empty?]
    assert_equal [1, nil, { a: 1 }], [one.pop, one.try_pop, one.pop(timeout: 0)]
    assert_predicate one, :empty?
  end

  def test_without_waiting
    one = channel(1)
    assert_nil one.try_pop
    assert one.try_push(1)
    refute one.try_push(2)
    assert_equal [1, nil], [one.try_pop, one.try_pop]
  end

  def test_a_ring_that_goes_round
    one = channel(5)
    out = []
    100.times { |i| one.push(i) && (out << one.pop if i >= 4) }
    assert_equal Array.new(96) { |i| i }, out
    assert_equal 4, one.size
  end

  # --- waiting ---

  def test_a_pop_waits_for_a_value_and_a_push_for_a_place
    one = channel(1)
    popper = parked { one.pop }
    assert_equal ["a Channel", 1], [popper.waits_for, one.num_waiting]
    one.push(1)
    assert_equal 1, popper.await
    one.push(2)
    pusher = parked { one.push(3) }
    assert_equal [2, one, 3], [one.pop, pusher.await, one.pop]
  end

  def test_first_come_first_served
    one = channel(1)
    order = []
    poppers = Array.new(4) { |i| parked { order << [i, one.pop] } }
    4.times { |value| one.push(value) }
    machine.join(*poppers)
    assert_equal Array.new(4) { |i| [i, i] }, order
    one.push(0)
    pushers = Array.new(4) { |i| parked { one.push(i + 1) } }
    assert_equal [0, 1, 2, 3, 4], Array.new(5) { one.pop }
    machine.join(*pushers)
  end

  def test_a_value_that_is_handed_over_cannot_be_taken_in_between
    one = channel
    popper = parked { one.pop }
    one.push(:value)
    assert_nil one.try_pop
    assert_equal :value, popper.await
  end

  def test_a_time_that_passes
    one = channel(1)
    assert_nil one.pop(timeout: 0.000_1)
    one.push(1)
    assert_nil one.push(2, timeout: 0.000_1)
    assert_equal [1, nil, 0], [one.pop, one.pop(timeout: 0), one.num_waiting]
  end

  def test_a_value_at_the_instant_of_the_timeout
    20.times do |i|
      one = channel
      strand = machine.spin { one.pop(timeout: 0.000_2) }
      pusher = machine.spin { machine.sleep(0.000_2) && one.push(i) }
      machine.join(pusher, strand)
      assert_equal [i], [strand.await, one.try_pop].compact
    end
  end

  # --- cancellation ---

  def test_who_is_cancelled_takes_nothing
    one = channel(1)
    first, second = parked { one.pop }, parked { one.pop }
    machine.terminate(first)
    one.push(1)
    assert_equal [1, 0], [second.await, one.num_waiting]
    one.push(2)
    pusher = parked { one.push(3) }
    machine.terminate(pusher)
    error_of { pusher.join }
    assert_equal [2, nil], [one.pop, one.try_pop]
  end

  def test_what_was_handed_over_before_the_cancellation_is_the_strands
    one = channel
    got = nil
    strand = parked { (got = one.pop) && machine.sleep }
    one.push(:value)
    machine.terminate(strand)
    assert_kind_of Ringspun::TerminatedError, error_of { strand.join }
    assert_equal :value, got
  end

  def test_a_scope_that_is_over_refuses_the_wait
    one = channel
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.000_1) { one.pop } }
    machine.scope do |scope|
      strand = scope.spin { (machine.sleep rescue nil) || one.pop }
      machine.yield
      scope.cancel
      error_of { strand.join }
    rescue Ringspun::Cancelled
      nil
    end
    one.push(1)
    assert_equal [1, 0], [one.pop, one.num_waiting]
  end

  # --- closing ---

  def test_closing
    one = channel
    refute_predicate one, :closed?
    one.push(1)
    assert_same one, one.close
    assert_predicate one.close, :closed?
    [-> { one.push(2) }, -> { one.try_push(2) }].each { |push| assert_raises(Ringspun::ClosedError, &push) }
    assert_equal [1, nil, nil], [one.pop, one.pop, one.try_pop]
  end

  def test_closing_while_others_wait
    empty, full = channel, channel(1).push(1)
    poppers, pushers = Array.new(2) { parked { [empty.pop] } }, Array.new(2) { parked { full.push(2) } }
    [empty, full].each(&:close)
    assert_equal [[nil]] * 2, poppers.map(&:await)
    pushers.each { |pusher| assert_ends_with Ringspun::ClosedError, pusher }
    assert_equal [1, nil], [full.pop, full.pop]
  end

  def test_each
    one = channel
    machine.spin { [1, nil, 3].each { |value| one.push(value) } && one.close }
    values = []
    assert_same(one, one.each { |value| values << value })
    assert_equal [1, nil, 3], values
    assert_raises(Ringspun::UsageError) { one.each }
  end

  # --- selectors ---

  def test_select
    one, two = channel, channel(1).push(:full)
    strand = parked { Ringspun.select(one, channel) }
    one.push(:value)
    assert_equal [one, :value], strand.await
    pusher = parked { Ringspun.select { |on| on.push(two, :later) { |it| it } } }
    assert_equal [:full, two, :later], [two.pop, pusher.await, two.pop]
    assert_nil Ringspun.select(one, two, timeout: 0)
    [one, two].each(&:close)
    assert_equal [one, nil], Ringspun.select(one)
    assert_raises(Ringspun::ClosedError) { Ringspun.select { |on| on.push(two, 1) } }
  end

  def test_a_select_that_waits_when_the_channel_is_closed
    one = channel
    strand = parked { Ringspun.select(one) }
    one.close
    assert_equal [one, nil], strand.await
  end

  def test_nobody_who_could_push
    assert_child "Ringspun::DeadlockError\n" * 2, <<~RUBY
      [-> { Ringspun::Channel.new(1).pop }, -> { Ringspun.select(Ringspun::Channel.new(1)) }].each do |wait|
        Ringspun.run { wait.call }
      rescue Ringspun::DeadlockError => error
        p error.class
      end
    RUBY
  end

  # --- mistakes ---

  def test_arguments
    [0, -1, 1.5, nil, 2**40].each { |capacity| assert_raises(Ringspun::UsageError) { channel(capacity) } }
    one = channel
    assert_raises(Ringspun::UsageError) { one.pop(timeout: "1") }
    assert_raises(Ringspun::UsageError) { one.push(1, timeout: "soon") }
    [-> { one.push }, -> { one.pop(1) }, -> { one.pop(wait: 1) }, -> { one.push(1, 2) }].each do |call|
      assert_raises(ArgumentError, &call)
    end
    assert_match(/shareable/, assert_raises(Ringspun::UsageError) { one.dup }.message)
    assert_raises(Ringspun::UsageError) { one.__send__(:initialize, 1) }
    assert_raises(Ringspun::UsageError) { Ringspun::Channel.allocate.push(1) }
  end

  def test_a_selector_refuses_one_that_was_not_initialized
    selector = Ringspun::Selector.new
    never = Ringspun::Channel.allocate
    assert_raises(Ringspun::UsageError) { selector.pop(never) }
    assert_raises(Ringspun::UsageError) { selector.push(never, 1) }
    assert_equal [0, nil], [selector.size, selector.after(60).wait(timeout: 0)]
    assert_raises(Ringspun::UsageError) { Ringspun.select(never) }
  ensure
    selector&.close
  end

  def test_values_survive_collections
    one = channel(1)
    popper = parked { one.pop }
    one.push("han" + "ded")
    one.push("in" + "side")
    pusher = parked { one.push("wait" + "ing") }
    GC.start
    GC.compact if GC.respond_to?(:compact)
    assert_equal %w[handed inside waiting], [popper.await, one.pop, one.pop]
    pusher.join
  end
end

class ChannelOnSimulationTest < ChannelTest
  include OnSimulation
end
