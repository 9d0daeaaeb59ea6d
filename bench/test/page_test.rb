# frozen_string_literal: true

require_relative "test_helper"
require_relative "../../jobs/test/support/browser"

# The page of a report, as text and in a browser.
class BenchTest::PageTest < Minitest::Test
  # Two tables: in one row a peer is better for certain, in the next perhaps.
  def self.results
    @results ||= begin
      first = BenchTest.usual_table("total <= 2.2 x floor", "total <= 0.1 x floor")
      second = BenchTest.table("other") do
        title "Other <work>"
        about "Calls `nothing` & ends."
        contender("threads") {}
        contender("ringspun") {}
      end
      close = BenchTest.table("close") do
        contender("threads") {}
        contender("ringspun") {}
      end
      [BenchTest.result(first, threads: [4.0, 5.0, 6.0], async: 2.0, ringspun: 1.0, floor: { "unavailable" => "no gcc" }),
       BenchTest.result(second.narrowed(backends: %w[uring]), threads: [1.0, 1.1], ringspun: [3.0, 3.2]),
       BenchTest.result(close.narrowed(backends: %w[uring]), threads: [1.0, 1.2], ringspun: [1.1, 1.4])]
    end
  end

  def page(*arguments, results: self.class.results)
    options = BenchTest.options(*arguments)
    Bench::Report.new(JSON.parse(Bench::JsonReport.new(BenchTest::Facts.usual, options, results, ["busy <computer>"]).to_s)).to_s
  end

  def section(page, id) = page[%r{<section id="#{id}">.*?</section>}m]

  def test_each_table_has_a_chart_and_its_numbers
    usual = section(page, "usual")
    assert_equal 6, usual.scan(/class="bar /).size
    assert_equal 2, usual.scan(/class="whisker"/).size
    assert_includes usual, 'aria-label="N=1: threads 5.00 s, async 2.00 s, ringspun 1.00 s. N=2: '
    assert_match(%r{threads</th><td class="number" data-label="real">5.00 s</td><td [^>]+>4.00 s to 6.00 s</td>}, usual)
    assert_match(%r{<th scope="row">floor</th><td class="missing" data-label="real"><a href="#missing">n/a</a></td>}, usual)
    assert_equal %w[83.33% 33.33% 16.67%] * 2, usual.scan(/width="(\d+\.\d+%)"/).flatten
  end

  def test_what_tables_say_of_themselves_is_text
    assert_includes section(page, "other"), "<h3>Other &lt;work&gt;</h3>\n<p>Calls <code>nothing</code> &amp; ends.</p>"
    assert_includes page, "Warning: busy &lt;computer&gt;"
  end

  def test_losses_come_by_their_size_and_say_where_samples_overlap
    losses = section(page, "losses").scan(%r{<tr><td>.*?</tr>}m)
    assert_equal [%w[other 2.95], %w[close 1.14]], losses.map { |loss| [loss[/#(\w+)/, 1], loss[/([\d.]+) x/, 1]] }
    assert_equal [false, true], losses.map { |loss| loss.include?("(samples overlap)") }
    assert_equal [false, true], %w[other close].map { |id| section(page, id).include?('<g class="pale">') }
    assert_includes section(page(results: [self.class.results.first]), "losses"), "It is first in every row"
  end

  # Of UringMachine, with one of its five lines that nobody could run here.
  def test_a_seed_stands_beside_what_was_measured
    table = BenchTest.table("pipe") do
      row "C=50x2"
      ["threads", "async", *Bench::URING_MACHINE_RINGS.keys, "uringmachine fs", "ringspun", "ringspun fs"].each do |name|
        contender(name) {}
      end
    end.narrowed(backends: %w[uring])
    result = BenchTest.result(table, threads: 5.0, uringmachine: { "unavailable" => "no Ruby 4" })
    part = page(results: [result])[%r{<h2 id="group-uringmachine">.*?</section>}m]
    assert_includes part, "<figcaption>As published</figcaption>"
    assert_match(/^Threads     2\.501885   3\.111840   5\.613725 \(  5\.017991\)$/, part)
    assert_match(/^Threads       5\.000000   0\.000000   5\.000000 \(  5\.000000\)$/, part)
    assert_match(/^ringspun fs   1\.000000   0\.000000 /, part)
    refute_includes part, "UM pure   1."
    assert_includes part, "No figures on Ruby 3.3 of uringmachine: no Ruby 4."
    assert_includes part, "A write and its read are two system calls"
  end

  def test_the_forms_of_the_seeds
    forms = Bench::Report::SeedForms
    assert_equal "call:     1234567 executions in 1.0000 seconds", forms::Executions.new.text({ "call" => [1_234_567.4] })
    benchee = forms::Benchee.new.text({ "slow" => [2e6, 0.5, 1.9e6, 3e6], "fast" => [1e6, 0.25, 0.9e6, 2e6] }).lines
    assert_equal ["Name", "fast", "slow"], benchee.map { |line| line[/\w+/] }
    assert_includes benchee[1], "1.00 ms    ±25.00%        0.90 ms        2.00 ms"
    assert_match(/^rate only +2\.00 K +500\.00 μs +- +- +-$/, forms::Benchee.new.text({ "rate only" => [5e5, nil, nil, nil] }))
  end

  def test_work_that_grows_is_drawn_as_lines
    table = BenchTest.table("growing") do
      size strands: 1
      scale "strands", :strands, 10, 1_000, most: { "async" => 10 }
      contender("threads") {}
      contender("async") {}
      contender("ringspun") {}
    end
    scaled = table.scaled.narrowed(backends: %w[uring])
    result = BenchTest.result(scaled, threads: [4.0, 5.0, 6.0])
    part = section(page(results: [result]), "growing_by_strands")
    assert_includes part, 'aria-label="threads: 5.00 s with 10, 5.00 s with 1,000. '
    assert_equal 3, part[/<svg.*?<\/svg>/m].scan("<polyline").size
    assert_includes part, "<h3>growing, by strands</h3>"
    refute_includes page(results: [BenchTest.result(table.narrowed(backends: %w[uring]))]), "As the work grows"
    stopped = page(results: [BenchTest.result(scaled, async: { "unavailable" => "no gem" }, threads: { "failed" => "it hung" })])
    part = section(stopped, "growing_by_strands")
    assert_includes part, '<p class="faint">threads with 10 and 1,000: FAILED: it hung</p>'
    assert_equal 1, stopped.scan("no gem").size
  end

  def test_targets_have_a_verdict
    verdicts = section(page, "targets").scan(%r{<td class="state">(met|missed|not measured)</td>}).flatten
    assert_equal ["not measured"] * 2, verdicts
    there = BenchTest.result(BenchTest.usual_table("total <= 2.2 x floor", "total <= 0.1 x floor"))
    part = section(page(results: [there]), "targets")
    rows = part.scan(%r{<tr class="(\w+)">.*?<td class="state">(\w+)</td>})
    assert_equal [%w[missed missed], %w[met met]], rows, "missed first"
    assert_equal ["all 2", "1 met", "1 missed", "0 open", "0 withdrawn", "0 not measured"],
                 part.scan(/<input[^>]+> ([^<]+)</).flatten
  end

  # In "close" the samples overlap.
  def test_the_verdict_comes_first_and_warnings_are_folded
    top = page[%r{<header>.*?</header>}m]
    assert_equal %w[2 1 1 0 0 2], top.scan(%r{<b>(\d+)</b>}).flatten
    assert_includes top, "<b>2</b> of 4 rows: first"
    assert_match(%r{<details class="warnings">\s*<summary>1 warning about how this was measured</summary>}, top)
    refute_match(/details[^>]* open/, top)
  end

  def test_why_something_has_no_number_is_said_once
    html = page
    assert_equal 1, html.scan("no gcc").size
    assert_includes section(html, "missing"), "<dt>no gcc</dt>\n<dd>floor (Usual work)</dd>"
    refute_includes page(results: [self.class.results.last]), 'href="#missing"'
  end

  def test_more_than_six_lines_are_several_charts
    forms = Array.new(4) { |number| "form #{number}" }
    table = BenchTest.table("growing") do
      size strands: 1
      scale "strands", :strands, 10, 100
      %w[threads async sidekiq].each { |name| contender(name) {} }
      contender("ringspun") {}
      forms.each { |name| beside(name) {} }
      bare("bare") {}
    end
    part = section(page(results: [BenchTest.result(table.scaled.narrowed(backends: %w[uring]))]), "growing_by_strands")
    charts = part.scan(%r{<figure>(?:<figcaption>(.*?)</figcaption>)?.*?aria-label="(.*?)"}m)
    assert_equal ["Beside others", "Beside its other forms"], charts.map(&:first)
    names = charts.map { |_, words| words.scan(/(?:\A|\. )([\w ]+):/).flatten }
    assert_equal [%w[ringspun threads async sidekiq bare], ["ringspun", *forms]], names
    colours = part.scan(/class="line (variant n\d)"/).flatten.uniq
    assert_equal 4, colours.size
  end

  def test_every_table_of_the_bench_is_in_a_group_of_the_contents
    data = Bench::Documents.run
    runs = Bench::Report::Run.all(data)
    groups = Bench::Report::Contents.new(runs, Bench::Report::Seed.all).groups
    refute_includes groups.map(&:title), "Other work"
    own = data.fetch("tables").map { |table| table["name"] }
    assert_equal own.sort, (groups.flat_map(&:tables).map(&:name) & own).sort
    assert_equal groups.map(&:id).uniq, groups.map(&:id)
  end

  def test_a_quick_run_says_what_it_is
    assert_includes page("--quick"), "NOT FOR JUDGEMENT"
    refute_includes page, "NOT FOR JUDGEMENT"
  end

  def test_it_needs_nothing_else
    refute_match(/<(?:script|link|img|iframe)|url\(|@import|src=/, page)
  end

  def test_it_is_written_from_the_json_of_an_earlier_run
    Dir.mktmpdir do |folder|
      json = File.join(folder, "run.json")
      File.write(json, Bench::JsonReport.new(BenchTest::Facts.usual, BenchTest.options, self.class.results, []).to_s)
      BenchTest.tables
      out = StringIO.new
      assert_equal 0, Bench::Command.new(["--from", json, "--report", "#{folder}/a/b"], out:, err: $stderr).run
      assert_equal "wrote #{folder}/a/b/index.html\n", out.string
      assert_includes File.read("#{folder}/a/b/index.html"), "Usual work"
      later = BenchTest.result(BenchTest.table("later") { contender("ringspun") {} }.narrowed(backends: %w[uring]))
      File.write("#{folder}/later", Bench::JsonReport.new(BenchTest::Facts.usual, BenchTest.options, [later], []).to_s)
      assert_equal(%w[usual other close later], Bench::Report.read(json, "#{folder}/later")["tables"].map { |each| each["name"] })
      File.write(list = "#{folder}/list", "[]")
      refusals = { ["--from", "#{folder}/none"] => /cannot read the JSON of a run from .*none: No such file/,
                   ["--from", __FILE__] => /cannot read the JSON of a run/, ["--from", list] => /cannot read the JSON of a run/,
                   ["--from", json, "--report", json] => /it is no directory/ }
      refusals.each do |arguments, message|
        err = StringIO.new
        assert_equal 2, Bench::Command.new(arguments, out:, err:).run
        assert_match message, err.string
      end
    end
  end

  def test_what_has_changed_since_an_earlier_run
    run = lambda do |ours, epoll|
      result = BenchTest.result(BenchTest.usual_table(backends: %w[uring epoll]), ringspun: ours, "ringspun epoll": epoll)
      Bench::JsonReport.new(BenchTest::Facts.usual, BenchTest.options, [result], []).to_s
    end
    Dir.mktmpdir do |folder|
      File.write("#{folder}/old", run.call([1.0, 1.2], [2.0, 2.1]))
      File.write("#{folder}/new", run.call([2.0, 2.4], [2.1, 2.2]))
      out = StringIO.new
      arguments = ["--from", "#{folder}/new", "--compare", "#{folder}/old", "--report", folder]
      assert_equal 0, Bench::Command.new(arguments, out:, err: $stderr).run
      assert_includes out.string, "Compared with #{folder}/old: 0 faster, 2 slower, 2 the same within what their samples " \
                                  "lie apart\n  2.00 x  1.10 s -> 2.20 s  Usual work, N=1: ringspun\n"
      part = section(File.read("#{folder}/index.html"), "comparison")
      assert_includes part, 'aria-label="Usual work, N=1: ringspun: before 1.10 s, now 2.20 s. Usual work, N=2: ringspun: '
      assert_equal [4, 2], [part.scan(/class="bar /).size, part.scan(/2\.00 x/).size]
      assert_equal 2, Bench::Command.new(["--compare", "#{folder}/none"], out:, err: StringIO.new).run
    end
  end

  def test_who_is_interrupted_has_what_was_done
    BenchTest.tables
    tables = %w[one two].map { |name| BenchTest.table(name) { contender("ringspun") {} }.narrowed(backends: %w[uring]) }
    Dir.mktmpdir do |folder|
      [[[tables.first], /wrote .*run.json\nwrote .*index.html\n\z/],
       [[], /WARNING: interrupted after 0 of 2 tables/]].each do |done, last|
        out = StringIO.new
        command = Bench::Command.new(["--json", "#{folder}/run.json", "--report", folder, "--markdown", "#{folder}/page.md"],
                                     out:, err: StringIO.new)
        command.define_singleton_method(:selected) { tables }
        runner = Object.new
        runner.define_singleton_method(:run) { |table| done.include?(table) ? BenchTest.result(table) : raise(Interrupt) }
        command.define_singleton_method(:runner) { runner }
        assert_equal 130, command.run
        assert_match last, out.string
      end
      assert_equal ["interrupted after 1 of 2 tables"], JSON.parse(File.read("#{folder}/run.json"))["warnings"].grep(/inter/)
      refute_path_exists "#{folder}/page.md"
    end
  end

  # What README's first command prints and writes, with one row that nobody could measure.
  def test_a_row_that_failed_takes_nothing_from_the_others
    BenchTest.tables
    tables = %w[one two].map { |name| BenchTest.table(name) { contender("ringspun") {} }.narrowed(backends: %w[uring]) }
    Dir.mktmpdir do |folder|
      out = StringIO.new
      command = Bench::Command.new(["--json", "#{folder}/run.json", "--report", folder, "--markdown", "#{folder}/page.md"],
                                   out:, err: StringIO.new)
      command.define_singleton_method(:selected) { tables }
      runner = Object.new
      samples = { "one" => { "failed" => "it hung" }, "two" => 1.0 }
      runner.define_singleton_method(:run) { |table| BenchTest.result(table, ringspun: samples.fetch(table.name)) }
      command.define_singleton_method(:runner) { runner }
      assert_equal 1, command.run
      assert_match(/^ringspun +FAILED: it hung$.*^ringspun +1\.0.*^.*one.*ringspun FAILED: it hung$/m, out.string)
      assert_equal %w[run.json index.html page.md], out.string.scan(/^wrote (.*)$/).flatten.map { |path| File.basename(path) }
      assert_match(%r{^These were main rows\. `bin/bench --all` runs all \d+ tables}, out.string)
      assert_equal %w[one two], JSON.parse(File.read("#{folder}/run.json"))["tables"].map { |table| table["name"] }
      assert_match(/FAILED: it hung/, File.read("#{folder}/index.html"))
    end
  end

  # With everything unfolded.
  def test_no_table_of_the_kept_report_is_wider_than_the_page
    browser = Browser.new
    html = Bench::Report.new(Bench::Documents.run).to_s
    browser.tab(->(_) { [200, { "content-type" => "text/html; charset=utf-8" }, [html]] }) do
      [400, 1280].each do |width|
        browser.resize(width, 900)
        browser.go("/")
        browser.page.execute("document.querySelectorAll('details').forEach((each) => each.open = true)")
        assert_equal width, browser.page.evaluate("document.documentElement.scrollWidth")
        wide = "[...document.querySelectorAll('table')].filter((each) => each.scrollWidth > each.parentElement.clientWidth)" \
               ".map((each) => each.closest('section').id)"
        assert_empty browser.page.evaluate(wide), width
      end
      browser.page.execute("document.querySelector('#show-open').click()")
      shown = "[...document.querySelectorAll('#targets tbody tr')].filter((row) => row.checkVisibility())" \
              ".map((row) => row.className)"
      assert_equal %w[open], browser.page.evaluate(shown).uniq
    end
  ensure
    browser&.close
  end

  def test_in_a_browser
    browser = Browser.new
    html = page
    browser.tab(->(_) { [200, { "content-type" => "text/html; charset=utf-8" }, [html]] }) do
      [360, 1200].product(%w[light dark]).each do |width, scheme|
        browser.resize(width, 900)
        browser.prefer(scheme)
        browser.go("/")
        assert_equal width, browser.page.evaluate("document.documentElement.scrollWidth"), "#{width} #{scheme}"
        rights = "[...document.querySelectorAll('svg text')].map((text) => text.getBoundingClientRect().right)"
        assert_operator browser.page.evaluate(rights).max, :<=, width
        assert_empty browser.axe, "#{width} #{scheme}"
      end
      assert_equal 3, browser.page.evaluate("document.querySelectorAll('section svg').length")
      assert_empty browser.complaints
    end
  ensure
    browser&.close
  end
end
