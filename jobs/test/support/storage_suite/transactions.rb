# frozen_string_literal: true

module StorageSuite
  # Verbs on a connection of the caller's. A class whose storage is a database has `callers_connection`, which makes one on which
  # `execute` takes SQL. All others say what to do instead.
  module Transactions
    def callers_connection = nil

    # @yieldparam connection in whose transaction the block is
    def in_transaction(ending = "COMMIT")
      connection = callers_connection or return refuses
      connection.execute("BEGIN IMMEDIATE")
      yield connection
      connection.execute(ending)
      true
    ensure
      connection&.close
    end

    def refuses
      push("r", queue: "refused")
      ack = done(fetch(queues: ["refused"]).first)
      [-> { storage.push([push_of("b")], connection: Object.new) }, -> { storage.ack(NODE, [ack], connection: Object.new) },
       -> { storage.cron_push("c", 5, push_of("b"), connection: Object.new) },
       -> { storage.fail(NODE, [failed_of(ack)], connection: Object.new) }].each do |verb|
        assert_match(/after_commit: true/, assert_raises(Ringspun::UsageError, &verb).message)
      end
      assert_equal [[], []], [jids(list("default")) & %w[b], set(:retry)]
      assert_includes jids(storage.in_flight(NODE)), "r"
      false
    end

    def failed_of(ack, to = :retry) = Storage::Failure.new(queue: ack.queue, token: ack.token, jid: ack.jid, to: to, delay: 9)

    def test_a_push_is_part_of_the_callers_transaction
      in_transaction do |connection|
        unique = { lock: "token", lock_seconds: 60 }
        pushes = [push_of("a", **unique), push_of("b", **unique), push_of("c", at: 7)]
        assert_equal [nil, "a", nil], storage.push(pushes, connection:)
        assert_equal [[], []], [list("default"), set(:schedule)], "nobody sees it yet"
      end or return
      assert_equal [%w[a], %w[c], ["a"]], [jids(fetch), jids(set(:schedule)), push("d", lock: "token", lock_seconds: 60)]
    end

    def test_a_push_in_a_transaction_that_is_rolled_back_leaves_nothing
      in_transaction("ROLLBACK") do |connection|
        storage.push([push_of("a", lock: "token", lock_seconds: 60), push_of("b", at: 7)], connection:)
      end or return
      assert_equal [[], [], []], [list("default"), set(:schedule), storage.queues]
      assert_nil push("a", lock: "token", lock_seconds: 60), "the lock is free, and nothing knows the jid"
      assert_equal %w[a], jids(fetch)
    end

    def test_pushes_keep_their_order_beside_those_without_a_connection
      push("a")
      in_transaction do |connection|
        %w[b c].each { |jid| storage.push([push_of(jid)], connection:) }
      end or return
      push("d")
      assert_equal %w[a b c d], jids(fetch)
    end

    def test_an_ack_is_part_of_the_callers_transaction
      push("a", lock: "token", lock_seconds: 60)
      ack = done(fetch.first, lock: "token")
      ack.pushes = [push_of("b")]
      ack.result = "5"
      ack.keep_seconds = 60
      { "ROLLBACK" => [[1, 0, [nil], []], ["a"]], "COMMIT" => [[0, 1, ["5"], %w[b]], nil] }.each do |ending, (expected, lock)|
        break unless in_transaction(ending) { |connection| assert_equal [true], storage.ack(NODE, [ack], connection:) }

        stats = storage.stats
        assert_equal expected, [stats[:in_flight], stats[:processed], storage.results(%w[a]), jids(list("default"))]
        assert_equal [lock], [push("c", queue: "third", lock: "token", lock_seconds: 60)]
      end
    end

    def test_a_failure_is_part_of_the_callers_transaction
      push("a")
      failure = failed_of(done(fetch.first))
      { "ROLLBACK" => [[], 1], "COMMIT" => [%w[a], 0] }.each do |ending, expected|
        break unless in_transaction(ending) { |connection| assert_equal [true], storage.fail(NODE, [failure], connection:) }

        assert_equal expected, [jids(set(:retry)), storage.stats[:in_flight]]
      end
    end

    def test_what_was_taken_away_is_told_in_the_transaction
      in_transaction("ROLLBACK") do |connection|
        assert_equal [false], storage.ack(NODE, [Storage::Ack.new("default", "77", "a", nil, [push_of("b")])], connection:)
      end or return
      assert_empty list("default")
    end

    def test_an_outcome_needs_a_transaction
      connection = callers_connection or return
      push("a")
      ack = done(fetch.first)
      [-> { storage.ack(NODE, [ack], connection:) }, -> { storage.fail(NODE, [failed_of(ack)], connection:) }].each do |verb|
        assert_match(/no transaction is open/, assert_raises(Ringspun::UsageError, &verb).message)
      end
      assert_equal [true], storage.ack(NODE, [ack])
    ensure
      connection&.close
    end

    # All or nothing, whatever becomes of the transaction.
    def test_a_verb_that_fails_has_done_nothing_in_the_transaction
      in_transaction do |connection|
        storage.push([push_of("a")], connection:)
        assert_raises(NoMethodError) { storage.push([push_of("b"), nil], connection:) }
        storage.push([push_of("c")], connection:)
      end or return
      push("d")
      assert_equal %w[a c d], jids(fetch)
    end

    def test_a_push_without_a_transaction_is_one_of_its_own
      connection = callers_connection or return
      assert_nil storage.push([push_of("a")], connection:)
      assert_equal %w[a], jids(fetch)
      assert_raises(NoMethodError) { storage.push([push_of("b"), nil], connection:) }
      assert_nil push("c")
      assert_equal %w[c], jids(fetch)
    ensure
      connection&.close
    end

    def test_who_waits_gets_what_a_transaction_has_committed
      Ringspun.run do
        strand = nil
        committed = in_transaction do |connection|
          strand = parked { wait("default") }
          storage.push([push_of("a")], connection:)
          assert_predicate strand, :alive?
        end
        assert_equal %w[a], jids(strand.await) if committed
      end
    end
  end
end
