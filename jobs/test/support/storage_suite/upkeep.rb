# frozen_string_literal: true

module StorageSuite
  # Versions, and what is wrong.
  module Upkeep
    def test_there_is_nothing_to_migrate_and_nothing_wrong
      push("a", "b", "c", lock: nil)
      push("d", at: storage.time + 1000)
      storage.fail(NODE, fetch(1).map { |one| failed(one, to: :retry, delay: 100) })
      storage.migrate
      assert_equal [0, []], [storage.migrate, storage.check]
      version = storage.version
      assert_equal [version.known] * 2, [version.there, version.oldest.clamp(version.known..)] if version
      assert_equal [2, 1, 1], storage.stats.values_at(:enqueued, :scheduled, :retries)
    end
  end
end
