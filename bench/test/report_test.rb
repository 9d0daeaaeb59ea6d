# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::ReportTest < Minitest::Test
  def setup
    @table = BenchTest.usual_table("total <= 2.2 x floor")
    @result = BenchTest.result(@table, threads: [4.0, 5.0, 6.0], async: 2.0, ringspun: 1.0, floor: 0.5)
  end

  def test_text_has_the_columns_of_benchmark_and_the_ratios
    assert_equal <<~TABLE, "#{text(@result).split("\n\n")[1].strip}\n"
      N=1           user    system     total          real  total/floor  real/peer  total/peer  spread
      threads   5.000000  0.000000  5.000000  (  5.000000)        10.00       2.50        2.50     40%
      async     2.000000  0.000000  2.000000  (  2.000000)         4.00       1.00        1.00       -
      ringspun  1.000000  0.000000  1.000000  (  1.000000)         2.00       0.50        0.50       -
      floor     0.500000  0.000000  0.500000  (  0.500000)         1.00       0.25        0.25       -
    TABLE
  end

  def test_who_has_no_numbers_has_a_line_with_the_reason
    result = BenchTest.result(@table, async: { "unavailable" => "no gem" }, ringspun: { "failed" => "wrong result" })
    assert_match(/^async +n\/a \(no gem\)$/, text(result))
    assert_match(/^ringspun +FAILED: wrong result$/, text(result))
  end

  def test_ratios_without_floor_or_peer_are_dashes
    result = BenchTest.result(@table, floor: { "unavailable" => "no compiler" }, async: { "unavailable" => "-" },
                                      threads: { "unavailable" => "-" })
    assert_match(/^ringspun +1\.000000 .* - +- +- +-$/, text(result))
  end

  def test_target_list
    out = StringIO.new
    Bench::TextReport.new(out).targets([@result])
    assert_match(/^  met +usual +total <= 2\.2 x floor +2\.00 x$/, out.string)
    assert_match(/^  1 met$/, out.string)
  end

  def test_a_terminal_shows_bars_and_colours
    terminal = StringIO.new.tap { |out| def out.tty? = true }
    report = Bench::TextReport.new(terminal)
    report.table(@result)
    assert_includes terminal.string, "real, shorter is better\e[0m\nthreads   #{"█" * 40}\nasync     #{"█" * 16}\nringspun  " \
                                     "#{"█" * 8}\nfloor     ████\n"
    report.targets([@result])
    assert_includes terminal.string, "\e[32mmet      \e[0m"
    refute_match(/█|\e/, text(@result))
    assert_equal ["a  #{"█" * 40}", "b  ▏"], Bench::Terminal.new(terminal).bars({ "a" => 1000, "b" => 1 })
    assert_empty Bench::Terminal.new(terminal).bars({ "a" => 0 })
  end

  def test_opening_says_when_it_is_not_for_judgement_or_the_machine_is_busy
    assert_includes opening("--quick"), "NOT FOR JUDGEMENT"
    refute_includes opening, "JUDGEMENT"
    assert_includes opening("--backends", "epoll"), "backends  `ringspun epoll` is on epoll\n"
    busy = BenchTest::Facts.usual.with(warning: "load average is 9")
    assert_includes opening(facts: busy), "WARNING: load average is 9"
  end

  def test_json_has_every_sample
    json = JSON.parse(Bench::JsonReport.new(BenchTest::Facts.usual, BenchTest.options("--full"), [@result], ["busy"]).to_s)
    assert_equal ["full", 5, true, ["busy"]], json.values_at("mode", "samples", "for_judgement", "warnings")
    threads = json["tables"][0]["rows"][0]["contenders"][0]
    assert_equal([4.0, 5.0, 6.0], threads["samples"].map { |sample| sample["user"] })
    assert_equal [5.0, 10.0], [threads["medians"]["total"], threads["floor_ratio"]]
    assert_equal({ "sentence" => "total <= 2.2 x floor", "met" => true, "measured" => "2.00 x" }, json["tables"][0]["targets"][0])
  end

  def test_markdown_is_one_table
    lines = markdown.lines.map(&:chomp)
    assert_equal "|  | threads | async | ringspun | floor | to the floor | to the best peer |", lines[0]
    assert_equal "| Usual work, N=1 | 5.00 s | 2.00 s | **1.00 s** | 500 ms | 2.00 x CPU | 0.50 x |", lines[2]
    assert_includes lines.last, "a CPU, 2 cores"
    refute_includes lines.last, "JUDGEMENT"
    assert_includes markdown("--quick"), "NOT FOR JUDGEMENT"
  end

  # What one of ours costs more has no peer to stand beside; what a peer alone has not run is for the full report.
  def test_markdown_shows_rows_that_are_ours_alone
    table = BenchTest.table do
      row "usual"
      row "ours alone", skipped: { threads: "no" }
      contender("threads") {}
      contender("ringspun") {}
    end.narrowed(backends: %w[uring])
    result = Bench::Result.new(table)
    result.rows.product(table.contenders) do |row, contender|
      why = row.row.skipped[contender.declared_as]
      row.add(contender, why ? { "unavailable" => why } : BenchTest.sample)
    end
    assert_match(/ours alone \| - \| \*\*2\.00 s\*\* \|/, markdown_of(result).to_s)
  end

  def test_markdown_goes_between_the_marks_of_a_page
    other = BenchTest.result(BenchTest.table("other") { contender("ringspun") {} }.narrowed(backends: %w[uring]))
    report = markdown_of(@result, other)
    page = "# Before\n\n<!-- bench:table usual -->\n%s<!-- /bench:table -->\n\n<!-- bench:table other -->\n" \
           "%s<!-- /bench:table -->\nAfter <!-- bench:machine -->\n<!-- bench:machine -->\nx\n<!-- /bench:machine -->\n"
    filled = report.within(format(page, "old \\1\nlines\n", ""))
    assert_equal %w[usual other], Bench::MarkdownReport.places(filled)
    assert_includes filled, "<!-- bench:table usual -->\n|  | threads | async | ringspun | floor | to the floor | to the best "
    assert_includes filled, "<!-- bench:table other -->\n|  | ringspun | to the floor | to the best peer |\n| --- | "
    assert_match(/^<!-- bench:machine -->\nMedian of 3 on a CPU.*everywhere\.\n<!-- /, filled)
    assert_equal filled, report.within(filled)
    assert_equal report.to_s, report.within("a page without marks\n")
    gone = assert_raises(Bench::Invalid) { report.within(filled.sub("other", "other, gone")) }
    assert_equal "the page has a place for gone, which was not run", gone.message
  end

  def test_markdown_shows_epoll_beside_it_and_not_the_third_backend
    table = BenchTest.usual_table(backends: %w[uring epoll sqpoll])
    result = BenchTest.result(table, ringspun: 1.0, "ringspun epoll": 1.5, "ringspun sqpoll": 1.7)
    markdown = markdown_of(result).to_s
    assert_includes markdown, "| ringspun | ringspun epoll | floor |"
    assert_includes markdown, "| **1.00 s** | 1.50 s | 1.00 s |"
    refute_match(/sqpoll|1\.70 s/, markdown)
    assert_match(/^ringspun sqpoll +1\.700000/, text(result))
  end

  def test_a_peer_without_a_number_has_no_column
    table = BenchTest.table do
      contender("threads") {}
      contender("uringmachine") {}
      contender("ringspun") {}
    end
    gone = BenchTest.result(table.narrowed(backends: %w[uring]), uringmachine: { "unavailable" => "no gem" })
    there = BenchTest.result(table.narrowed(backends: %w[uring]))
    headers = [gone, there].map { |one| markdown_of(one).to_s.lines.first }
    assert_equal ["|  | threads | ringspun | to the floor | to the best peer |\n",
                  "|  | threads | uringmachine | ringspun | to the floor | to the best peer |\n"], headers
  end

  def test_markdown_has_each_form_of_uringmachine_and_our_scheduler
    table = BenchTest.table do
      uringmachine {}
      uringmachine_fs {}
      contender("ringspun fs") {}
      contender("ringspun") {}
    end
    result = BenchTest.result(table.narrowed(backends: %w[uring]))
    markdown = markdown_of(result).to_s
    assert_includes markdown.lines.first, "| uringmachine | uringmachine sqpoll | uringmachine fs | ringspun | ringspun fs |"
  end

  def test_a_table_with_a_form_of_its_own_is_for_the_terminal_only
    table = BenchTest.table do
      form :benchee
      contender("sidekiq") {}
    end
    results = [BenchTest.result(table), @result]
    markdown = markdown_of(*results).to_s
    assert_equal markdown_of(@result).to_s, markdown
    refute_includes markdown, "sidekiq"
  end

  def test_a_row_that_not_everyone_runs_is_for_the_terminal_only
    table = BenchTest.table do
      row "all"
      row "one", skipped: { threads: "not asked of it" }
      contender("threads") {}
      contender("ringspun") {}
    end
    result = BenchTest.result(table)
    assert_match(/^one /, text(result))
    refute_includes markdown_of(result).to_s, "one"
  end

  def test_numbers_are_readable
    assert_equal "1,234,567 op/s", Bench::Metric[:rate].brief(1_234_567.2)
    assert_equal "12.3 ns", Bench::Metric[:real_ns].brief(12.31)
    assert_equal "0.45 ns", Bench::Metric[:real_ns].brief(0.45)
    assert_equal "1.23 µs", Bench::Metric[:real_ns].brief(1234.0)
    assert_equal "12.3 ms", Bench::Metric[:real].brief(0.01234)
    assert_equal "1234 s", Bench::Metric[:real].brief(1234.2)
    assert_equal "0.0002 calls", Bench::Metric[:syscalls].brief(0.0002)
    assert_equal "13,366 B", Bench::Metric[:rss_per_strand].brief(13_366)
  end

  def test_metrics_per_operation
    sample = BenchTest.sample(user: 1.0, system: 1.0, real: 4.0, operations: 1000)
    assert_equal([4e6, 2e6, 250.0], %i[real_ns cpu_ns rate].map { |name| Bench::Metric[name].read(sample) })
    assert_nil Bench::Metric[:real_ns].read(BenchTest.sample)
    assert_equal([nil, nil], %i[gc_rate objects].map { |name| Bench::Metric[name].read(sample) })
    noted = sample.merge("notes" => { "gc_real" => 5.0, "allocated" => 2001 })
    assert_equal([200.0, 2.001], %i[gc_rate objects].map { |name| Bench::Metric[name].read(noted) })
    assert_nil Bench::Metric[:real_ns].read(BenchTest.sample(operations: 0))
  end

  private

  def text(result) = StringIO.new.tap { |out| Bench::TextReport.new(out).table(result) }.string

  def opening(*arguments, facts: BenchTest::Facts.usual)
    StringIO.new.tap { |out| Bench::TextReport.new(out).opening(facts, BenchTest.options(*arguments)) }.string
  end

  def markdown(*arguments) = markdown_of(@result, options: BenchTest.options(*arguments)).to_s

  def markdown_of(*results, options: BenchTest.options)
    json = Bench::JsonReport.new(BenchTest::Facts.usual, options, results, []).to_s
    Bench::MarkdownReport.new(JSON.parse(json))
  end
end
