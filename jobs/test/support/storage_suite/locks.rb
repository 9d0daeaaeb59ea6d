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

    # A job that holds the lock which its entry names, as one that was enqueued with `unique_for:` does.
    def unique(jid, lock, til = "success", queue: "default", priority: nil, **)
      entry = JSON.generate({ "class" => "Work", "args" => [], "jid" => jid, "queue" => queue, "unique_token" => lock,
                              "unique_until" => til, "ringspun_priority" => priority }.compact)
      Storage::Push.new(queue: queue, entry: entry, jid: jid, lock: lock, lock_seconds: 60, priority: priority, **)
    end

    def holder(lock) = storage.lock(lock, "nobody", 60).tap { |jid| storage.unlock(lock, "nobody") unless jid }

    # What takes all jobs out of a place.
    ENDS = { remove: ->(storage, place, tokens) { storage.remove(place, tokens) },
             kill: ->(storage, place, tokens) { storage.kill(place, tokens) },
             clear: ->(storage, place, _) { storage.clear(place) } }.freeze

    def test_a_job_that_will_not_run_holds_no_lock_but_one_until_expiry
      ENDS.each do |name, ends|
        { "default" => {}, "prior" => { priority: 3 }, schedule: { at: 5 } }.each do |place, options|
          locks = %w[success start none expiry theirs].map { |til| "#{name} #{place} #{til}" }
          tils = ["success", "start", nil, "expiry", "success"]
          queue = place.is_a?(Symbol) ? "default" : place
          assert_nil storage.push(locks.zip(tils).map { |lock, til| unique(lock, lock, til, queue: queue, **options) })
          storage.unlock(locks.last, locks.last)
          storage.lock(locks.last, "other", 60)
          tokens = place.is_a?(Symbol) ? set(place) : list(place)
          ends.call(storage, place, tokens.map(&:token))
          assert_equal [nil, nil, nil, locks[3], "other"], locks.map { |lock| holder(lock) }, "#{name} #{place}"
        end
      end
    end

    def test_what_holds_no_lock_is_removed_as_well
      texts = ["no job", '{"unique_token":5}', '"unique_token"', entry("a"), entry("b").sub("{", '{"unique_token":["t"],')]
      texts.each { |text| storage.push([Storage::Push.new(queue: "default", entry: text)]) }
      assert_equal [true] * 2, storage.remove("default", list("default", 2).map(&:token))
      assert_equal 3, storage.clear("default")
    end
  end
end
