# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/storage_suite"
require_relative "../../../runtime/test/support/keeper"

class MemoryStorageTest < Minitest::Test
  include StorageSuite

  def new_storage(**) = Storage::Memory.new(**)

  # Whose time of day somebody sets.
  class Stepping < Storage::Memory
    attr_accessor :step

    private

    def now = super + (step || 0)
  end

  def test_a_step_of_the_clock_costs_no_lease_and_no_lock
    [3600, -3600].each do |step|
      storage = Stepping.new
      storage.push([push_of("a", lock: "token", lock_seconds: 60)])
      storage.extend([NODE], 12)
      storage.fetch(NODE, ["default"], 1)
      storage.step = step
      assert_empty storage.recover(100)
      assert_equal [true], storage.extend([NODE], 12)
      assert_equal ["a"], storage.push([push_of("b", lock: "token", lock_seconds: 60)])
    end
  end

  # A lock that another thread has is no wait at which a cancelled strand is refused: what it was told would be lost with it.
  def test_a_cancelled_strand_that_leaves_while_a_thread_has_the_lock
    kept = storage
    storage.push([push_of("a")])
    storage.define_singleton_method(:take_from) do |*arguments|
      super(*arguments).tap { |all| all.define_singleton_method(:any?) { Keeper.hold(kept).then { super() } } }
    end
    fetched = pushed = nil
    Ringspun.run do |machine|
      machine.scope do |scope|
        scope.cancel
        fetched = storage.wait_any(NODE, ["default"], 600)
        Keeper.hold(kept)
        pushed = storage.push([push_of("b")]).inspect
      end
    end
    assert_equal [["a"], "nil"], [fetched&.map { |one| JSON.parse(one.entry)["jid"] }, pushed]
  end

  def test_waits_end_when_the_storage_is_closed
    Ringspun.run do
      waits = [parked { storage.wait_any(NODE, ["none"], 600) }, parked { storage.wait_due(600) }]
      storage.close
      assert_equal [[], false], waits.map(&:await)
    end
  end
end
