# frozen_string_literal: true

module StorageSuite
  # Leases, what happens without one, and what is told of nodes.
  module Nodes
    # One whose lease is so long that a test which is held up is no outage, in which the leases of others would stand still.
    WITNESS = "host:3:cc"

    # Its lease has run out, for by the storage's clock a lock that was taken later has, and a lease was extended after that: what
    # comes from now on, however late, is no outage that would give it back what was left of its lease.
    def die(node)
      storage.extend([WITNESS], 60)
      storage.extend([node], 0.001)
      token = "died #{@died = @died.to_i + 1}"
      storage.lock(token, node, 0.002)
      yield_until("its lease has run out") { storage.lock(token, "its heir", 0.001).nil? }
      storage.extend([WITNESS], 60)
      storage.leave(WITNESS)
    end

    def quarantine = list(Storage::QUARANTINE)

    def test_leases
      assert_equal [true, true], storage.extend([NODE, OTHER], 60)
      assert_equal [true], storage.extend([NODE], 60)
      assert_empty storage.recover(100)
    end

    def test_a_lease_that_ran_out
      die(NODE)
      assert_equal [true, false], storage.extend([OTHER, NODE], 60)
      assert_equal [true, true], storage.extend([OTHER, NODE], 60)
    end

    def test_what_a_living_node_has_is_its_own
      storage.extend([NODE], 60)
      push("a")
      fetched = fetch
      assert_empty storage.recover(100)
      assert_equal [true], storage.ack(NODE, [done(fetched.first)])
    end

    def test_what_a_dead_node_had_is_recovered
      push("a", "b")
      push("c", queue: "x::y")
      storage.extend([OTHER], 60)
      die(NODE)
      fetched = fetch(queues: ["default", "x::y"])
      assert_equal [[NODE, "default", entry("a"), :quarantine], [NODE, "default", entry("b"), :quarantine],
                    [NODE, "x::y", entry("c", queue: "x::y"), :quarantine]], storage.recover(100).map(&:to_a).sort
      assert_equal [%w[a b c], []], [jids(quarantine).sort, storage.in_flight(NODE)]
      assert_equal [false] * 3, storage.ack(NODE, fetched.map { |one| done(one) })
    end

    def test_recovers_so_many_at_a_time
      push(*("a".."e"))
      die(NODE)
      fetch
      assert_equal %w[a b], jids(storage.recover(2))
      assert_equal [%w[c d], %w[e], []], Array.new(3) { jids(storage.recover(2)) }
      assert_equal %w[a b c d e], jids(quarantine)
    end

    def test_what_is_no_job_goes_back_to_its_queue
      storage.push([Storage::Push.new(queue: "default", entry: "{nonsense")])
      push("a")
      die(NODE)
      fetch
      assert_equal %i[queue quarantine], storage.recover(100).map(&:to)
      assert_equal [["{nonsense"], %w[a]], [entries(list("default")), jids(quarantine)]
    end

    # What runs isolated and fails goes back to where it came from.
    def test_a_job_without_a_queue_is_told_its_queue_in_the_quarantine
      texts = [' {"class":"Work","args":[[],{}],"jid":"a"}', '{"class":"Work","args":[],"jid":"b","queue":null}']
      storage.push(texts.map { |text| Storage::Push.new(queue: "x::y", entry: text, jid: "a") })
      die(NODE)
      fetch(queues: ["x::y"])
      assert_equal texts, storage.recover(100).map(&:entry)
      told = texts.first.lstrip.sub("{", '{"queue":"x::y",'), '{"queue":"x::y","class":"Work","args":[],"jid":"b"}'
      assert_equal told, entries(quarantine).map(&:lstrip)
    end

    def in_quarantine(*jids)
      storage.push(jids.map { |jid| Storage::Push.new(queue: Storage::QUARANTINE, entry: entry(jid), jid: jid) })
      fetch(queues: [Storage::QUARANTINE])
    end

    # How often it was tried, was isolated and has died.
    def begin_run(fetched, run, node: NODE, **) = begin_runs([fetched], run, node: node, **).first

    def begin_runs(fetched, run, node: NODE, **)
      storage.begin_quarantined(node, fetched.map { |one| Storage::Begun.new(one, run) }, **).map { |trials| trials&.to_a }
    end

    def died(fetched) = failed(fetched, to: :queue).tap { |failure| failure.died = true }

    # Who runs it next knows how often it has begun.
    def test_runs_that_did_not_end_are_counted
      suspect, = in_quarantine("suspect", "neighbour")
      (1..4).each do |run|
        storage.extend([NODE], 60)
        assert_equal [run, run - 1, 0], begin_run(suspect, run)
        assert_equal [run, run, 0], begin_run(suspect, run, isolated: true)
        die(NODE)
        assert_equal [%w[suspect quarantine], %w[neighbour quarantine]],
                     storage.recover(100).map { |one| [*jids([one]), one.to.name] }.sort.reverse
        assert_equal 2, fetch(queues: [Storage::QUARANTINE]).size
      end
    end

    def test_many_begin_at_once
      storage.extend([NODE], 60)
      fetched = in_quarantine("a", "b", "c")
      assert_equal [[1, 0, 0]] * 3, begin_runs(fetched, 1)
      storage.ack(NODE, [done(fetched[1])])
      assert_equal [[2, 0, 0], nil, [2, 0, 0]], begin_runs(fetched, 2)
      assert_empty begin_runs([], 3)
    end

    # As it is when the answer to the first was lost.
    def test_a_run_that_is_told_again_counts_once
      storage.extend([NODE], 60)
      fetched = in_quarantine("a").first
      assert_equal [1, 1, 2, 2], ([7, 7, 8, 8].map { |run| begin_run(fetched, run).first })
      assert_equal [[2, 1, 0]] * 2, Array.new(2) { begin_run(fetched, 8, isolated: true) }
      die(NODE)
      assert_equal [:quarantine], storage.recover(100).map(&:to)
      storage.extend(["heir"], 60)
      assert_equal [fetched], storage.fetch("heir", [Storage::QUARANTINE], 1)
      assert_equal [[3, 1, 0]] * 2, Array.new(2) { begin_run(fetched, 8, node: "heir") }
    end

    def test_only_runs_without_an_end_count
      storage.extend([NODE], 60)
      fetched = in_quarantine("a").first
      2.times do
        assert_equal [1, 0, 0], begin_run(fetched, 1)
        storage.fail(NODE, [failed(fetched, to: :queue)])
        assert_equal [fetched], fetch(queues: [Storage::QUARANTINE])
      end
      begin_run(fetched, 1)
      storage.leave(NODE)
      assert_equal [fetched], fetch(queues: [Storage::QUARANTINE])
      assert_equal [1, 0, 0], begin_run(fetched, 1)
      storage.ack(NODE, [done(fetched)])
      assert_nil begin_run(fetched, 1)
    end

    def test_deaths_are_counted
      storage.extend([NODE], 60)
      fetched = in_quarantine("a").first
      [1, 2, 3].each do |run|
        assert_equal [run, run - 1, run - 1], begin_run(fetched, run)
        assert_equal [run, run, run - 1], begin_run(fetched, run, isolated: true)
        assert_equal [true], storage.fail(NODE, [died(fetched)])
        assert_equal [false], storage.fail(NODE, [died(fetched)])
        assert_equal [fetched], fetch(queues: [Storage::QUARANTINE])
      end
    end

    # Whoever gives it back unread does not know its jid.
    def test_one_that_goes_back_without_a_jid_is_as_it_was
      storage.extend([NODE], 60)
      fetched = in_quarantine("a").first
      begin_run(fetched, 1)
      storage.fail(NODE, [failed(fetched, to: :queue).tap { |failure| failure.jid = nil }])
      assert_equal [fetched], fetch(queues: [Storage::QUARANTINE])
      assert_equal [2, 0, 0], begin_run(fetched, 2)
    end

    # Whoever cannot read it does not know its jid.
    def test_what_goes_elsewhere_without_a_jid_has_no_runs
      storage.extend([NODE], 60)
      %i[retry dead schedule].each do |to|
        fetched = in_quarantine("a").first
        assert_equal [1, 0, 0], begin_run(fetched, 1)
        storage.fail(NODE, [Storage::Failure.new(queue: fetched.queue, token: fetched.token, to: to, delay: 5)])
      end
    end

    def test_a_node_is_forgotten_after_some_time_without_jobs
      push("a")
      die(NODE)
      fetch
      storage.recover(100)
      assert_equal [[], 1], [storage.recover(100), storage.stats[:nodes]]
      assert_equal [[], 1], [storage.recover(100, forget: 100), storage.stats[:nodes]]
      # Something that was on its way came late.
      push("b")
      fetch
      assert_equal %w[b], jids(storage.recover(100, forget: 0))
      assert_equal [[], 0], [storage.recover(100, forget: 0), storage.stats[:nodes]]
    end

    def test_who_lives_again_is_not_forgotten
      die(NODE)
      storage.recover(100)
      storage.extend([NODE], 60)
      storage.recover(100, forget: 0)
      assert_equal 1, storage.stats[:nodes]
    end

    def test_who_leaves_gives_back_what_it_has
      push("a", "b", "c")
      push("d", queue: "other")
      storage.extend([NODE], 60)
      fetch(2, queues: %w[default])
      fetch(1, queues: %w[other])
      storage.leave(NODE)
      assert_equal [%w[a b c], %w[d], 0], [jids(list("default")), jids(list("other")),
                                           storage.stats[:nodes]]
      assert_equal [true], storage.extend([NODE], 60)
    end

    def test_in_flight_tells_what_a_node_has
      push("a", "b")
      push("c", queue: "other")
      assert_empty storage.in_flight(NODE)
      fetched = fetch(queues: %w[default other])
      assert_equal fetched, storage.in_flight(NODE).sort_by(&:entry)
      assert_equal %w[a b], jids(storage.in_flight(NODE).select { |one| one.queue == "default" })
      assert_empty storage.in_flight(OTHER)
    end

    def test_what_is_announced_is_told
      info = { "hostname" => "host", "pid" => 1, "concurrency" => 5, "queues" => %w[default], "started_at" => 1.5, "rss" => 77 }
      before = storage.time
      storage.announce(NODE, info, [["slot", "default", entry("a"), 1.5]])
      storage.announce(OTHER, { **info, "quiet" => true }, [])
      first, second = storage.nodes
      assert_equal({ **info, "identity" => NODE, "busy" => 1, "quiet" => false, "rtt_us" => 0 }, first.except("beat"))
      assert_equal [OTHER, 0, true], second.values_at("identity", "busy", "quiet")
      assert_operator first["beat"], :>=, before - 0.001
      storage.retract(NODE)
      assert_equal [OTHER], storage.nodes.map { |one| one["identity"] }
    end

    def test_what_runs_is_told
      storage.announce(NODE, {}, [["b", "x::y", entry("b"), 2.5], ["a", "default", entry("a"), 1.5]])
      storage.announce(OTHER, {}, [])
      work = storage.work([OTHER, "nobody", NODE])
      assert_equal [[], []], work.first(2)
      assert_equal [[NODE, "a", "default", entry("a"), 1.5], [NODE, "b", "x::y", entry("b"), 2.5]], work.last.map(&:to_a)
      storage.retract(NODE)
      assert_equal [[[]], []], [storage.work([NODE]), storage.work([])]
    end

    def test_measures_are_taken
      measure = Ringspun::Jobs::Storage::Measure
      assert_nil storage.measure([])
      assert_nil storage.measure([measure.new(29_000_000, "A", 3, 1, 40, { 0 => 1, 25 => 1 }),
                                  measure.new(29_000_000, "B|x", 1, 1, 0, {})])
    end

    def test_measures_add_up
      measure = Ringspun::Jobs::Storage::Measure
      assert_empty storage.measured
      2.times { storage.measure([measure.new(29_000_000, "B", 3, 1, 40, { 0 => 1, 25 => 1 })]) }
      storage.measure([measure.new(29_000_001, "B", 1, 0, 5, { 0 => 1 }), measure.new(29_000_001, "A|p", 1, 1, 0, {})])
      assert_equal [measure.new(nil, "A|p", 1, 1, 0, {}), measure.new(nil, "B", 7, 2, 85, { 0 => 3, 25 => 2 })], storage.measured
    end

    def test_measures_of_the_last_minutes
      measure = Ringspun::Jobs::Storage::Measure
      now = (storage.time / 60).to_i
      assert_empty storage.measured_minutes("B")
      2.times { storage.measure([measure.new(now - 1, "B", 3, 1, 40, { 0 => 1, 25 => 1 }), measure.new(now, "A", 1, 1, 0, {})]) }
      storage.measure([measure.new(now - 61, "B", 1, 0, 5, { 0 => 1 }), measure.new(now - 30, "B", 1, 0, 5, { 0 => 1 })])
      b = [measure.new(now - 30, "B", 1, 0, 5, { 0 => 1 }), measure.new(now - 1, "B", 6, 2, 80, { 0 => 2, 25 => 2 })]
      assert_equal [b, b.last(1), []],
                   [storage.measured_minutes("B"), storage.measured_minutes("B", 20), storage.measured_minutes("B", 0)]
      assert_equal [measure.new(now, "A", 2, 2, 0, {})], storage.measured_minutes("A", 1000)
    end

    # Anybody may make up names of classes.
    def test_only_so_many_classes_have_totals
      many = Array.new(Ringspun::Jobs::Storage::CLASSES_MAX + 5) do |number|
        Ringspun::Jobs::Storage::Measure.new(29_000_000, "C#{number}", 1, 0, 1, { 0 => 1 })
      end
      storage.measure(many)
      storage.measure(many.first(1))
      measured = storage.measured
      assert_equal [Ringspun::Jobs::Storage::CLASSES_MAX + 1, ["(others)", 5]], [measured.size, measured.first.to_a[1, 2]]
      assert_equal 2, measured.find { |one| one.class_name == "C0" }.processed
    end

    def test_messages_are_read_once
      storage.signal(NODE, "TSTP")
      storage.signal(NODE, "CANCEL:{}")
      storage.signal(OTHER, "TERM")
      assert_equal [%w[TSTP CANCEL:{}], [], %w[TERM]], [storage.signals(NODE), storage.signals(NODE), storage.signals(OTHER)]
    end
  end
end
