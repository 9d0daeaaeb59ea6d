# frozen_string_literal: true

require "test_helper"
require "support/on_simulation"
require "support/strands"

# Scopes and timeouts that a fiber has open while it is suspended: they govern the code inside them, and nothing else.
class SuspendedScopeTest < Minitest::Test
  include Strands

  Timeout = Ringspun::TimeoutError

  # What a fiber has open that nobody goes on with stays open until its strand ends, and here that is the root.
  def teardown
    super
    machine.close
  end

  # Yields inside the scope that the block opens around it, before and after a wait of so many seconds.
  def generator(seconds = 0)
    Enumerator.new do |items|
      yield(lambda do |_scope = nil|
        items << :first
        machine.sleep(seconds)
        items << :second
      end)
      items << :after
    end
  end

  def timed(limit, seconds = 0) = generator(seconds) { |body| machine.timeout(limit, &body) }

  # Longer than the limits that are to pass meanwhile.
  def outlast = machine.sleep(0.03)

  def test_the_timeout_of_a_suspended_generator_does_not_reach_its_caller
    items = timed(0.001)
    assert_equal :first, items.next
    outlast
    assert_equal :waited, machine.timeout(1) { outlast && :waited }
  end

  def test_it_meets_the_next_wait_inside
    items = timed(0.001)
    items.next
    outlast
    assert_raises(Timeout) { items.next }
    outlast
  end

  def test_it_is_no_matter_where_the_block_waits_no_more
    items = Enumerator.new { |list| machine.timeout(0.001) { 2.times { |i| list << i } } }
    items.next
    outlast
    assert_equal 1, items.next
  end

  def test_a_timeout_around_the_turn_governs_the_generator
    items = timed(nil, 10)
    items.next
    assert_raises(Timeout) { machine.timeout(0.001) { items.next } }
    outlast
  end

  def test_one_that_was_around_an_earlier_turn_does_not
    items = timed(10, 0.002)
    machine.timeout(0.02) { items.next }
    outlast
    assert_equal :second, items.next
    assert_equal :after, items.next
  end

  def test_a_cancelled_scope_around_an_earlier_turn_leaves_nothing
    items = timed(10, 0.001)
    assert_nil(machine.scope do |scope|
      items.next
      scope.cancel
      machine.sleep
    end)
    outlast
    assert_equal :second, items.next
  end

  def test_a_deadline_that_was_armed_before_and_stands_under_one_that_was_not
    items = Enumerator.new { |list| machine.timeout(10) { loop { list << machine.sleep(0.000_1) } } }
    items.next
    assert_raises(Timeout) { machine.timeout(0.001) { loop { items.next } } }
  end

  # --- who was begun from inside a scope is inside it ---

  def test_a_timeout_around_a_generator_in_a_generator
    inner = Enumerator.new { |list| machine.sleep(10) && list << 1 }
    outer = Enumerator.new { |list| machine.timeout(0.001) { list << inner.next } }
    assert_raises(Timeout) { outer.next }
    outlast
  end

  def test_three_deep_with_one_suspended_aside
    aside = timed(0.001)
    aside.next
    inner = Enumerator.new { |list| loop { list << machine.sleep(0.002) } }
    middle = Enumerator.new { |list| machine.timeout(GCStress::WANTED ? 10 : 1) { loop { list << inner.next } } }
    outer = Enumerator.new { |list| loop { list << middle.next } }
    2.times { outer.next }
    outlast
    assert_raises(Timeout) { loop { outer.next } }
  end

  def test_generators_that_begin_each_other_in_turns
    two = nil
    one = Enumerator.new { |list| machine.timeout(10) { (list << :one).then { machine.sleep(0) }.then { list << two.next } } }
    two = Enumerator.new { |list| machine.timeout(10) { (list << one.next).then { machine.sleep(0) }.then { list << :two } } }
    assert_equal :one, two.next
    outlast
    assert_equal :two, one.next
    machine.yield
  end

  # --- shields, errors, strands ---

  def test_a_suspended_shield_shields_nobody_else
    items = generator { |body| Ringspun.shield(&body) }
    strand = parked { items.next.then { machine.sleep } }
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
  end

  def test_a_suspended_shield_keeps_no_exception_back
    items = generator { |body| Ringspun.shield(&body) }
    strand = parked { items.next.then { machine.sleep } }
    machine.schedule(strand, Failure.new)
    assert_ends_with Failure, strand
  end

  def test_a_shield_that_is_suspended_and_entered_again
    gate = Ringspun::Queue.new
    items = Enumerator.new { |list| Ringspun.shield { (list << :in).then { list << gate.pop } } }
    got = nil
    strand = parked do
      items.next
      machine.yield
      got = items.next
      machine.sleep
    end
    machine.terminate(strand)
    machine.yield
    assert_equal :parked, strand.state
    gate << :item
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal :item, got
  end

  def test_another_strand_goes_on_with_the_generator
    items = timed(0.001, 0.005)
    first = parked { items.next.then { machine.sleep } }
    assert_equal :second, machine.spin { items.next }.await
    assert_equal :parked, first.state
    machine.terminate(first)
    assert_ends_with Ringspun::TerminatedError, first
    assert_equal :after, items.next
  end

  def test_the_strand_that_opened_it_has_ended
    items = generator { |body| machine.scope { |scope| scope.cancel || body.call } }
    machine.spin { items.next }.join
    outlast
    assert_equal %i[second after], [items.next, items.next]
  end

  def test_the_machine_closes
    on_thread do
      items = timed(0.001)
      items.next
      shielded = generator { |body| Ringspun.shield(&body) }
      shielded.next
      machine.close
      assert_equal %i[second second], [items.next, shielded.next]
    end
  end

  def test_many_generators_that_nobody_finishes
    100.times { timed(0.001).next }
    GC.start
    outlast
    machine.timeout(1) { machine.yield }
  end
end

class SimulatedSuspendedScopeTest < SuspendedScopeTest
  include OnSimulation

  def faults = false

  def teardown
    super
    Ringspun::Machine.new(backend: :sim, faults: faults)
  end

  # On virtual time, for the turn inside must end before it.
  def test_a_timeout_that_was_armed_inside
    items = Enumerator.new { |list| machine.timeout(0.02) { machine.yield.then { list << 1 } } }
    assert_equal 1, items.next
    outlast
    machine.yield
  end
end
