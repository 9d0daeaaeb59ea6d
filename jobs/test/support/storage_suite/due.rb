# frozen_string_literal: true

module StorageSuite
  # Who wakes for what is due, and when.
  module Due
    def told? = storage.wait_due(0.01) # must pass

    def test_one_who_waits_is_told_of_what_is_due_soon
      Ringspun.run do
        waits = Array.new(2) { parked { storage.wait_due(60) } }
        push("a", delay: 0.5)
        yield_until("one is told") { waits.count(&:alive?) == 1 }
        assert_equal true, waits.find { |wait| !wait.alive? }.await
        push("b", at: storage.time + 0.2)
        assert_equal [true, true], machine.await(*waits)
      end
    end

    def test_who_comes_later_is_told_once
      push("a", delay: 1)
      push("b", delay: 0.9)
      assert_equal [true, false], [told?, told?]
    end

    # Another program may write any bytes, and all others wait behind such a job.
    def test_a_job_whose_queue_is_no_text_holds_up_no_other
      entries = ["\xff", "backup::\xff", "good"].map { |queue| entry("a").sub('"default"', %("#{queue}")) }
      storage.restore(:schedule, entries.map { |one| Storage::Stored.new(nil, one, 1.0) })
      storage.due(9)
      stats = storage.stats
      queues = stats[:queues].select { |_, size| size.positive? }.transform_keys { |name| name.dup.force_encoding("UTF-8") }
      assert_equal [{ "\xff" => 1, "good" => 1 }, 0, 1], [queues, *stats.values_at(:scheduled, :dead)]
      storage.restore(:dead, [Storage::Stored.new(nil, entries.first, 5.0)])
      storage.retry_now(:dead, storage.scan(:dead, 0, 9).map(&:token))
      assert_equal 2, storage.list("\xff", 0, 9).size
    end

    # A poll comes before that.
    def test_what_is_due_later_wakes_nobody
      push("a", delay: 60)
      push("b", at: storage.time + 60)
      refute told?
    end

    def test_a_job_that_is_tried_again_soon_wakes_one_too
      push("a", "b")
      a, b = fetch
      storage.fail(NODE, [failed(a, to: :retry, delay: 0.2)])
      assert told?
      storage.fail(NODE, [failed(b, to: :schedule, delay: 0.1)])
      assert told?
    end

    # By the storage's clock, however long that takes.
    def assert_sleeps_until(time, ...)
      before = storage.time
      seconds = storage.due(100, ...)[1]
      assert_includes (time - storage.time - 0.001)..(time - before + 0.001), seconds
    end

    # Of many who look one wakes for it, and the others when they look again.
    def test_one_sleeps_until_the_next_is_due
      began = storage.time
      push("a", at: began + 500)
      assert_sleeps_until(began + 500, by: "x")
      assert_equal [nil, nil], [storage.due(100, by: "y")[1], storage.due(100, by: "z")[1]]
      assert_sleeps_until(began + 500, by: "x")
      assert_sleeps_until(began + 500)
      push("b", at: began + 200)
      assert_sleeps_until(began + 200, by: "y")
      assert_equal [nil, nil], [storage.due(100, by: "x")[1], storage.due(100, by: "z")[1]]
    end

    # Who was to wake is gone, or has no time.
    def test_another_one_wakes_when_the_first_is_late
      push("a", delay: 0.01) until sleeps_for_it?("x")
      yield_until("it is due") { storage.due(100, by: "y").first == 1 }
      push("b", at: later = storage.time + 500)
      assert_sleeps_until(later, by: "y")
    end

    # Where it is due by then, it has been moved.
    def sleeps_for_it?(node) = storage.due(100, by: node).then { |moved, seconds| moved.zero? && seconds }

    # Nobody is told twice of the same. Their order is that of their times, however late each is pushed.
    def test_what_is_later_than_what_somebody_sleeps_for_wakes_nobody
      began = storage.time
      push("a", at: began + Storage::POLL_SECONDS - 0.2)
      assert told?
      storage.due(100, by: "x")
      push("b", at: began + Storage::POLL_SECONDS - 0.1)
      refute told?
      push("c", at: began)
      assert told?
    end
  end
end
