# frozen_string_literal: true

require "jobs_helper"
require "delegate"
require_relative "../support/redis_case"

# servers: valkey

# What would hold the server up for long is done in parts, and others have their turns between them.
class RedisPartsTest < RedisCase
  include AnyBackend

  # What was sent, and a block that is called before each time.
  class Watched < SimpleDelegator
    attr_reader :calls

    def initialize(connection, &before)
      super(connection)
      @before = before
      @calls = 0
    end

    def call(*)
      @calls += 1
      @before&.call(@calls)
      super
    end
  end

  FILL = <<~LUA
    for number = 1, ARGV[2] + 0 do redis.call('LPUSH', ARGV[1], string.format(ARGV[3], number)) end
  LUA

  def fill(count, list: "queue:default") = call("EVAL", FILL, 0, list, count, JSON.generate(entry("%d")))

  def entry(jid) = { "class" => "Work", "args" => [], "jid" => jid.to_s, "queue" => "default" }

  def entries(*jids) = jids.map { |jid| JSON.generate(entry(jid)) }

  def watched(&) = @watched = Watched.new(opened(storage.connect), &)

  def size = call("LLEN", "queue:default")

  def test_a_queue_is_cleared_in_parts_and_what_comes_meanwhile_stays
    fill(2500)
    connection = watched { |number| storage.push([push_of("new")]) if number > 1 }
    assert_equal [2500, 3], [storage.clear("default", connection: connection), connection.calls]
    assert_equal %w[new new], call("LRANGE", "queue:default", 0, -1)
  end

  def test_a_queue_from_which_others_take_meanwhile_is_cleared
    fill(2500)
    assert_equal 1000, storage.clear("default", connection: watched { |call| storage.clear("default") if call == 2 })
    assert_equal [2, 0], [@watched.calls, size]
  end

  def test_a_set_is_cleared_in_parts
    storage.restore(:dead, entries(*1..1500).map { |text| Storage::Stored.new(nil, text, 5) })
    assert_equal 1500, storage.clear(:dead, connection: watched)
    assert_equal [2, 0], [@watched.calls, call("ZCARD", "dead")]
  end

  def test_priorities_are_cleared_in_parts
    pushes = (1..1500).map { |jid| push_of(JSON.generate({ **entry(jid), "ringspun_priority" => jid % 3 }), priority: jid % 3) }
    storage.push(pushes)
    # Who waits, waits at this list.
    connection = watched { |number| assert_operator size, :>=, 1, "before part #{number}" }
    assert_equal 1500, storage.clear("default", connection: connection)
    assert_equal %w[queues], call("KEYS", "*")
  end

  # Fifty times as many entries would be compared at a time otherwise.
  def test_jobs_in_the_middle_of_a_huge_queue_are_removed_in_parts
    fill(100_000)
    middle = 50_000...50_050
    assert_equal [true] * 50, storage.remove("default", entries(*middle), connection: watched)
    assert_includes 5..50, @watched.calls
    assert_equal [false] * 50, storage.kill("default", entries(*middle), connection: watched)
    assert_includes 5..50, @watched.calls
    moves = entries(*(50_050...50_100)).map { |text| Storage::Move.new(text) }
    assert_equal [true] * 50, storage.move("default", moves, "other", connection: watched)
    assert_includes 5..50, @watched.calls
    assert_equal [99_900, entries(*(50_050...50_100))], [size, storage.list("other", 0, 60).map(&:entry)]
  end

  # It is looked for from both ends.
  def test_jobs_near_an_end_of_a_huge_queue_are_removed_at_once
    fill(100_000)
    [1..200, 99_801..100_000].each do |some|
      assert_equal [true] * 200, storage.remove("default", entries(*some), connection: watched)
      assert_equal 1, @watched.calls
    end
    assert_equal entries(201, 99_800), call("LRANGE", "queue:default", 0, -1).values_at(-1, 0)
  end

  def test_what_is_away_after_a_part_is_done_leaves_an_outcome_that_is_not_known
    away = ->(number) { raise Jobs::UnavailableError, "away" if number == 2 }
    fill(1500)
    assert_raises(Jobs::UnknownOutcomeError) { storage.clear("default", connection: watched(&away)) }
    assert_equal 500, size
    fill(100_000)
    assert_raises(Jobs::UnknownOutcomeError) do
      storage.remove("default", entries(*(50_000...50_050)), connection: watched(&away))
    end
    assert_includes 100_450..100_499, size
  end
end
