# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"
require_relative "../support/sqlite_clock"
require_relative "../support/storage_suite/outages"

# What follows for a storage in a file when somebody sets the clock of the host, and when nobody could write for a while.
class SqliteClockTest < SqliteCase
  include Strands
  include AnyBackend
  include StorageSuite::Outages

  OTHER = "host:2:bb"
  HOUR = 3600

  def setup
    super
    SqliteClock.stop
  end

  def teardown
    SqliteClock.reset
    super
  end

  # The clock is set on and back, each in a file of its own.
  def both_ways
    [HOUR, -HOUR].each do |step|
      SqliteClock.reset
      SqliteClock.stop
      yield -> { SqliteClock.step = step }, step
      @storage.close
      FileUtils.remove_entry(@folder)
      @storage = @folder = nil
    end
  end

  def pass(seconds) = SqliteClock.passed += seconds

  def fetch(node = NODE) = storage.fetch(node, ["default"], 9)

  def ack(fetched, **) = Storage::Ack.new(queue: fetched.queue, token: fetched.token, jid: jids([fetched]).first, **)

  def locked_push(jid, **) = storage.push([push_of(jid, lock: "token", lock_seconds: 60, **)])

  def test_leases_last
    both_ways do |set|
      push("a")
      storage.extend([NODE], LEASE)
      fetch
      set.call
      assert_empty storage.recover(100)
      pass(LEASE - 1)
      assert_equal [true], storage.extend([NODE], LEASE)
    end
  end

  def test_a_unique_lock_lasts_as_long_as_it_would
    both_ways do |set|
      locked_push("a")
      set.call
      pass(59)
      assert_equal ["a"], locked_push("b")
      pass(2)
      assert_nil locked_push("c")
      assert_equal %w[a c], jids(storage.list("default", 0, 9))
    end
  end

  # Its answer was lost, its job has run, and it is sent again.
  def test_a_push_that_is_sent_again_is_known
    both_ways do |set|
      locked_push("a")
      storage.extend([NODE], LEASE)
      storage.ack(NODE, [ack(fetch.first, lock: "token")])
      set.call
      assert_nil locked_push("a")
      assert_equal 0, storage.stats[:enqueued]
    end
  end

  def test_results_and_history_are_kept_as_long_as_they_would
    both_ways do |set|
      push("a")
      storage.extend([NODE], LEASE)
      storage.ack(NODE, [ack(fetch.first, result: "5", keep_seconds: 60, event: Storage::Event.new(kind: :done))])
      set.call
      pass(59)
      assert_equal [["5"], [:done]], [storage.results(["a"]), storage.history("a").map(&:kind)]
      pass(2)
      assert_equal [nil], storage.results(["a"])
      pass(Storage::HISTORY_SECONDS)
      assert_empty storage.history("a")
    end
  end

  def test_nodes_are_shown_as_long_as_they_would
    both_ways do |set|
      storage.announce(NODE, {}, [["1", "default", entry("a"), 1.0]])
      set.call
      pass(59)
      assert_equal [1, 1], [storage.nodes.size, storage.work([NODE]).first.size]
      pass(2)
      assert_equal [0, 0], [storage.nodes.size, storage.work([NODE]).first.size]
    end
  end

  # As with Redis; nobody else would ever take those of a node that is dead.
  def test_messages_for_nodes_are_kept_for_a_minute
    both_ways do |set|
      storage.signal(NODE, "a")
      storage.signal("dead", "a")
      set.call
      pass(59)
      assert_equal [%w[a], []], [storage.signals(NODE), storage.signals(NODE)]
      pass(2)
      assert_empty storage.signals("dead")
      storage.signal(NODE, "b")
      assert_equal [[NODE]], query("SELECT node FROM signals")
    end
  end

  # The time for which it waits is a time of day.
  def test_what_is_due_is_due_by_the_new_time
    both_ways do |set, step|
      push("a", at: Time.now.to_f + (HOUR / 2))
      push("b", delay: 100)
      storage.due(100, by: NODE)
      set.call
      moved, seconds, = storage.due(100, by: NODE)
      if step.positive?
        assert_equal [2, nil], [moved, seconds]
      else
        assert_equal 0, moved
        assert_in_delta HOUR + 100, seconds, 30
        pass(HOUR + (HOUR / 2) + 30)
        assert_equal 2, storage.due(100, by: NODE).first
      end
      assert_equal 2, storage.stats[:enqueued]
    end
  end

  # Somebody was to wake at a time that has passed, or is hours away now.
  def test_who_wakes_hears_of_what_is_due_earlier
    both_ways do |set|
      push("a", delay: 2)
      storage.due(100, by: OTHER)
      storage.wait_due(0)
      set.call
      Ringspun.run do
        told = parked { storage.wait_due(60) }
        push("b", delay: 1)
        assert_equal true, told.await
      end
      moved, seconds, = storage.due(100, by: NODE)
      assert_includes [0, 1], moved
      assert_operator seconds, :<=, 2 if moved.zero?
    end
  end

  # Of all who live the first to write again looks for the dead.
  def test_while_another_program_holds_the_file_leases_stand_still
    both_run
    foreign = Extralite::Database.new(path)
    foreign.execute("BEGIN IMMEDIATE")
    Ringspun.run do
      recovering = parked { storage.recover(100) }
      pass(30)
      foreign.execute("COMMIT")
      assert_empty recovering.await
    end
    assert_equal [[true, true], %w[a b]], [beat(NODE, OTHER), in_flight]
  ensure
    foreign&.close
  end
end
