# frozen_string_literal: true

require "jobs_helper"
require "support/web_case"

# What the pages show, and what their buttons do.
class WebPagesTest < WebCase
  PAGES = %w[/ /live /queues /busy /busy?part=1 /scheduled /retries /dead /quarantine /processes /cron /search /job
             /queue?place=queue&queue=default].freeze

  def test_there_may_be_nothing
    (PAGES - ["/job"]).each { |path| assert_equal 200, get(path).status, path }
    assert_equal [404, 404, 404], %w[/job /job?jid=x /nowhere].map { |path| get(path).status }
  end

  def test_the_dashboard
    push("a", enqueued_at: Time.now.to_f - 7200)
    put(:retry, "b")
    memory.counters(twice: 3)
    assert_match(/Processed 1 Failed 1 Enqueued 1 .*Scheduled 0 Retries 1 Dead 0 Ran twice 3/, text("/"))
    assert_match(/default 1 2 h .*Jobs are kept in the memory of process #{Process.pid}\./, text("/live"))
    assert_equal 2, get("/live").body.scan("<svg").size
    refute_match(/<html/, get("/live").body)
  end

  def test_queues_are_paused_and_go_on
    push
    assert_match(/default 1 .* waiting nobody Pause/, text("/queues"))
    assert_equal ["/queues", "1 paused."], told(press("/queues?queue=default", act: "pause"))
    assert_equal %w[default], memory.paused
    assert_match(/default 1 .* paused nobody Resume/, text("/queues"))
    assert_match(/Paused: no worker/, text("/queue?place=queue&queue=default"))
    assert_equal ["/queue", "1 going on."], told(press("/queues?queue=default&back=queue", act: "resume"))
    assert_empty memory.paused
  end

  def test_who_serves_a_queue
    push
    memory.announce("one", { "queues" => %w[other], "patterns" => [] }, [])
    assert_match(/default 1 .* waiting nobody Pause/, text("/queues"))
    memory.announce("two", { "queues" => %w[default], "patterns" => [] }, [])
    memory.announce("three", { "queues" => [], "patterns" => %w[*] }, [])
    @web = nil
    assert_match(/default 1 .* running 2 Pause/, text("/queues"))
  end

  def test_a_queue_is_listed_page_by_page_and_cleared
    60.times { |number| push("j#{number}", args: [number, "<b>"]) }
    assert_match(/1 to 50 of 60/, first = text("/queue?place=queue&queue=default"))
    assert_match(/Work 0, "<b>" /, first)
    assert_match(/51 to 60 of 60/, text("/queue?place=queue&queue=default&from=50"))
    assert_equal ["/queue", "60 deleted."], told(press("/all?place=queue&queue=default", act: "clear"))
    assert_equal 0, memory.stats[:enqueued]
  end

  def test_jobs_of_a_queue_are_killed_and_deleted
    %w[a b c].each { |jid| push(jid) }
    a, b, = keys(page = "/queue?place=queue&queue=default")
    assert_equal ["/queue", "1 among the dead now."], told(press("/jobs?place=queue&queue=default&at=0", act: "kill", key: a))
    assert_equal ["/queue", "1 deleted."], told(press("/jobs?place=queue&queue=default&at=0", act: "delete", key: b))
    assert_equal [1, [1, 0, 0, 1]], [keys(page).size, sizes]
  end

  def test_what_is_scheduled_runs_now
    push(at: Time.now.to_f + 3600)
    assert_match(/Work 1 in 59 min default/, text("/scheduled"))
    pressed = press("/jobs?place=scheduled", act: "retry", key: keys("/scheduled"))
    assert_equal ["/scheduled", "1 enqueued."], told(pressed)
    assert_equal [1, 0, 0, 0], sizes
  end

  def test_retries_and_the_dead_with_their_reasons
    put(:retry, "a", error_class: "IOError", error_message: "closed <stream>", retry_count: 3)
    put(:dead, "b", error_class: "Fatal", error_message: "x" * 1000)
    put(:dead, "c")
    assert_match(/in 16 min default IOError: closed <stream> \(tried again: 3\)/, text("/retries"))
    dead = text("/dead")
    assert_match(/no error is told .*Fatal: x{290,300}…/, dead)
    assert_equal 2, keys("/dead").size
    told(press("/jobs?place=retries", act: "kill", key: keys("/retries")))
    assert_equal ["/dead", "3 enqueued."], told(press("/jobs?place=dead", act: "retry", key: keys("/dead")))
    assert_equal [3, 0, 0, 0], sizes
  end

  # An entry without an error may have died in another way, and been put here by another program.
  def test_who_was_killed_by_hand
    put(:dead, "a")
    put(:dead, "b", retry_count: 2)
    assert_equal ["no error is told", "no error is told (tried again: 2)"], errors_of("/dead").reverse
    push("c")
    told(press("/jobs?place=queue&queue=default&at=0", act: "kill", key: keys("/queue?place=queue&queue=default")))
    put(:retry, "d", error_class: "IOError", error_message: "closed")
    told(press("/jobs?place=retries", act: "kill", key: keys("/retries")))
    assert_equal ["IOError: closed", "killed by hand"], errors_of("/dead").first(2).sort
    put(:retry, "e")
    assert_equal ["no error is told"], errors_of("/retries")
  end

  def errors_of(path)
    cells = get(path).body.scan(%r{data-label="Error">(.*?)</td>}m).flatten
    cells.map { |cell| CGI.unescapeHTML(cell.gsub(/<[^>]*>/, "")).strip }
  end

  def test_one_of_a_kind
    push
    memory.announce(NODE, { "concurrency" => 1, "busy" => 1 }, [["s1", "default", entry("r"), Time.now.to_f]])
    assert_match(/ 1 process /, text("/processes"))
    assert_match(/ 1 queue /, text("/queues"))
    assert_match(/ 1 job, the longest first/, text("/busy"))
    assert_match(/ All 1 job /, text("/queue?place=queue&queue=default"))
    memory.announce("other:1:bb", {}, [])
    @web = nil # which remembers for a second
    assert_match(/ 2 processes /, text("/processes"))
  end

  # What a table's columns are is read by those who do not see them.
  def test_columns_have_names_that_say_what_they_are
    push
    put(:retry, "b")
    memory.announce(NODE, { "concurrency" => 1, "busy" => 1 }, [["s1", "default", entry("r"), Time.now.to_f]])
    heads = %w[/ /queues /busy /processes /retries /queue?place=queue&queue=default].to_h do |path|
      [path, get(path).body.scan(%r{<th scope="col"[^>]*>([^<]*)</th>}).flatten]
    end
    assert_equal [], heads.values.flatten & ["Do", "Answer", ""]
    assert_equal ["Actions"] * 3, heads.values_at("/queues", "/busy", "/processes").map(&:last)
    assert_includes heads["/processes"], "Storage answers in"
    cells = get("/processes").body.scan(/data-label="([^"]*)"/).flatten
    assert_equal heads["/processes"], cells
  end

  # A link must have something to be clicked, and a title something to be read.
  def test_queues_whose_names_cannot_be_seen
    names = [" ", "\t \n", "\u00a0", "\u200b"]
    names.each { |name| push("in #{name.inspect}", queue: name) }
    names.each do |name|
      address = "/queue?place=queue&amp;queue=#{CGI.escape(name).gsub("+", "%20")}"
      linked = get("/queues").body[%r{<a href="#{Regexp.escape(address)}">([^<]*)</a>}, 1]
      assert_equal name.inspect, CGI.unescapeHTML(linked.to_s).encode("UTF-8")
      page = "/queue?place=queue&queue=#{CGI.escape(name)}"
      assert_includes text(page), "Queue #{name.inspect}"
      assert_match(/aria-label="Pause &quot;/, get("/queues").body)
      assert_equal ["/queue", "1 deleted."], told(press("/all?place=queue&queue=#{CGI.escape(name)}", act: "clear"))
    end
  end

  def test_all_retries_at_once
    3.times { |number| put(:retry, "j#{number}") }
    memory.push([Storage::Push.new(queue: "default", entry: "no job", at: 5)])
    assert_equal ["/scheduled", "0 enqueued."], told(press("/all?place=scheduled", act: "retry"))
    assert_equal ["/retries", "3 enqueued."], told(press("/all?place=retries", act: "retry"))
    assert_equal [3, 1, 0, 0], sizes
  end

  def test_who_presses_second_is_told
    put(:dead, "a")
    put(:dead, "b")
    both = keys("/dead")
    assert_equal "1 deleted.", told(press("/jobs?place=dead", act: "delete", key: both.first)).last
    assert_equal "1 deleted. Not there any more: 1. Somebody else was faster.",
                 told(press("/jobs?place=dead", act: "delete", key: both)).last
    assert_equal "Not there any more: 1. Somebody else was faster.",
                 told(press("/jobs?place=dead", act: "retry", key: both.first)).last
    memory.pause("default")
    assert_match(/Somebody else/, told(press("/queues?queue=default", act: "pause")).last)
    assert_match(/Somebody else/, told(press("/cancel?node=x&jid=a", act: "cancel")).last)
    assert_match(/Somebody else/, told(press("/processes?node=x", act: "stop")).last)
  end

  # Others have left meanwhile, or many have come in front.
  def test_a_job_is_found_that_is_not_where_it_was
    300.times { |number| push("j#{number}") }
    key = keys("/queue?place=queue&queue=default&from=250").first
    memory.fetch(NODE, ["default"], 200)
    assert_equal "1 deleted.", told(press("/jobs?place=queue&queue=default&at=250", act: "delete", key:)).last
    refute_includes memory.list("default", 0, 300).map { |job| JSON.parse(job.entry)["jid"] }, "j250"
  end

  def test_what_runs_and_what_it_waits_for
    running = ["s1", "default", entry("a", args: [{ "x" => 1 }]), Time.now.to_f - 130]
    info = { "concurrency" => 10, "queues" => %w[default], "ringspun" => "1", "started_at" => Time.now.to_f - 300 }
    memory.announce(NODE, { **info, "waits" => { "s1" => "read on descriptor 9" } }, [running])
    memory.announce("other:2:bb", info.except("ringspun"), [["s2", "default", entry("b"), Time.now.to_f]])
    busy = text("/busy")
    assert_match(/Work \{"x":1\} default 2 min ago read on descriptor 9 Cancel/, busy)
    assert_match(/not told yet Cancel/, busy)
    assert_equal [%w[WAITS], []], [memory.signals(NODE), memory.signals("other:2:bb")]
    assert_equal ["/busy", "1 asked to end."], told(press("/cancel?node=#{NODE}&jid=a", act: "cancel"))
    assert_includes memory.signals(NODE), 'CANCEL:{"jid":"a"}'
    refute_match(/not told yet/, text("/busy?node=#{NODE}"))
    assert_match(/in flight at host:1:aa, since 2 min ago/, text("/job?place=running&node=#{NODE}&jid=a"))
  end

  def test_processes_are_made_quiet_and_stopped
    memory.announce(NODE, { "concurrency" => 10, "queues" => %w[a b], "rss" => 2048, "rtt_us" => 1500, "labels" => ["blue"] }, [])
    assert_match(/host:1:aa blue 0 of 10 a, b 2 MB 1.5 ms unknown Quiet Stop/, text("/processes"))
    assert_equal ["/processes", "1 told to fetch no more jobs."], told(press("/processes?node=#{NODE}", act: "quiet"))
    assert_equal ["/processes", "1 told to stop."], told(press("/processes?node=#{NODE}", act: "stop"))
    assert_equal %w[TSTP TERM], memory.signals(NODE)
  end

  def test_the_page_of_a_job
    trace = ["app.rb:1:in `perform'"]
    put(:retry, "a", error_class: "IOError", error_message: "closed", error_backtrace: trace, tags: ["blue"], created_at: 1.0)
    link = CGI.unescapeHTML(get("/retries").body[%r{href="(/job\?[^"]+)"}, 1])
    page = text(link)
    assert_match(%r{Retries , in 16 min Class Work Id a Queue default Tags blue Created [\d,]+ d ago}, page)
    assert_match(/Error IOError: closed app.rb:1:in `perform'/, page)
    told(press("/jobs?place=retries", act: "retry", key: keys("/retries")))
    assert_match(/It is not there any more.*Look for it everywhere.*retried by hand/, text(link))
    assert_match(/Queue default Class Work/, text("/job?jid=a"))
  end

  def test_the_page_of_a_job_that_is_done
    push
    one = memory.fetch(NODE, ["default"], 1).first
    memory.ack(NODE, [Storage::Ack.new(queue: "default", token: one.token, jid: "a", result: '{"sum":7}', keep_seconds: 60)])
    assert_match(/It is nowhere.*Result \{"sum":7\}/, text("/job?jid=a"))
  end

  def test_a_search_goes_on_where_it_has_ended
    push("x", queue: "other", tags: ["blue"])
    put(:dead, "y", args: ["needle"])
    120.times { |number| push("j#{number}") }
    assert_match(/Looked at 122 jobs: that is all; found 1\. .*Work "needle" Dead/, text("/search?text=needle"))
    assert_match(/found 1\..*Queue other/, text("/search?tag=blue&where=queue"))
    assert_match(/found 0\./, text("/search?tag=blue&where=dead"))
    assert_match(/found 1\./, text("/search?jid=j7"))
    page = get("/search?class=Work")
    assert_match(/so far; found 1\d\d\./, page.body)
    rest = CGI.unescapeHTML(page.body[/href="([^"]+)">Look on/, 1])
    assert_match(/Looked at 122 jobs: that is all; found \d+ more\./, text(rest))
    assert_equal 400, get("/search?class=Work&cursor=nonsense").status
    assert_equal 200, get("/search?class=Work").status
  end

  def test_the_arguments_of_active_job_are_those_of_the_job
    push(class: "ActiveJob::Wrapper", wrapped: "Import", args: [{ "job_class" => "Import", "arguments" => ["a.csv"] }])
    assert_match(/Import "a.csv"/, text("/queue?place=queue&queue=default"))
  end

  def test_mounted_elsewhere_all_links_lead_there
    push
    body = get("/queue", "SCRIPT_NAME" => "/admin/jobs", "QUERY_STRING" => "place=queue&queue=default").body
    links = body.scan(/(?:href|src|action)="([^"]+)"/).flatten - ["#content"]
    assert_empty links.reject { |link| link.start_with?("/admin/jobs/") }
  end

  # --- the storage ---

  def test_the_first_page_of_a_list_reads_only_its_own_entries
    200.times { |number| push("j#{number}", at: 5e9 + number) }
    # The second never passes for which sizes are remembered.
    web.instance_variable_set(:@sampler, Jobs::Web.const_get(:Sampler).new(clock: -> { 0.0 }) { storage })
    get("/")
    storage.calls.clear
    get("/scheduled")
    assert_equal [[:scan, :schedule, 0, 50]], storage.calls
  end

  def test_all_who_look_within_a_second_share_what_was_read
    push
    ticks = 5.0
    sampler = Jobs::Web.const_get(:Sampler).new(clock: -> { ticks }) { storage }
    web.instance_variable_set(:@sampler, sampler)
    1000.times { get("/live") }
    assert_equal({ stats: 1, paused: 1, nodes: 1, time: 1, list: 1 }, storage.calls.map(&:first).tally)
    first = get("/live").body
    ticks += 2
    refute_equal first, get("/live").body
    assert_equal 2, storage.calls.map(&:first).count(:stats)
    assert_operator sampler.line.size, :==, 2
  end

  def test_the_charts_forget_what_is_old
    ticks = 0.0
    storage = Storage::Memory.new(clock: -> { ticks })
    sampler = Jobs::Web.const_get(:Sampler).new(clock: -> { ticks }) { storage }
    400.times do
      ticks += 2
      sampler.last
    end
    assert_operator sampler.line.size, :<=, 152
  end

  # The others get what was read before.
  def test_only_one_waits_for_a_slow_storage
    ticks = 0.0
    asked, may_answer = Array.new(2) { Thread::Queue.new }
    slow = Class.new(Storage::Memory) do
      define_method(:nodes) do |connection: nil|
        asked << true
        may_answer.pop
        super(connection:)
      end
    end.new
    sampler = Jobs::Web.const_get(:Sampler).new(clock: -> { ticks }) { slow }
    may_answer << true
    before = sampler.last
    ticks += 2
    waits = Thread.new { sampler.last }
    2.times { asked.pop }
    assert_equal [before], Array.new(1000) { sampler.last }.uniq(&:object_id)
    may_answer << true
    refute_same before, waits.value
    assert_empty asked
  end

  def test_while_the_storage_is_away_the_page_says_so
    push
    key = keys("/queue?place=queue&queue=default").first
    secret = form_secret
    storage.fault = Jobs::UnavailableError.new("no <b>Redis</b>")
    web.instance_variable_get(:@sampler).forget
    answer = get("/")
    assert_equal [503, "5", "5"], [answer.status, answer["refresh"], answer["retry-after"]]
    assert_includes answer.body, "nothing was done: no &lt;b&gt;Redis"
    pressed = press("/jobs?place=queue&queue=default", secret:, act: "delete", key:)
    assert_equal [503, nil], [pressed.status, pressed["refresh"]]
    storage.fault = Jobs::UnknownOutcomeError.new("gone")
    assert_includes press("/jobs?place=queue&queue=default", secret:, act: "delete", key:).body, "may be done or not: gone"
    storage.fault = nil
    web.instance_variable_get(:@sampler).forget
    assert_equal 200, get("/").status
  end
end
