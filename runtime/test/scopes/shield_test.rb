# frozen_string_literal: true

# gc stress: short

require "test_helper"
require "support/strands"

# Shielded scopes: what reaches them, and when what was held back is told.
class ShieldTest < Minitest::Test
  include Strands

  def scope(...) = machine.scope(...)

  def test_a_shield_keeps_cancellations_out
    seen = []
    value = scope do |inside|
      inside.cancel
      seen << Ringspun.shield { machine.sleep(0.000_1).then { :shielded } }
      machine.sleep
      seen << :never
    end
    assert_equal [nil, [:shielded]], [value, seen]
  end

  def test_a_cancellation_during_a_shield_waits_for_its_end
    gate = Ringspun::Queue.new
    seen = []
    strand = parked do
      Ringspun.shield { seen << gate.pop }
      seen << :after
      machine.yield
      seen << :never
    end
    machine.terminate(strand)
    machine.yield
    assert_equal :parked, strand.state
    gate.push(:item)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal %i[item after], seen
  end

  def test_a_shield_can_be_cancelled_itself
    value = machine.scope(shield: true) do |shield|
      shield.cancel
      machine.sleep
    end
    assert_nil value
  end

  def test_strands_of_a_shield_are_shielded
    gate = Ringspun::Queue.new
    seen = []
    strand = parked do
      Ringspun.shield { |shield| shield.spin { seen << gate.pop } }
      machine.yield
    end
    machine.terminate(strand)
    machine.yield
    gate.push(:item)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [:item], seen
  end

  def test_a_scope_inside_a_shield
    gate = Ringspun::Queue.new
    strand = parked { Ringspun.shield { scope { scope { gate.pop } } } }
    machine.terminate(strand)
    machine.yield
    assert_equal :parked, strand.state
    gate.push(:item)
    assert_equal :item, strand.await # it has never waited again
  end

  def test_a_shield_inside_a_cancelled_shield
    seen = []
    machine.scope(shield: true) do |outer|
      outer.cancel
      Ringspun.shield { machine.sleep(0.000_1).then { seen << :inner } }
      machine.sleep
      seen << :never
    end
    assert_equal [:inner], seen
  end

  def test_an_error_in_a_shield
    assert_raises(Failure) { Ringspun.shield { raise Failure } }
    machine.yield
  end

  def test_a_shield_in_an_ensure_block
    seen = []
    scope do |inside|
      until_parked(inside.spin do
        machine.sleep
      ensure
        seen << error_of { machine.yield }.class
        Ringspun.shield(deadline: 1) { 3.times { machine.yield } }
        seen << :goodbye
      end)
      inside.cancel
    end
    assert_equal [Ringspun::Cancelled, :goodbye], seen
  end
end
