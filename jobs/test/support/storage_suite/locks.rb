# frozen_string_literal: true

module StorageSuite
  # Who holds a lock, and until when.
  module Locks
    def test_locks
      assert_nil storage.lock("t", "a", 60)
      assert_equal ["a", nil], [storage.lock("t", "b", 60), storage.lock("t", "a", 60)]
      assert_equal [false, true, false], [storage.unlock("t", "b"), storage.unlock("t", "a"), storage.unlock("t", "a")]
      storage.lock("t", "b", 0.001)
      yield_until("the lock has ended") { storage.lock("t", "c", 60).nil? }
      assert_equal ["c"], push("d", lock: "t", lock_seconds: 60)
    end
  end
end
