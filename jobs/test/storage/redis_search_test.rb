# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"

# servers: valkey

# A search in Redis: in short steps, and by what the server can tell of an entry.
class RedisSearchTest < RedisCase
  include AnyBackend

  def entry(jid, **more) = JSON.generate({ "class" => "Work", "args" => [], "jid" => jid, "queue" => "default", **more })

  def push(entries, **) = storage.push(entries.map { |entry| push_of(entry, **) })

  def pages(**options)
    all = []
    page = nil
    until page && page.cursor.nil?
      page = storage.search(cursor: page&.cursor, **options)
      yield page if block_given?
      all << page
    end
    all
  end

  # A small set is one piece for the server; this one is not.
  def test_what_is_in_a_large_set_all_the_time_is_found_and_pages_stay_small
    push(Array.new(2000) { |number| entry("s#{number}") }, at: storage.time + 1000)
    added = 0
    all = pages(count: 100, places: [:schedule]) do
      push(Array.new(50) { entry("n#{added += 1}") }, at: storage.time + 1000) if added < 500
      storage.remove(:schedule, Array.new(50) { |number| entry("n#{added - number}") }) if added % 100 == 0
    end
    assert_empty Array.new(2000) { |number| entry("s#{number}") } - all.flat_map(&:found).map(&:entry)
    assert_operator all.map(&:looked).max, :<, 200
    assert_operator all.size, :>, 10
  end

  def test_a_step_ends_after_some_megabytes
    push(Array.new(300) { |number| entry("a#{number}", "more" => "x" * 50_000) })
    steps = commands(/evalsha/) { assert_equal 300, storage.search(places: ["default"], count: 1000).looked }
    assert_operator steps, :>=, 3
  end

  def test_only_what_may_match_comes_here
    push(Array.new(500) { |number| entry("a#{number}", "args" => ["x" * 1000]) } << entry("it"))
    before = call("INFO", "stats")[/total_net_output_bytes:(\d+)/, 1].to_i
    assert_equal "it", JSON.parse(storage.find("it").entry)["jid"]
    assert_operator call("INFO", "stats")[/total_net_output_bytes:(\d+)/, 1].to_i - before, :<, 20_000
  end

  # Other programs escape what they like.
  def test_finds_what_is_written_with_escape_sequences
    push(['{"class":"A::B","jid":"a","queue":"default","args":["Gr\u00f6\u00dfe \u003cb\u003e a\/b"]}'])
    ["Größe", "<b>", "a/b", "e <", "ß"].each do |text|
      assert_equal 1, storage.search(text: text).found.size, text
    end
    assert_equal 1, storage.search(job_class: "A::B").found.size
  end

  private

  # How many commands of a kind the server has carried out.
  def commands(pattern)
    count = -> { call("INFO", "commandstats").lines.grep(pattern).sum { |line| line[/calls=(\d+)/, 1].to_i } }
    before = count.call
    yield
    count.call - before
  end
end
