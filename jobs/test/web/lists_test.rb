# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/storage/sqlite"
require "support/web_case"
require "tmpdir"

# The order of lists, their last pages, and what is left of them by a filter.
class WebListsTest < WebCase
  def jids_of(path) = get(path).body.scan(/name="key"[^>]* value="\h+:([^"]+)"/).flatten

  def linked(path, text) = CGI.unescapeHTML(get(path).body[%r{href="([^"]+)"[^>]*>#{text}</a>}, 1].to_s)

  def queue = "/queue?place=queue&queue=default"

  # The second never passes for which sizes are remembered.
  def keep_sizes
    web.instance_variable_set(:@sampler, Jobs::Web.const_get(:Sampler).new(clock: -> { 0.0 }) { storage })
  end

  def test_a_queue_from_both_ends
    120.times { |number| push("j#{number}") }
    assert_equal %w[j0 j49], jids_of(queue).values_at(0, -1)
    assert_match(/1 to 50 of 120 /, text(queue))
    newest = linked(queue, "Newest first")
    assert_equal %w[j119 j70], jids_of(newest).values_at(0, -1)
    more = linked(newest, "More")
    assert_equal %w[j69 j20], jids_of(more).values_at(0, -1)
    assert_equal %w[j19 j0], jids_of(linked(more, "More")).values_at(0, -1)
  end

  def test_the_last_page_and_back
    120.times { |number| push("j#{number}") }
    last = linked(queue, "Last page")
    assert_equal %w[j100 j119], jids_of(last).values_at(0, -1)
    assert_match(/101 to 120 of 120 /, text(last))
    assert_equal ["", ""], [linked(last, "More"), linked(last, "Last page")]
    assert_equal %w[j50 j99], jids_of(linked(last, "Back")).values_at(0, -1)
    assert_equal "j0", jids_of(linked(last, "First page")).first
    assert_equal "", linked(queue, "First page")
    assert_empty jids_of("#{queue}&from=5000")
  end

  # What lies before it would have to be stepped over.
  def test_the_last_page_is_read_from_the_end
    120.times { |number| push("j#{number}", at: 5e9 + number) }
    keep_sizes
    get("/")
    storage.calls.clear
    assert_equal "j100", jids_of("/scheduled?from=100").first
    assert_equal [[:scan, :schedule, 0, 20]], storage.calls
  end

  def test_sets_from_both_ends
    60.times { |number| push("s#{number}", at: 5e9 + number) }
    assert_equal %w[s0 s49], jids_of("/scheduled").values_at(0, -1)
    assert_equal %w[s59 s10], jids_of(linked("/scheduled", "Latest first")).values_at(0, -1)
    60.times { |number| put(:dead, "d#{number}") }
    @web = nil # which remembers sizes for a second
    assert_equal %w[d59 d10], jids_of("/dead").values_at(0, -1)
    assert_equal %w[d9 d0], jids_of("/dead?from=50").values_at(0, -1)
    assert_equal %w[d0 d49], jids_of(linked("/dead", "Oldest first")).values_at(0, -1)
    assert_match(%r{aria-current="true">Newest first</a>}, get("/dead").body)
  end

  # Wherever it is on the pages, a button finds it there.
  def test_buttons_on_all_of_these_pages
    400.times { |number| push("j#{number}") }
    ["#{queue}&order=last", "#{queue}&from=350", "#{queue}&order=last&from=350", queue].each do |path|
      body = get(path).body
      action = CGI.unescapeHTML(body[%r{action="(/jobs\?[^"]+)"}, 1])
      jid = jids_of(path)[1]
      storage.calls.clear
      assert_equal "1 deleted.", told(press(action, act: "delete", key: keys(path)[1])).last, path
      refute_includes jids_of(path), jid
      refute_includes storage.calls.map(&:first), :search, "near where it was"
    end
    link = CGI.unescapeHTML(get("#{queue}&order=last").body[%r{href="(/job\?[^"]+)"}, 1])
    assert_match(/Queue default Class Work/, text(link))
  end

  def test_those_of_a_class
    300.times { |number| push("j#{number}", class: (number % 10).zero? ? "Rare" : "Work") }
    page = "#{queue}&class=Rare"
    assert_equal Array.new(30) { |number| "j#{number * 10}" }, jids_of(page)
    assert_match(/Looked at 300 of 300 jobs: that is all; found 30\./, text(page))
    assert_match(/name="class" value="Rare"/, get(page).body)
    action = CGI.unescapeHTML(get(page).body[%r{action="(/jobs\?[^"]+)"}, 1])
    assert_equal ["/queue", "1 deleted."], told(press(action, act: "delete", key: keys(page)[4]))
    assert_equal 29, jids_of(page).size
    assert_match(/found 0\./, text("#{queue}&class=None"))
    assert_equal queue, linked("#{queue}&class=None", "Show all")
  end

  def test_those_of_a_queue_in_a_set
    3.times { |number| push("a#{number}", at: 5e9) }
    push("b", entry: entry("b", queue: "other"), at: 5e9)
    assert_equal %w[b], jids_of("/scheduled?in=other")
    assert_equal %w[a0 a1 a2], jids_of("/scheduled?in=default").sort
    assert_equal %w[b], jids_of("/scheduled?in=other&class=Work")
    assert_match(/ Queue /, text("/scheduled"))
    refute_match(/name="in"/, get(queue).body)
  end

  # A page looks at a bounded number, says so, and the next one goes on.
  def test_a_filter_is_bounded_and_says_what_was_looked_at
    most = Jobs::Web.const_get(:Filter)::LOOKED_MAX
    pages = 0
    endless = Class.new(SimpleDelegator) do
      define_method(:search) do |count:, **|
        pages += 1
        Storage::Page.new([], count, "on")
      end
    end
    push
    @web = Jobs::Web.new(storage: endless.new(memory))
    filter = Jobs::Web.const_get(:Searched).new(endless.new(memory), {}, most: most, clock: -> { 0.0 }).go
    assert_includes most...most + 1000, filter.looked
    assert_operator pages, :<, 30
    body = text("#{queue}&class=Rare")
    assert_match(/Looked at [\d,]+ of 1 job so far; found 0\./, body)
    assert_match(/cursor=on/, linked("#{queue}&class=Rare", "Look on"))
  end

  def test_a_damaged_cursor
    push
    answer = get("#{queue}&class=Work&cursor=nonsense")
    assert_equal 400, answer.status
    assert_match(/address is damaged/, answer.body)
    damaged = "/jobs?place=queue&queue=default&class=Work&cursor=x"
    assert_match(/\ANot there any more: 1\./, told_by(press(damaged, act: "delete", key: keys(queue).first)))
    assert_equal 1, memory.stats[:enqueued]
  end

  # The page that comes next has the same damaged cursor.
  def told_by(answer)
    assert_equal 303, answer.status
    get(answer["location"]).body[%r{role="status">([^<]+)</p>}, 1].to_s.strip
  end
end

# The same pages of a storage in a file.
class WebListsInAFileTest < WebListsTest
  def setup
    super
    @folder = Dir.mktmpdir("ringspun-web-")
    @memory = Storage::Sqlite.new(File.join(@folder, "jobs.sqlite3"))
  end

  def teardown
    @memory.close
    FileUtils.remove_entry(@folder)
    super
  end
end
