# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/web"
require_relative "../support/sqlite_case"

# What pages read from a file is the same, however many jobs are in it.
class SqlitePagesTest < SqliteCase
  include AnyBackend

  # Counts the instructions of SQLite's machine, and notes the statements.
  module Counting
    # sqlite3_stmt_status, https://www.sqlite.org/c3ref/c_stmtstatus_counter.html
    VM_STEP = 4

    class << self
      attr_accessor :counts
    end

    def rows(sql, *values)
      super.tap do
        steps = statement(sql).status(VM_STEP, true)
        Counting.counts[sql] += steps if Counting.counts
      end
    end
  end

  # These have few rows: they are of queues, processes, classes and tables.
  SMALL = %w[queues nodes state set_sizes flight announced measured sqlite_master].freeze

  # As many rows as a page has, from an end.
  IN_ORDER = /\ASCAN done USING COVERING INDEX done_in_order\z/

  def setup
    super
    Sqlite.const_get(:Connection).prepend(Counting)
    Counting.counts = nil
  end

  def teardown
    Counting.counts = nil
    super
  end

  def fill(count)
    now = Time.now.to_f
    texts = Array.new(count) { |number| entry("j#{number}", enqueued_at: now, class: number.even? ? "A" : "B") }
    texts.each_slice(1000) { |some| storage.push(some.map { |text| Storage::Push.new(queue: "default", entry: text) }) }
    %i[schedule retry dead].each do |set|
      jobs = texts.each_with_index.map { |text, number| Storage::Stored.new(nil, text, now + number) }
      jobs.each_slice(1000) { |some| storage.restore(set, some) }
    end
    finish(texts)
    storage.close
  end

  def finish(texts)
    texts.each_slice(1000) do |some|
      storage.push(some.map { |text| Storage::Push.new(queue: "done", entry: text) })
      acks = storage.fetch(NODE, ["done"], 1000).map do |one|
        ran = Storage::Ran.new(0.5, one.entry.include?('"A"') ? "A" : "B")
        Storage::Ack.new(queue: "done", token: one.token, jid: "x", ran: ran)
      end
      storage.ack(NODE, acks)
    end
  end

  def pages(count)
    last = (count - 1) / 50 * 50
    places = ["/queue?place=queue&queue=default", "/scheduled?x=1", "/retries?x=1", "/dead?x=1"]
    from_ends = places.product(%w[first last], ["", "&from=#{last}"])
    from_ends = from_ends.map { |place, order, from| "#{place}&order=#{order}#{from}" }
    ["/", "/queues", "/busy", "/processes", "/classes", "/class?class=A", "/done", "/done?order=first", "/done?class=A",
     "/done?class=A&order=first", "/done?queue=done", "/done?queue=done&order=last", *places, *from_ends]
  end

  def show(path)
    name, query = path.split("?", 2)
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => name, "QUERY_STRING" => query.to_s, "HTTP_HOST" => "localhost" }
    status, = Ringspun::Jobs::Web.new(storage: storage).call(env)
    assert_includes [200, 404], status, path
  end

  # @return [Hash{String => Hash{String => Integer}}] of each page its statements and their instructions
  def counts(count)
    fill(count)
    pages(count).to_h do |path|
      Counting.counts = Hash.new(0)
      show(path)
      [path.sub(/from=\d+/, "from=last"), Counting.counts]
    end
  ensure
    Counting.counts = nil
    storage.close
  end

  def test_a_page_costs_the_same_with_ten_times_as_many_jobs
    few = counts(400).transform_values { |all| all.values.sum }
    FileUtils.rm_f(Dir["#{path}*"].select { |file| File.file?(file) })
    @storage = nil
    many = counts(4000).transform_values { |all| all.values.sum }
    assert_equal few.keys, many.keys
    few.each { |page, steps| assert_operator many[page], :<, (steps * 1.1) + 100, page }
  end

  # No table but small ones is read as a whole, and nothing but a page is sorted.
  def test_each_statement_of_a_page_goes_by_an_index
    statements = counts(60).values.flat_map(&:keys).uniq.grep(/\ASELECT/)
    assert_operator statements.size, :>, 15
    statements.each do |sql|
      plan = query("EXPLAIN QUERY PLAN #{sql}").map(&:last)
      scans = plan.grep(/\ASCAN/).grep_v(IN_ORDER).map { |line| line[/\ASCAN (\w+)/, 1] }
      assert_empty scans - SMALL - ["page", "CONSTANT"], "#{sql}\n#{plan.join("\n")}"
      refute_match(/AUTOMATIC/, plan.join, sql)
    end
  end

  # A search goes on from its position.
  def test_the_parts_of_a_search_cost_the_same_wherever_they_are
    fill(3000)
    steps = [100, 2400].map do |skipped|
      cursor = storage.search(places: ["default"], job_class: "None", count: skipped).cursor
      Counting.counts = Hash.new(0)
      assert_equal 500, storage.search(places: ["default"], job_class: "None", count: 500, cursor: cursor).looked
      Counting.counts.values.sum
    end
    assert_in_delta steps.first, steps.last, 100
  end
end
