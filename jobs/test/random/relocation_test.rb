# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "ringspun/jobs/storage/sqlite"
require "support/redis_case"
require "support/seeds"
require "tmpdir"
require_relative "relocation/contents"
require_relative "relocation/killed"

# Random contents of a storage are moved to another one: what was in the first is in the second, once, and in its order. And the
# same where who moves them is killed between any two calls, and begins again.
class RelocationTest < RedisCase
  Relocation = Jobs::CLI.const_get(:Relocation)
  KINDS = %i[memory redis sqlite].freeze
  PAIRS = KINDS.product(KINDS).freeze

  def setup
    super
    Storage::Sqlite.const_get(:Library).load
    @folder = Dir.mktmpdir("ringspun-relocation-")
    @made = 0
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
    Storage::Sqlite.const_get(:Guard).sweep
  end

  # An empty storage. Clocks of memory go on by the hand of the test.
  def new_storage(kind)
    @made += 1
    case kind
    when :memory then Storage::Memory.new(clock: -> { @now })
    when :redis then open_storage({ path: redis_path }, namespace: "n#{@made}")
    when :sqlite then opened(Storage::Sqlite.new("#{@folder}/#{@made}.sqlite3", durable: :normal))
    end
  end

  # Ends the lease of a node.
  def lapse(storage, node)
    storage.extend([node], 0.001)
    @now += 0.002
    call("SET", "later", "1", "PX", 3)
    nil while call("EXISTS", "later") == 1
  end

  def with_contents(seed)
    @now = 2e9
    random = Random.new(seed)
    kinds = PAIRS[seed % PAIRS.size]
    source, target = kinds.map { |kind| new_storage(kind) }
    contents = RelocationContents.new(random, source)
    lapse(source, RelocationContents::DEAD)
    yield random, source, target, contents, "again: RINGSPUN_SEED=#{seed}, from #{kinds.join(" to ")}"
  ensure
    @opened.reverse_each(&:close)
    @opened.clear
  end

  def left(stats) = stats.values_at(:enqueued, :scheduled, :retries, :dead).sum

  # @return [Relocation::Counts]
  def relocate(source, target, page)
    relocation = Relocation.new(source, target, page: page)
    rounds = 0
    relocation.run do |stats|
      flunk "after three rounds there is left: #{stats}" if (rounds += 1) > 3
      left(stats).positive?
    end
    relocation.counts
  end

  def test_what_was_in_one_is_in_the_other_in_its_order
    Seeds.of_the_day(18).each do |seed|
      with_contents(seed) do |random, source, target, contents, again|
        counts = relocate(source, target, 1 + random.rand(5))
        moved = RelocationContents.of(target)
        assert_equal contents.places.keys.map(&:to_s).sort, moved.keys.map(&:to_s).sort, again
        contents.places.each { |place, all| assert_equal all, moved[place], "#{place}, #{again}" }
        assert_equal [contents.places.each_value.sum(&:size), 0, 0], counts.to_a, again
        assert_empty RelocationContents.of(source), again
        assert_equal contents.in_flight, source.in_flight(RelocationContents::ALIVE).map { |job| job.entry.b }, again
        assert_equal contents.paused, target.paused, again
        assert_locks(contents, source, target, again)
      end
    end
  end

  def assert_locks(contents, source, target, again)
    contents.locks.each do |token, jid|
      text = %("#{token}","unique_for":#{RelocationContents::LOCK_SECONDS},"unique_until":"expiry")
      stays = contents.places.values.flatten.grep(String).any? { |entry| entry.include?(text) }
      held = [target, source].map { |storage| storage.lock(token, "other", 1) }
      assert_equal [jid, (jid if stays)], held, again
    end
  end

  def test_a_kill_between_two_calls_loses_and_doubles_nothing
    Seeds.of_the_day(27).each do |seed|
      with_contents(seed) do |random, source, target, contents, again|
        calls = KilledCalls.new(random.rand(40), told: random.rand(2).zero?)
        begin
          relocate(calls.side(source), calls.side(target), 1 + random.rand(5))
        rescue KilledCalls::Kill
          lapse(source, calls.node) if calls.node
        end
        relocate(source, target, 1 + random.rand(5))
        assert_equal RelocationContents.whereabouts(contents.places),
                     RelocationContents.whereabouts(RelocationContents.of(target)), again
        assert_empty RelocationContents.of(source), again
      end
    end
  end
end
