# frozen_string_literal: true

require_relative "../storage_suite"

module StorageSuite
  # What follows when nobody could extend a lease for a while: the storage stood still, could not be reached or written, or the
  # host was suspended. A class that includes it has `pass`, by which whole seconds pass for the storage.
  module Outages
    LEASE = 12
    BEAT = 3

    def push(*jids, queue: "default", **options)
      storage.push(jids.map do |jid|
        entry = JSON.generate("class" => "Work", "args" => [], "jid" => jid, "queue" => queue)
        Storage::Push.new(queue:, jid:, entry:, **options)
      end)
    end

    def jids(all) = all.map { |one| JSON.parse(one.entry)["jid"] }

    def beat(*nodes) = storage.extend(nodes, LEASE)

    # Each has one in flight.
    def both_run
      push("a", "b")
      beat(NODE, OTHER)
      [NODE, OTHER].each { |node| storage.fetch(node, ["default"], 1) }
      pass(BEAT)
    end

    def in_flight = jids([NODE, OTHER].flat_map { |node| storage.in_flight(node) })

    # Of all who live the first to come looks for the dead.
    def test_after_an_outage_longer_than_the_lease_nobodys_jobs_are_taken
      both_run
      2.times do
        pass(30)
        assert_empty storage.recover(100)
        pass(BEAT)
        assert_equal [true, true], beat(NODE, OTHER)
      end
      pass((LEASE / 2) - 1)
      assert_equal [[], %w[a b]], [storage.recover(100), in_flight]
    end

    # Whoever is later has half a lease.
    def test_after_an_outage_a_node_that_beats_later_keeps_its_jobs
      both_run
      pass(30)
      assert_equal [true], beat(NODE)
      pass(BEAT)
      assert_empty storage.recover(100)
      pass(BEAT - 1)
      assert_equal [[true], []], [beat(OTHER), storage.recover(100)]
    end

    # Its lease stands still in the outage, and no longer.
    def test_a_node_that_is_frozen_is_dead_after_an_outage_as_well
      both_run
      pass(30)
      seconds = (0..).step(BEAT).find do
        beat(NODE)
        storage.recover(100).any?.tap { pass(BEAT) }
      end
      assert_includes (LEASE / 2)..LEASE, seconds
      assert_equal %w[a], in_flight
    end

    # Those who live beat all the time, however late.
    def test_a_node_that_is_frozen_while_others_live_is_dead
      both_run
      2.times do
        beat(NODE)
        assert_empty storage.recover(100)
        pass((LEASE / 2) - 1)
      end
      beat(NODE)
      assert_equal %w[b], jids(storage.recover(100))
    end

    # A dead node has nothing that would let others take it for alive.
    def test_what_was_dead_before_an_outage_is_dead
      both_run
      storage.extend([OTHER], 0.001)
      5.times do
        beat(NODE)
        pass(BEAT)
      end
      pass(30)
      assert_equal [%w[b], [true, false]], [jids(storage.recover(100)), beat(NODE, OTHER)]
    end

    # A place in a queue with a limit is held while nobody can write, and so long counts the old run.
    def test_an_outage_keeps_places
      limits = { "narrow" => 1 }
      push("a", "b", queue: "narrow")
      beat(NODE, OTHER)
      assert_equal %w[a], jids(storage.fetch(OTHER, ["narrow"], 9, limits:))
      storage.extend([OTHER], 0.001)
      pass(1)
      assert_equal %w[a], jids(storage.recover(100, hold: 36))
      pass(100)
      seconds = (0..).step(BEAT).find do
        beat(NODE)
        storage.fetch(NODE, ["narrow"], 9, limits:).any?.tap { pass(BEAT) }
      end
      assert_includes 33..39, seconds
    end
  end
end
