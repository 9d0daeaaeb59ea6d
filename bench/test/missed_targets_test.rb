# frozen_string_literal: true

require_relative "test_helper"

# What is said of each target that the kept run misses.
class BenchTest::MissedTargetsTest < Minitest::Test
  Missed = Bench::MissedTargets

  def standing = @standing ||= Bench::Report::Standing.new(Bench::Documents.run)

  def test_each_that_the_kept_run_misses_has_a_word
    missed = standing.tables.to_h { |table| [table.name, table.targets.select { |target| target.state == :missed }] }
    assert_empty(missed.flat_map { |name, targets| targets.map { |each| [name, each.sentence, each.measured].join("\t") } },
                 "say in bench/missed_targets.tsv why it is withdrawn, or what is to be tried next")
  end

  # A run that was kept before may know targets that the table no longer states.
  def test_each_line_is_of_a_target_that_a_table_states
    stated = (BenchTest.tables + standing.tables).flat_map { |table| table.targets.map { |each| [table.name, each.sentence] } }
    said = Missed.all.map { |reason| [reason.table, reason.sentence] }
    assert_equal said.uniq, said
    assert_empty said - stated
    Missed.all.each { |reason| assert_includes Missed::WORDS, reason.word }
    assert_empty(Missed.all.select { |reason| reason.text.to_s.size < 10 })
  end

  def test_a_report_counts_and_tells_them
    reason = Missed.all.find { |each| each.word == "withdrawn" && each.sentence == "total <= 0.40 x async at N=50" }
    table = BenchTest.table(reason.table) do
      row "N=50"
      ["threads", "async", "ringspun"].each { |each| contender(each) {} }
      targets reason.sentence, "total <= 0.1 x threads", "total <= 9 x threads", "total <= 1 x uringmachine"
    end.narrowed(backends: %w[uring])
    result = BenchTest.result(table)
    data = JSON.parse(Bench::JsonReport.new(BenchTest::Facts.usual, BenchTest.options, [result], []).to_s)
    verdict = Bench::Report::Verdict.new(Bench::Report::Standing.new(data))
    assert_equal "Of 4 targets 1 are met and 2 missed: 1 withdrawn for a reason, 0 left with the next idea, 1 without a word. " \
                 "1 not measured.", verdict.targets_in_words
    assert_equal reason.text, data["tables"][0]["targets"][0]["withdrawn"]
    assert_includes Bench::Report.new(data).to_s, "<td>#{ERB::Util.h(reason.text)}</td>"
    out = StringIO.new
    Bench::TextReport.new(out).targets([result])
    assert_match(/^  withdrawn +#{reason.table} .*  #{reason.text}$/, out.string)
    assert_includes out.string, "  1 withdrawn, 1 missed, 1 met, 1 not measured\n"
  end

  def test_the_page_of_the_kept_run_lists_them
    page = File.read(File.join(Bench::ROOT, "docs/performance.md"))[/<!-- bench:targets -->\n(.*?)<!-- /m, 1]
    counts = Bench::Report::Verdict.new(standing).targets
    assert_equal counts.values_at(:open, :withdrawn), %w[open withdrawn].map { |word| page.scan(" | #{word} | ").size }
  end
end
