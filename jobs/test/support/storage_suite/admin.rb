# frozen_string_literal: true

module StorageSuite
  # What looks into the storage and what a person changes there.
  module Admin
    def test_statistics
      empty = { processed: 0, failed: 0, enqueued: 0, scheduled: 0, retries: 0, dead: 0, in_flight: 0, nodes: 0, twice: 0,
                queues: {}, unreadable: [] }
      assert_equal empty, storage.stats
      push("a", "b", "c", "d", "e", "f")
      push("z", queue: "x::y")
      push("later", at: storage.time + 1000)
      a, b, c, d, = fetch(5)
      storage.ack(NODE, [done(a)])
      storage.fail(NODE, [failed(b, to: :retry, delay: 100), failed(c, to: :dead), failed(d, to: :schedule, delay: 100)])
      storage.counters(processed: 10, failed: 20)
      assert_equal({ processed: 13, failed: 22, enqueued: 2, scheduled: 2, retries: 1, dead: 1, in_flight: 1, nodes: 1,
                     twice: 0, queues: { "default" => 1, "x::y" => 1 }, unreadable: [] }, storage.stats)
    end

    def test_all_queues_to_which_anybody_has_pushed
      assert_empty storage.queues
      push("a")
      push("z", queue: "x::y")
      push("later", queue: "later", at: storage.time + 1000)
      fetch
      assert_equal %w[default x::y], storage.queues.sort
    end

    def test_what_did_not_run_to_an_end_is_not_counted
      push("a", "b")
      a, b = fetch
      storage.fail(NODE, [failed(a, to: :queue), failed(b, to: :schedule, delay: 5)])
      storage.ack(NODE, [done(a)])
      assert_equal [0, 0], storage.stats.values_at(:processed, :failed)
    end

    def test_lists_a_queue
      push(*("a".."e"))
      assert_equal [%w[a b], %w[c d e], [], []],
                   [[0, 2], [2, 10], [5, 2], [0, 0]].map { |page| jids(storage.list("default", *page)) }
      assert_empty storage.list("nowhere", 0, 10)
    end

    def test_lists_a_set
      %w[c a b].each_with_index { |jid, index| push(jid, at: 100.5 + index) }
      assert_equal [[entry("c"), 100.5], [entry("a"), 101.5]], storage.scan(:schedule, 0, 2).map { |job| [job.entry, job.at] }
      assert_equal [%w[b], [], []], [[2, 5], [3, 5], [0, 0]].map { |page| jids(storage.scan(:schedule, *page)) }
      assert_raises(ArgumentError) { storage.scan(:other, 0, 1) }
    end

    def test_lists_a_queue_from_its_end
      push(*("a".."c"))
      { "f" => -1, "l" => 1 }.each do |jid, priority|
        text = JSON.generate("class" => "Work", "args" => [], "jid" => jid, "ringspun_priority" => priority)
        storage.push([Storage::Push.new(queue: "default", entry: text, jid: jid, priority: priority)])
      end
      assert_equal [%w[l c], %w[b a f], %w[f], []],
                   [[0, 2], [2, 10], [4, 1], [5, 2]].map { |page| jids(storage.list("default", *page, from_end: true)) }
      assert_equal %w[f a b c l], jids(list("default"))
      assert_empty storage.list("nowhere", 0, 10, from_end: true)
    end

    def test_lists_a_set_from_its_end
      %w[c a b].each_with_index { |jid, index| push(jid, at: 100.5 + index) }
      assert_equal [%w[b a], %w[c], []],
                   [[0, 2], [2, 5], [3, 5]].map { |page| jids(storage.scan(:schedule, *page, from_end: true)) }
      assert_equal [102.5], storage.scan(:schedule, 0, 1, from_end: true).map(&:at)
    end

    def test_removes
      push("a", "b", "a")
      push("c", at: 5)
      assert_equal [true, false], storage.remove("default", tokens(list("default"), entry("a"), entry("x")))
      assert_equal %w[a b], jids(list("default")).sort
      assert_equal [true, false], storage.remove(:schedule, tokens(set(:schedule), entry("c"), entry("c")))
      assert_equal [[], [], []], [set(:schedule), storage.remove("default", []), storage.remove(:dead, [])]
    end

    def test_forgets_all
      push(*("a".."c"))
      push("d", queue: "x::y")
      push("e", at: 5)
      assert_equal [3, 1, 0, 0], ["default", :schedule, :retry, "nowhere"].map { |place| storage.clear(place) }
      assert_equal [[], %w[d], []], [list("default"), jids(list("x::y")), set(:schedule)]
      push("f")
      assert_equal %w[f], jids(fetch)
      assert_raises(ArgumentError) { storage.clear(:other) }
    end

    def test_kills
      push("a", "b", "a")
      push("c", "d", at: 5)
      before = storage.time
      assert_equal [true, false], storage.kill("default", tokens(list("default"), entry("a"), entry("x")))
      assert_equal [true, false], storage.kill(:schedule, tokens(set(:schedule), entry("d"), entry("d")))
      assert_equal [%w[a b], %w[c], %w[a d]], [jids(list("default")).sort, jids(set(:schedule)), jids(set(:dead)).sort]
      assert_includes before - 0.001..storage.time, set(:dead).first.at
      assert_empty storage.kill("nowhere", [])
      %i[dead other].each { |place| assert_raises(ArgumentError) { storage.kill(place, []) } }
    end

    def test_retries_at_once
      push("a", "b", "c")
      storage.fail(NODE, fetch.map { |one| failed(one, to: :retry, delay: 1000) })
      storage.push([Storage::Push.new(queue: "default", entry: "no job", at: 5)])
      assert_equal [true, false, true], storage.retry_now(:retry, tokens(set(:retry), entry("b"), entry("x"), entry("a")))
      assert_equal [%w[b a], %w[c]], [jids(fetch), jids(set(:retry))]
      assert_equal [false], storage.retry_now(:schedule, tokens(set(:schedule), "no job"))
      assert_equal [["no job", 5.0]], set(:schedule).map { |job| [job.entry, job.at] }
      assert_empty storage.retry_now(:dead, [])
    end

    def test_moves
      push("a", "b", "c")
      push("d", at: 5)
      push("z", queue: "other")
      moves = tokens(list("default"), entry("b"), entry("x"), entry("b")).map { |token| Storage::Move.new(token) }
      assert_equal [true, false, false], storage.move("default", moves, "other")
      assert_equal [%w[a c], %w[z b]], [jids(list("default")), jids(list("other"))]
      token = tokens(set(:schedule), entry("d")).first
      assert_equal [true], storage.move(:schedule, [Storage::Move.new(token, entry("d", args: [1]))], "new")
      assert_equal [[entry("d", args: [1])], []], [entries(list("new")), set(:schedule)]
      assert_equal [%i[by_hand], %i[by_hand]], %w[b d].map { |jid| storage.history(jid).map(&:kind) }
      assert_equal %w[a c], jids(fetch)
      assert_empty storage.move(:dead, [], "default")
      assert_raises(ArgumentError) { storage.move(:other, moves, :dead) }
    end

    def test_what_is_moved_or_restored_goes_where_its_priority_belongs
      first = ->(jid) { JSON.generate("class" => "Work", "args" => [], "jid" => jid, "ringspun_priority" => -1) }
      push("a", "b")
      storage.restore("default", [Storage::Stored.new(nil, first["c"]), Storage::Stored.new(nil, entry("d"))])
      storage.restore(:dead, [Storage::Stored.new(nil, first["e"], 5)])
      storage.move(:dead, set(:dead).map { |job| Storage::Move.new(job.token) }, "default")
      assert_equal %w[c e a b d], jids(fetch)
    end

    def test_a_job_is_not_moved_to_where_it_is
      push("a")
      moves = list("default").map { |job| Storage::Move.new(job.token) }
      assert_equal [[false], %w[a]], [storage.move("default", moves, "default"), jids(list("default"))]
    end

    def test_restores
      push("a")
      jobs = %w[b c].map { |jid| Storage::Stored.new(nil, entry(jid), 7.5) }
      assert_equal [true, true], storage.restore("default", jobs)
      assert_equal [true, true], storage.restore(:dead, jobs)
      assert_equal [false, true], storage.restore(:dead, [jobs.first, Storage::Stored.new(nil, entry("d"), 8)])
      assert_equal [%w[a b c], [["b", 7.5], ["c", 7.5], ["d", 8.0]]],
                   [jids(list("default")), set(:dead).map { |job| [*jids([job]), job.at] }]
      storage.restore("new", jobs)
      assert_equal [2, %w[b c]], [storage.stats[:queues]["new"], jids(fetch(queues: ["new"]))]
      assert_empty storage.restore(:dead, [])
      assert_raises(ArgumentError) { storage.restore(:other, jobs) }
    end

    def test_forgets_the_dead
      push(*("a".."e"))
      fetch.each { |one| storage.fail(NODE, [failed(one, to: :dead)]) }
      storage.trim_dead(3, 1000)
      assert_equal %w[c d e], jids(set(:dead))
      storage.trim_dead(3, -1)
      assert_empty set(:dead)
    end

    def test_passes_over_paused_queues
      push("a", queue: "one")
      push("b", queue: "two")
      storage.pause("one")
      storage.pause("x::y")
      assert_equal [%w[one x::y], %w[b]], [storage.paused, jids(fetch(queues: %w[one two]))]
      storage.resume("one")
      assert_equal [%w[x::y], %w[a]], [storage.paused, jids(fetch(queues: %w[one two]))]
    end

    def test_the_queue_may_be_a_symbol
      push("a", queue: "one")
      storage.pause(:one)
      assert_equal [%w[one], %w[a]], [storage.paused, jids(storage.list(:one, 0, 9))]
      storage.resume(:one)
      assert_empty storage.paused
      [nil, "", 5].each do |queue|
        %i[pause resume].each do |verb|
          error = assert_raises(Ringspun::UsageError, queue.inspect) { storage.public_send(verb, queue) }
          assert_equal "a queue must be named by a String, got #{queue.inspect}", error.message
        end
      end
      assert_empty storage.paused
    end

    def test_counts_of_all_kinds_add_up
      storage.counters(processed: 2, failed: 1, twice: 3)
      storage.counters(twice: 1)
      assert_equal [2, 1, 4, []], storage.stats.values_at(:processed, :failed, :twice, :unreadable)
    end

    def test_limits_hold_over_all_nodes
      storage.extend([NODE, OTHER], 60)
      push(*("a".."e"))
      push("z", queue: "free")
      limits = { "default" => 3 }
      assert_equal %w[a b], jids(fetch(2, limits: limits))
      assert_equal %w[c z], jids(fetch(queues: %w[default free], node: OTHER, limits: limits))
      assert_empty fetch(node: OTHER, limits: limits)
      storage.ack(NODE, [done(storage.in_flight(NODE).first)])
      assert_equal %w[d], jids(fetch(node: OTHER, limits: limits))
      assert_equal %w[e], jids(fetch(node: OTHER))
      push("f")
      assert_empty fetch(limits: limits)
    end
  end
end
