# frozen_string_literal: true

require "jobs_helper"
require "support/sqlite_case"
require "support/web_case"
require "support/worked"

# The page of the jobs that are done, and those of their classes.
class WebDoneTest < WebCase
  # As a worker does whose settings keep them.
  def finish(jid, seconds: 0.25, class_name: "Work", queue: "default", **)
    push(jid, queue:, class: class_name, **)
    one = memory.fetch(NODE, [queue], 1).first
    ran = Storage::Ran.new(seconds, class_name)
    memory.ack(NODE, [Storage::Ack.new(queue:, token: one.token, jid:, ran:)])
  end

  def measure(minute, name, processed, failed = 0, milliseconds = 0, histogram = {})
    now = (memory.time / 60).to_i
    memory.measure([Storage::Measure.new(now - minute, name, processed, failed, milliseconds, histogram)])
  end

  def linked(path, text) = CGI.unescapeHTML(get(path).body[%r{href="([^"]+)"[^>]*>#{text}</a>}, 1].to_s)

  def test_none_is_kept_unless_a_setting_says_so
    assert_match(/gone, unless the setting keep_done of the workers says for how many seconds .* There are none\./, text("/done"))
    without = Class.new(SimpleDelegator) { def done(...) = nil }.new(memory)
    @web = Jobs::Web.new(storage: without)
    assert_match(/This storage has no tables, and keeps no jobs that are done\./, text("/done"))
  end

  def test_what_is_done_with_how_long_it_has_taken
    finish("a", args: ["x", { "y" => 1 }], tags: ["blue"])
    finish("b", seconds: 93, class_name: "Slow")
    assert_match(/1 to 2 .*Slow 1 default 93 s \S+ m?s ago host:1:aa Work blue "x", \{"y":1\} default 250 ms /, text("/done"))
    page = text(linked("/done", "Slow"))
    assert_match(/Where Done , .* ago Class Slow Id b Queue default .*Took 93 s Ran at host:1:aa Fetched from default/, page)
    refute_match(/Cancel|Delete/, page)
    memory.trim_done(-1)
    assert_equal 404, get("/job?done=1&jid=a").status
  end

  def test_page_by_page_from_both_ends_and_by_class
    60.times { |number| finish("j#{number}", args: ["n#{number}"], class_name: number < 3 ? "Rare" : "Work") }
    numbers = ->(path) { get(path).body.scan(/&quot;n(\d+)&quot;/).flatten.map(&:to_i) }
    assert_equal (10..59).to_a.reverse, numbers["/done"]
    assert_equal (0..9).to_a.reverse, numbers[linked("/done", "More")]
    assert_equal "/done?from=0", linked("/done?from=50", "Back")
    assert_equal (0..49).to_a, numbers[linked("/done", "Oldest first")]
    assert_equal (50..59).to_a, numbers[linked("/done?order=first", "More")]
    assert_equal [2, 1, 0], numbers["/done?class=Rare"]
    assert_equal "", linked("/done?class=Rare", "More")
    assert_match(/There are none/, text("/done?class=None"))
  end

  def test_the_last_page_and_a_queue
    60.times { |number| finish("j#{number}", args: ["n#{number}"], queue: number < 3 ? "rare" : "default") }
    numbers = ->(path) { get(path).body.scan(/&quot;n(\d+)&quot;/).flatten.map(&:to_i) }
    assert_equal (0..49).to_a.reverse, numbers[linked("/done", "Last page")]
    assert_match(/the last 50/, text("/done?order=last"))
    assert_equal "/done", linked("/done?order=last", "First page")
    assert_equal ["", ""], [linked("/done?from=50", "Last page"), linked("/done?order=last", "More")]
    assert_equal [2, 1, 0], numbers["/done?queue=rare"]
    assert_equal [2, 1, 0], numbers["/done?queue=rare&class=Work"]
    assert_equal "/done?queue=default&order=last", linked("/done?queue=default", "Last page")
    assert_equal (3..52).to_a.reverse, numbers["/done?queue=default&order=last"]
    assert_match(/There are none/, text("/done?queue=rare&class=None"))
  end

  def test_all_classes
    assert_match(/There are none/, text("/classes"))
    measure(1, "Fast", 1000, 1, 9990, { 0 => 999 })
    measure(1, "Slow", 10, 5, 2_000_000, { 25 => 5 })
    measure(1, "Broken", 3, 3)
    rows = ["Fast 1,000 1 \\(under 1 %\\) 10 ms 20 ms 20 ms 20 ms", "Slow 10 5 \\(50 %\\) 6 min over 5 min over 5 min over 5 min",
            "Broken 3 3 \\(100 %\\) none none none none"]
    assert_match(/#{rows.join(" ")}/, text("/classes"))
    order = ->(name) { get(linked("/classes", name)).body.scan(%r{/class\?class=(\w+)}).flatten }
    assert_equal [%w[Slow Broken Fast], %w[Broken Slow Fast], %w[Slow Fast Broken]],
                 ["Most failures", "Most failures of a hundred", "Slowest"].map(&order)
  end

  def test_a_class
    measure(2, "Work", 100, 10, 9000, { 4 => 90 })
    measure(100, "Work", 100, 0, 1000, { 0 => 100 })
    finish("a")
    page = text("/class?class=Work")
    assert_match(/In all Runs 200 Failed 10 \(5 %\) Mean 53 ms Half below 20 ms 95 % below 100 ms 99 % below 100 ms/, page)
    assert_match(/In the last hour Runs 100 Rate 1.7 a minute Failed 10 \(10 %\) Mean 100 ms Half below 100 ms/, page)
    assert_match(/Runs a minute .*How long they take .*Done last 1 job .*Work 1 default 250 ms/, page)
    assert_equal 2, get("/class?class=Work").body.scan("<svg").size
    assert_equal %w[/done?class=Work /search?class=Work],
                 [linked("/class?class=Work", "All that are kept"), linked("/class?class=Work", "Look for its jobs")]
    assert_equal [404, 404], [get("/class?class=None").status, get("/class").status]
    assert_match(/No job of this class was measured/, get("/class?class=None").body)
  end

  EVIL = %(<script>alert("x")</script>'"><img src=x onerror=alert(1)>)

  def test_what_anybody_may_have_written_is_text
    finish("e", class_name: EVIL, args: [EVIL], tags: [EVIL])
    measure(1, EVIL, 5, 1, 100, { 0 => 4 })
    paths = ["/done", "/classes", linked("/done", CGI.escapeHTML(EVIL).then { |text| Regexp.escape(text) }),
             "/class?class=#{CGI.escape(EVIL)}", "/done?class=#{CGI.escape(EVIL)}"]
    paths.each do |path|
      body = get(path).body
      refute_match(/<img|<script>/, body, path)
      assert_includes body, CGI.escapeHTML(EVIL), path
    end
    assert_includes [200, 404], get("/job?done=%FF%00&jid=x").status
  end
end

# From a worker, through a file, to the page.
class WebDoneFromAWorkerTest < SqliteCase
  include Worked

  def storage = @storage ||= open_storage

  def run_worker(jobs, **settings)
    Ringspun.run do |machine|
      @worker = new_worker(**settings)
      strand = machine.spin { worker.run }
      yield_until("all are done") { sleep(0.002) && worker.counts.values.sum == jobs }
      worker.stop
      strand.join
    end
  end

  def page(path)
    path, query = path.split("?")
    web = @web ||= Jobs::Web.new(storage: storage)
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => query.to_s, "HTTP_HOST" => "localhost" }
    status, _, body = web.call(env)
    [status, CGI.unescapeHTML(body.join.gsub(/<[^>]*>/, " ").gsub(/\s+/, " "))]
  end

  def test_jobs_that_are_done_are_kept_for_as_long_as_the_setting_says
    on("work") { |*| nil }
    on("fail") { |*| raise "no" }
    texts = [entry("work", jid: "a"), entry("fail", jid: "b", retry: false), entry("work", jid: "c", wrapped: "Inner")]
    storage.push(texts.map { |text| Storage::Push.new(queue: "default", entry: text) })
    run_worker(3, keep_done: 60)
    done = storage.done(0, 9)
    assert_equal [%w[a c], %w[Inner Worked::Task]], [jids(done).sort, done.map(&:class_name).sort]
    assert_equal [true] * 2, done.map { |one| one.seconds.between?(0, 30) }
    status, text = page("/done?class=Inner")
    assert_equal 200, status
    assert_match(/1 to 1 .*Inner "work" default .+ m?s .+ m?s ago #{worker.node} /, text)
    assert_empty storage.check
  end

  def test_none_is_kept_by_default
    on("work") { |*| nil }
    storage.push([Storage::Push.new(queue: "default", entry: entry("work"))])
    run_worker(1)
    assert_equal [[], 1], [storage.done(0, 9), storage.stats[:processed]]
    assert_match(/There are none/, page("/done").last)
  end
end
