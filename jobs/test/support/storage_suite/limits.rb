# frozen_string_literal: true

module StorageSuite
  # A queue's limit, when nodes die or are frozen. A job of a dead node holds its place, and a run at a node whose lease has run
  # out may go on.
  module Limits
    ONE = { "default" => 1 }.freeze

    def all_live = storage.extend([NODE, OTHER, "third"], 60)

    def take(node = NODE, limits: ONE) = jids(fetch(node: node, limits: limits))

    # What the quarantine has, in flight at a node.
    def suspects(node = OTHER) = fetch(node: node, queues: [Storage::QUARANTINE])

    # Whether each of them begins.
    def begin_all(node, fetched, run: 1)
      storage.begin_quarantined(node, fetched.map { |one| Storage::Begun.new(one, run) }).map do |answer|
        answer.is_a?(Storage::Trials) ? :begins : answer
      end
    end

    # One with a limit of one was in flight, and its node is gone.
    def lost(*jids, **)
      all_live
      push(*jids)
      assert_equal jids.first(1), take
      die(NODE)
      storage.recover(100, **)
    end

    def test_a_place_is_held_until_the_job_of_a_dead_node_has_ended
      all_live
      push("a", "b")
      assert_equal [%w[a], []], [take, take(OTHER)]
      die(NODE)
      assert_empty take(OTHER), "its lease is over, and nobody has taken it over"
      assert_equal %w[a], jids(storage.recover(100))
      assert_empty take(OTHER), "it waits in the quarantine"
      fetched = suspects
      assert_empty take(OTHER), "it is in flight and has not begun"
      assert_equal %i[begins], begin_all(OTHER, fetched)
      assert_empty take(OTHER), "it runs"
      storage.ack(OTHER, [done(fetched.first)])
      assert_equal %w[b], take(OTHER)
    end

    def test_wherever_the_job_goes_its_place_is_free_then
      { retry: 5, schedule: 5, dead: nil, queue: nil }.each do |to, delay|
        lost("a", "b")
        fetched = suspects
        begin_all(OTHER, fetched)
        storage.fail(OTHER, [failed(fetched.first, to: to, delay: delay, new_queue: ("other" if to == :queue))])
        assert_equal %w[b], take(OTHER), to
        storage.ack(OTHER, [done(storage.in_flight(OTHER).first)])
        storage.extend([NODE], 60)
        storage.ack(NODE, [done(fetched.first).tap { |ack| ack.queue = "default" }]) # the old run has ended
      end
    end

    # What has ended its child, or was given back, runs again.
    def test_a_job_that_goes_back_to_the_quarantine_keeps_its_place
      lost("a", "b")
      [true, false].each do |died|
        fetched = suspects
        begin_all(OTHER, fetched)
        storage.fail(OTHER, [failed(fetched.first, to: :queue).tap { |failure| failure.died = died }])
        assert_empty take(OTHER), died
      end
      begin_all(OTHER, suspects)
      storage.leave(OTHER)
      assert_empty take("third")
    end

    # Perhaps nobody serves the quarantine.
    def test_a_job_that_waits_in_the_quarantine_holds_its_place_for_some_time
      lost("a", "b", hold: 0.001)
      yield_until("its time is over") { take(OTHER) == %w[b] }
      fetched = suspects("third")
      assert_equal %i[later], begin_all("third", fetched), "the place is taken"
      storage.extend([NODE], 60)
      push("c")
      storage.ack(OTHER, [done(storage.in_flight(OTHER).first)])
      assert_equal %i[begins], begin_all("third", fetched, run: 2)
      assert_empty take(OTHER)
      storage.ack("third", [done(fetched.first)])
      assert_equal %w[c], take(OTHER)
    end

    # It is the next, or a queue that always has jobs would keep it waiting for ever.
    def test_a_job_that_may_not_begin_yet_is_the_next
      lost("a", "b", "c", hold: 0.001)
      yield_until("its time is over") { take(OTHER) == %w[b] }
      storage.extend([NODE], 60)
      die("ghost")
      storage.recover(100, hold: 60) # from now on
      fetched = suspects("third")
      assert_equal %i[later], begin_all("third", fetched)
      storage.ack(OTHER, [done(storage.in_flight(OTHER).first)])
      assert_empty take(OTHER)
      assert_equal %i[begins], begin_all("third", fetched, run: 2)
    end

    # The first run may go on, and so may the second: there is no third beside them.
    def test_beside_old_runs_there_are_no_more_than_the_limit
      lost("a", "b", "c")
      begin_all(OTHER, suspects)
      die(OTHER)
      storage.recover(100)
      fetched = suspects("third")
      assert_equal %i[later], begin_all("third", fetched)
      storage.extend([NODE], 60)
      assert_equal [false], storage.ack(NODE, [Storage::Ack.new("default", "no token", "a")]) # now it has ended
      assert_equal %i[begins], begin_all("third", fetched, run: 2)
      storage.ack("third", [done(fetched.first)])
      assert_equal %w[b], take("third")
    end

    def test_old_runs_end_with_their_node
      lost("a", "b", "c")
      begin_all(OTHER, suspects)
      die(OTHER)
      storage.recover(100)
      storage.leave(NODE)
      assert_equal %i[begins], begin_all("third", suspects("third"))
    end

    def test_nobody_waits_for_an_old_run_for_ever
      lost("a", "b", hold: 0.001)
      begin_all(OTHER, suspects)
      die(OTHER)
      storage.recover(100, hold: 0.001)
      fetched = suspects("third")
      run = 0
      yield_until("the old ones count no more") { begin_all("third", fetched, run: run += 1) == %i[begins] }
    end

    def test_larger_limits
      two = { "default" => 2 }
      all_live
      push(*("a".."f"))
      assert_equal %w[a b], take(limits: two)
      die(NODE)
      assert_equal 2, storage.recover(100).size
      fetched = suspects
      assert_equal [%i[begins begins], []], [begin_all(OTHER, fetched), take(OTHER, limits: two)]
      storage.ack(OTHER, [done(fetched.first)])
      assert_equal %w[c], take(OTHER, limits: two)
      die(OTHER)
      assert_equal 2, storage.recover(100).size
      fetched = suspects("third")
      assert_equal [%i[later later], []], [begin_all("third", fetched), take("third", limits: two)]
      storage.extend([NODE], 60)
      assert_equal [false], storage.ack(NODE, [Storage::Ack.new("default", "no token", "a")])
      assert_equal %i[begins later], begin_all("third", fetched, run: 2)
    end

    # Others could take over at once what it gets.
    def test_a_node_without_a_lease_gets_nothing_where_there_is_a_limit
      push("a")
      push("b", queue: "free")
      die(NODE)
      assert_equal %w[b], jids(fetch(queues: %w[default free], limits: ONE))
      storage.extend([NODE], 60)
      assert_equal %w[a], take
    end

    def test_where_the_limit_is_taken_away_nobody_waits
      lost("a", "b", "c")
      assert_equal %w[b c], jids(fetch(node: OTHER))
      assert_equal %i[begins], begin_all(OTHER, suspects)
    end

    def test_a_job_that_is_removed_from_the_quarantine_gives_its_place_back
      [->(token) { storage.remove(Storage::QUARANTINE, [token]) }, ->(token) { storage.kill(Storage::QUARANTINE, [token]) },
       ->(_) { storage.clear(Storage::QUARANTINE) },
       ->(token) { storage.move(Storage::QUARANTINE, [Storage::Move.new(token)], "other") }].each do |way|
        lost("a", "b")
        way.call(quarantine.first.token)
        assert_equal %w[b], take(OTHER)
        storage.ack(OTHER, [done(storage.in_flight(OTHER).first)])
        storage.extend([NODE], 60)
        storage.ack(NODE, [Storage::Ack.new("default", "no token", "a")])
      end
    end

    def test_a_node_hears_how_many_were_taken_from_it
      assert_equal [0, 0], [storage.losses(NODE), storage.losses(OTHER)]
      lost("a")
      assert_equal [1, 0], [storage.losses(NODE), storage.losses(OTHER)]
      storage.recover(100, forget: 0)
      storage.recover(100, forget: 0)
      push("b", "c")
      fetch
      storage.recover(100)
      assert_equal 3, storage.losses(NODE)
    end
  end
end
