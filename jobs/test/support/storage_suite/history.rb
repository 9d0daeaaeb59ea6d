# frozen_string_literal: true

module StorageSuite
  # What has happened to a job.
  module History
    def event(kind, **) = Storage::Event.new(kind: kind, **)

    def events(jid) = storage.history(jid).map { |one| one.to_a.drop(1) }

    def test_an_outcome_writes_history
      push("a", "b", "c", "d", "e")
      a, b, c, d, e = fetch
      storage.fail(NODE, [failed(a, to: :retry, delay: 5, event: event(:retry, error_class: "E", error_message: "Größe \"1\"")),
                          failed(b, to: :dead, event: event(:dead, error_class: "E")), failed(c, to: :schedule, delay: 5),
                          failed(d, to: :queue, died: true, event: event(:died))])
      storage.ack(NODE, [done(e).tap { |ack| ack.event = event(:dropped, error_class: "F", error_message: "no") }])
      assert_equal [[[:retry, NODE, "E", "Größe \"1\""]], [[:dead, NODE, "E", nil]], [], [[:died, NODE, nil, nil]],
                    [[:dropped, NODE, "F", "no"]], []], (%w[a b c d e nobody].map { |jid| events(jid) })
    end

    def test_a_job_that_is_just_done_has_no_history_and_one_with_a_history_has_an_end
      push("a", "b")
      a, b = fetch
      before = storage.time
      storage.fail(NODE, [failed(a, to: :queue, event: event(:returned))])
      storage.ack(NODE, [done(b), done(fetch.first)])
      assert_equal [[[:returned, NODE, nil, nil], [:done, NODE, nil, nil]], []], [events("a"), events("b")]
      times = storage.history("a").map(&:at)
      assert_equal times.sort, times
      times.each { |at| assert_includes (before - 0.001)..(storage.time + 0.001), at }
    end

    def test_what_was_taken_away_has_no_event
      push("a")
      failure = failed(fetch.first, to: :retry, delay: 5, event: event(:retry))
      assert_equal([[false], [true], [false]], [OTHER, NODE, NODE].map { |node| storage.fail(node, [failure]) })
      assert_equal [[:retry, NODE, nil, nil]], events("a")
    end

    def test_what_becomes_of_jobs_without_their_worker_is_in_their_history
      push("a")
      push("b", queue: "other")
      storage.extend([OTHER], 60)
      fetch # without a lease
      fetch(queues: %w[other], node: OTHER)
      assert_equal 1, storage.recover(10).size
      storage.leave(OTHER)
      assert_equal [[[:taken_over, NODE, nil, nil]], [[:returned, OTHER, nil, nil]]], [events("a"), events("b")]
    end

    def test_a_job_that_was_killed_has_it_in_its_history
      push("a")
      storage.kill("default", tokens(list("default"), entry("a")))
      assert_equal [[:killed, nil, nil, nil]], events("a")
    end

    def test_a_retry_by_hand_is_in_the_history
      push("a", "b")
      storage.fail(NODE, fetch.map { |one| failed(one, to: :dead) })
      a = storage.scan(:dead, 0, 9).find { |one| jids([one]) == %w[a] }
      assert_equal [true, false], storage.retry_now(:dead, [a.token, a.token])
      assert_equal [[[:by_hand, nil, nil, nil]], []], [events("a"), events("b")]
    end

    def test_a_history_has_the_last_events
      push("a")
      30.times do |number|
        storage.fail(NODE, [failed(fetch.first, to: :queue, event: event(:retry, error_message: number.to_s))])
      end
      assert_equal (5...30).map(&:to_s), storage.history("a").map(&:error_message)
    end

    def test_a_history_ends_or_is_not_written_at_all
      { 0.001 => 0, 0 => 0, 60 => 1 }.each do |seconds, expected|
        @storage&.close
        @storage = new_storage(history: seconds)
        push("s#{seconds}")
        storage.fail(NODE, [failed(fetch.first, to: :schedule, delay: 5, event: event(:snoozed))])
        yield_until("there are #{expected}") { storage.history("s#{seconds}").size == expected }
      end
    end
  end
end
