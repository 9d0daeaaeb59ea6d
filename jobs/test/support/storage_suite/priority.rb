# frozen_string_literal: true

module StorageSuite
  # In which order the jobs of a queue run.
  module Priority
    # @param jobs [Hash{String => Object}] jids and priorities
    def prior(jobs, **) = jobs.map { |jid, priority| prior_push(jid, priority, **) }.then { |pushes| storage.push(pushes) }

    def prior_push(jid, priority, queue: "default", **)
      job = { "class" => "Work", "args" => ["ringspun_priority"], "jid" => jid, "queue" => queue,
              "ringspun_priority" => priority }.compact
      Storage::Push.new(queue: queue, entry: JSON.generate(job), jid: jid, priority: priority, **)
    end

    def test_the_smaller_priority_runs_earlier_and_of_equal_ones_the_older
      assert_nil prior({ "a" => nil, "b" => 5, "c" => -1, "d" => 0, "e" => 5, "f" => -7 })
      push("g")
      prior({ "h" => -1, "i" => 1_000_000, "j" => -1_000_000 })
      assert_equal %w[j f c h a d g b e i], jids(Array.new(11) { fetch(1) }.flatten)
      prior({ "b" => 5, "a" => 0, "c" => 5, "d" => 4 })
      push("e")
      assert_equal %w[a e d b c], jids(fetch)
      assert_equal 15, storage.stats[:in_flight]
    end

    # Random pushes and fetches, jobs that go back in front of the queue, and what a list in order does with them.
    def test_the_order_is_that_of_a_list_in_order
      random = Random.new(7)
      waiting = []
      300.times do |number|
        case random.rand(4)
        when 0, 1
          some = Array.new(random.rand(1..4)) { |index| ["#{number}-#{index}", random.rand(-2..2)] }.to_h
          prior(some)
          waiting.concat(some.to_a)
        else
          fetched = fetch(max = random.rand(1..4))
          expected = waiting.sort_by.with_index { |(_, priority), index| [priority, index] }.first(max)
          assert_equal expected.map(&:first), jids(fetched), number
          waiting -= expected
          next unless fetched.any? && random.rand(2).zero?

          storage.fail(NODE, [failed(fetched.first, to: :queue)])
          waiting.unshift(expected.first)
        end
      end
    end

    def test_other_queues_have_an_order_of_their_own
      prior({ "a" => 5, "b" => 1 }, queue: "first")
      prior({ "c" => 0, "d" => -5 }, queue: "second")
      assert_equal %w[b a d c], jids(fetch(queues: %w[first second]))
    end

    def test_a_queue_has_so_many_levels
      prior({ "a" => 300, "b" => 101, "c" => 100, "d" => 99, "e" => -101, "f" => -300, "g" => -99 })
      assert_equal %w[e f g d a b c], jids(storage.list("default", 0, 9))
      assert_equal [true], storage.remove("default", [storage.find("a").token])
      assert_equal %w[e f g d b c], jids(fetch)
    end

    def test_what_is_no_priority_is_none
      prior({ "a" => "-5", "b" => 1.5, "c" => { "d" => 1 }, "d" => 10_000_000, "e" => -1 })
      assert_equal %w[e a b c d], jids(fetch)
    end

    def test_a_field_of_the_programs_is_no_priority
      foreign = JSON.generate("class" => "Work", "args" => [], "jid" => "b", "queue" => "default", "priority" => -5)
      push("a")
      storage.push([Storage::Push.new(queue: "default", entry: foreign, jid: "b", at: 5)])
      storage.due(100)
      push("c")
      assert_equal %w[a b c], jids(fetch)
      storage.push([Storage::Push.new(queue: "default", entry: foreign, jid: "b", lock: "token", lock_seconds: 60)])
      push("d")
      assert_equal %w[b d], jids(fetch)
    end

    def test_a_wait_brings_jobs_of_any_priority
      Ringspun.run do
        [{ "a" => 3 }, { "b" => 5, "c" => -5, "d" => nil }, { "e" => -1 }].each do |jobs|
          strand = parked { wait("default", "other", max: 9) }
          prior(jobs)
          came = jids(strand.await)
          came += jids(wait("default", "other", max: 9)) while came.size < jobs.size
          assert_equal jobs.keys, came.sort
        end
      end
      prior({ "a" => 3, "b" => -3, "c" => 4 })
      assert_equal [%w[b], %w[a c]], [jids(wait("default")), jids(wait("default", max: 9))]
    end

    def test_what_is_due_runs_by_priority
      prior({ "a" => 5, "b" => nil, "c" => -5, "d" => 5 }, at: 5)
      prior({ "e" => 7 }, delay: -1)
      storage.due(100)
      prior({ "f" => 6 })
      assert_equal %w[c b a d f e], jids(fetch)
    end

    def test_a_job_that_comes_back_is_in_front_of_those_with_its_priority
      prior({ "a" => 5, "b" => -5, "c" => nil, "d" => 5 })
      b, c, a, = fetch(3)
      prior({ "e" => 5, "f" => -5, "g" => nil })
      storage.fail(NODE, [a, c, b].map { |one| failed(one, to: :queue) })
      assert_equal %w[b f c g a d e], jids(fetch)
      storage.leave(NODE)
      prior({ "h" => -6 })
      assert_equal %w[h b f c g a d e], jids(fetch)
    end

    def test_a_retry_by_hand_and_one_that_follows_keep_their_priority
      prior({ "a" => 5 })
      push("b")
      b, a = fetch
      storage.fail(NODE, [failed(a, to: :dead)])
      storage.ack(NODE, [done(b).tap { |ack| ack.pushes = [prior_push("c", 6), prior_push("d", -1)] }])
      push("e")
      assert_equal [true], storage.retry_now(:dead, storage.scan(:dead, 0, 1).map(&:token))
      assert_equal %w[d e a c], jids(fetch)
    end

    def test_jobs_with_a_lock_have_a_priority_too
      prior({ "a" => nil })
      assert_nil prior({ "b" => -1 }, lock: "token", lock_seconds: 60)
      assert_equal ["b"], prior({ "c" => -2 }, lock: "token", lock_seconds: 60)
      assert_equal %w[b a], jids(fetch)
    end

    def test_jobs_of_any_priority_are_counted_listed_found_and_removed
      prior({ "a" => nil, "b" => 5, "c" => -5, "d" => 5 })
      assert_equal [4, { "default" => 4 }], storage.stats.values_at(:enqueued, :queues)
      pages = Array.new(3) { |page| jids(storage.list("default", page * 2, 2)) }
      assert_equal [%w[c a], %w[b d], []], pages
      assert_equal %w[a b d], jids(storage.list("default", 1, 9))
      assert_equal([[:queue, "default", nil]] * 4,
                   %w[a b c d].map { |jid| storage.find(jid).then { |one| [one.place, one.queue, one.node] } })
      assert_equal %w[a b c d], jids(storage.search(places: ["default"]).found).sort
      tokens = %w[b c].map { |jid| storage.find(jid).token }
      assert_equal [true, true, false], storage.remove("default", [*tokens, tokens.first])
      assert_equal [2, %w[a d]], [storage.stats[:enqueued], jids(fetch)]
    end

    def test_jobs_of_any_priority_are_killed_and_cleared
      prior({ "a" => nil, "b" => 5, "c" => -5, "d" => 5 })
      assert_equal [true, true], storage.kill("default", %w[d c].map { |jid| storage.find(jid).token })
      assert_equal [%w[a b], %w[c d]], [jids(storage.list("default", 0, 9)), jids(storage.scan(:dead, 0, 9)).sort]
      prior({ "e" => 7 })
      assert_equal [3, 0], Array.new(2) { storage.clear("default") }
      assert_equal [[], 0], [fetch, storage.stats[:enqueued]]
      prior({ "f" => nil, "g" => -1 })
      assert_equal %w[g f], jids(fetch)
    end

    # There all are suspects alike.
    def test_in_the_quarantine_all_have_the_same_priority
      { "a" => 5, "b" => -5, "c" => nil }.each do |jid, priority|
        prior({ jid => priority })
        fetch
      end
      die(NODE)
      storage.recover(100)
      order = jids(quarantine)
      one, = suspects = fetch(2, queues: [Storage::QUARANTINE])
      storage.fail(NODE, [failed(suspects.last, to: :queue), failed(one, to: :queue)])
      assert_equal order, jids(quarantine)
      fetch(2, queues: [Storage::QUARANTINE])
      storage.leave(NODE)
      assert_equal order, jids(quarantine)
    end

    def test_limits_and_pauses_hold_for_jobs_of_any_priority
      storage.extend([NODE], 60)
      prior({ "a" => 5, "b" => -5, "c" => 5 })
      assert_equal %w[b a], jids(fetch(limits: { "default" => 2 }))
      assert_empty fetch(limits: { "default" => 2 })
      storage.pause("default")
      assert_equal [[], []], [fetch, wait("default", seconds: 0.01)]
      storage.resume("default")
      assert_equal %w[c], jids(fetch)
    end
  end
end
