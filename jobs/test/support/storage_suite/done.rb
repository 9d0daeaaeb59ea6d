# frozen_string_literal: true

module StorageSuite
  # The jobs that are done. A storage without tables keeps none, and says so.
  module Done
    def keeps_done? = !storage.done(0, 1).nil?

    # Runs jobs that take as many seconds as they are in number, and are kept but for those without a class.
    def finish(*jids, class_name: "Work", queue: "default")
      push(*jids, queue: queue)
      fetched = fetch(queues: [queue])
      acks = fetched.each_with_index.map do |one, index|
        done(one).tap { |ack| ack.ran = class_name && Storage::Ran.new(index + 0.5, class_name) }
      end
      assert_equal [true] * jids.size, storage.ack(NODE, acks)
    end

    def done_jids(*, **) = jids(storage.done(*, **))

    def test_what_is_done_is_kept_if_its_ack_says_so
      before = storage.time
      finish("a", "b", queue: "x::y")
      finish("c", class_name: nil)
      assert_equal [3, 0, 0], storage.stats.values_at(:processed, :enqueued, :in_flight)
      return assert_nil(storage.done(0, 9)) unless keeps_done?

      b, a = storage.done(0, 9)
      assert_equal [entry("a", queue: "x::y"), "x::y", NODE, 0.5, "Work"], [a.entry, a.queue, a.node, a.seconds, a.class_name]
      assert_equal [entry("b", queue: "x::y"), 1.5], [b.entry, b.seconds]
      assert_includes before - 0.001..storage.time, a.at
      assert_equal [a, nil, nil], [storage.find_done(a.token), storage.find_done("nobody"), storage.find_done("999999")]
      assert_empty storage.search.found, "what is done is in no place where jobs wait"
    end

    def test_what_is_done_is_read_from_both_ends_and_by_class
      return unless keeps_done?

      finish("a", "b")
      finish("c", "d", class_name: "Other")
      finish("e")
      assert_equal [%w[e d c b a], %w[e d], %w[b a], []], [[0, 9], [0, 2], [3, 9], [5, 9]].map { |page| done_jids(*page) }
      assert_equal [%w[a b], %w[e]], [done_jids(0, 2, from_end: true), done_jids(4, 2, from_end: true)]
      assert_equal [%w[e b a], %w[b], %w[a b], %w[d c], []],
                   [done_jids(0, 9, job_class: "Work"), done_jids(1, 1, job_class: "Work"),
                    done_jids(0, 2, job_class: "Work", from_end: true), done_jids(0, 9, job_class: "Other"),
                    done_jids(0, 9, job_class: "Nobody")]
    end

    def test_what_is_done_is_read_by_its_queue
      return unless keeps_done?

      finish("a", "b", queue: "x::y")
      finish("c")
      finish("d", queue: "x::y", class_name: "Other")
      assert_equal [%w[d b a], %w[a b], %w[b], %w[c], []],
                   [done_jids(0, 9, queue: "x::y"), done_jids(0, 2, queue: "x::y", from_end: true),
                    done_jids(1, 1, queue: "x::y"), done_jids(0, 9, queue: "default"), done_jids(0, 9, queue: "nobody")]
      assert_equal [%w[b a], %w[d], [], %w[a]],
                   [done_jids(0, 9, queue: "x::y", job_class: "Work"), done_jids(0, 9, queue: "x::y", job_class: "Other"),
                    done_jids(0, 9, queue: "default", job_class: "Other"),
                    done_jids(0, 1, queue: "x::y", job_class: "Work", from_end: true)]
    end

    # Anybody may have written it.
    def test_a_class_of_any_type_is_kept
      finish("a", class_name: ["\xff", nil])
      assert_equal [%(["\\xFF", nil])], storage.done(0, 1).map(&:class_name) if keeps_done?
    end

    def test_what_is_done_is_forgotten
      finish("a", "b")
      assert_equal 0, storage.trim_done(1000)
      assert_equal(keeps_done? ? 2 : 0, storage.trim_done(-1))
      assert_empty [*storage.done(0, 9)]
      assert_equal 0, storage.trim_done(0)
    end

    def test_a_job_that_is_not_here_any_more_is_not_kept
      finish("a")
      push("b")
      ack = done(fetch.first)
      ack.ran = Storage::Ran.new(1.0, "Work")
      assert_equal [false], storage.ack(OTHER, [ack])
      assert_equal %w[a], done_jids(0, 9) if keeps_done?
    end
  end
end
