# frozen_string_literal: true

require "support/both_sides"

# Jobs that go on where they were.
class SidekiqIterableTest < BothSides
  PROGRAM = <<~'RUBY'
    def tell(*what)
      redis = RedisClient.new(url: ENV.fetch("REDIS_URL"), timeout: 60)
      redis.call("LPUSH", "told", JSON.generate(what))
      redis.blocking_call(60, "BRPOP", "go", 0) if what == ["step", 2]
    ensure
      redis&.close
    end

    class Work
      include Sidekiq::IterableJob

      def build_enumerator(size, cursor:)
        tell("from", cursor)
        array_enumerator((1..size).to_a, cursor:)
      end

      def each_iteration(number, size)
        tell("step", number)
        throw :abort if number == 7
        cancel! if number == 9
      end

      def around_iteration = yield
      %i[on_start on_resume on_stop on_cancel on_complete].each { |name| define_method(name) { tell(name) } }
    end

    Sidekiq.configure_server { |config| config.on(:quiet) { tell("quiet") } }
  RUBY

  def enqueue(size, jid: "a" * 24)
    job = { "class" => "Work", "args" => [size], "queue" => "default", "retry" => true, "jid" => jid }
    redis.call("SADD", "queues", "default")
    redis.call("LPUSH", "queue:default", JSON.generate(job))
  end

  # Between these, in every combination, for each reads what the other has kept.
  SIDES.keys.product(SIDES.keys).each do |first, second|
    define_method(:"test_#{first}_begins_and_#{second}_goes_on") do
      worker = start_side(first, PROGRAM)
      enqueue(4)
      assert_equal [["from", nil], ["on_start"], ["step", 1], ["step", 2]], told_of(4)
      worker.signal(:TSTP)
      assert_equal ["quiet"], told
      redis.call("LPUSH", "go", "1")
      assert_equal ["on_stop"], told
      soon("it is back") { redis.call("LLEN", "queue:default") == 1 || redis.call("ZCARD", "schedule") == 1 }
      assert_equal %w[1 2], redis.call("HMGET", "it-#{"a" * 24}", "ex", "c")
      worker.stop
      start_side(second, PROGRAM)
      told if redis.call("LLEN", "told").positive? && redis.call("LINDEX", "told", -1) == "[\"quiet\"]"
      assert_equal [["from", 2], ["on_resume"], ["step", 3], ["step", 4], ["on_stop"], ["on_complete"]], told_of(6)
      soon("it is forgotten") { redis.call("EXISTS", "it-#{"a" * 24}").zero? }
    end
  end

  SIDES.each_key do |side|
    define_method(:"test_#{side}_ends_early") do
      start_side(side, PROGRAM)
      redis.call("LPUSH", "go", "1", "1", "1")
      enqueue(8)
      assert_equal ["step", 7], told_of(9).last
      assert_equal [["on_stop"], ["on_complete"]], told_of(2)
      # The real one reads no place where there is just the mark of who has cancelled it.
      redis.call("HSET", "it-#{"b" * 24}", "ex", 1, "c", "0", "cancelled", "5")
      enqueue(3, jid: "b" * 24)
      assert_equal [["from", 0], ["on_resume"], ["on_cancel"], ["on_stop"], ["on_complete"]], told_of(5)
    end
  end

  def test_what_cannot_be
    both(<<~'RUBY')
      class Iterates
        include Sidekiq::IterableJob
      end
      [-> { Iterates.class_eval { def perform = nil } }, -> { Iterates.new.build_enumerator(cursor: nil) },
       -> { Iterates.new.each_iteration(1) }, -> { Iterates.new.array_enumerator(1, cursor: nil) }].map do |call|
        call.call
      rescue Exception => error
        error.class.name
      end
    RUBY
  end

  # A relation of Active Record's, as far as they ask it.
  RELATION = <<~'RUBY'
    Row = Struct.new(:id)
    class Relation
      def initialize(ids) = @ids = ids
      def count = @ids.size
      def first = Row.new(@ids.first)
      def find_each(start:, **) = @ids.each { |id| yield Row.new(id) if id >= start.to_i }
      def from(start) = @ids.select { |id| id >= start.to_i }
      def find_in_batches(start:, batch_size:) = from(start).each_slice(batch_size) { |ids| yield ids.map { |id| Row.new(id) } }
      def in_batches(start:, of:) = from(start).each_slice(of) { |ids| yield Relation.new(ids) }
    end
  RUBY

  def test_sequences_of_active_record
    both(<<~RUBY)
      #{RELATION}
      class Iterates
        include Sidekiq::IterableJob
      end
      job = Iterates.new
      relation = Relation.new([1, 2, 3, 5, 8])
      [[job.active_record_records_enumerator(relation, cursor: 3), ->(row) { row.id }],
       [job.active_record_batches_enumerator(relation, cursor: nil, batch_size: 2), ->(rows) { rows.map(&:id) }],
       [job.active_record_relations_enumerator(relation, cursor: 2, batch_size: 2), ->(some) { some.count }]]
        .map { |steps, shown| [steps.size, steps.map { |one, place| [shown.call(one), place] }] }
    RUBY
  end

  # The gem csv is not in the bundle; all that is asked of a CSV is `each`.
  def test_sequences_of_csv
    made = run_one(:ours, <<~RUBY)
      class Iterates
        include Sidekiq::IterableJob
      end
      job = Iterates.new
      rows = %w[a b c]
      [job.csv_enumerator(rows, cursor: nil), job.csv_enumerator(rows, cursor: 2),
       job.csv_batches_enumerator(rows, cursor: 1, batch_size: 2)]
        .map { |steps| [steps.is_a?(Enumerator), steps.map { |*step| step.flatten(1) }.to_a] }
    RUBY
    assert_equal [[true, [["a", 0], ["b", 1], ["c", 2]]], [true, [["c", 2]]], [true, [[["c"], 1]]]], made.answer
  end

  def test_sequences
    both(<<~'RUBY')
      class Iterates
        include Sidekiq::IterableJob
      end
      [Iterates.new.array_enumerator([5, 6, 7], cursor: 1).to_a, Iterates.new.array_enumerator([5, 6, 7], cursor: nil).size,
       Sidekiq::Client.new.cancel!("x").positive?]
    RUBY
  end
end
