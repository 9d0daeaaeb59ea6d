# frozen_string_literal: true

require_relative "test_helper"

# What the repository says of its speed, and the run that it says it of.
class BenchTest::DocumentsTest < Minitest::Test
  def documents = @documents ||= Bench::Documents.kept

  def file(path) = File.read(File.join(Bench::ROOT, path))

  def test_they_are_those_of_the_run_that_is_kept
    documents.to_h.each { |path, content| assert_equal file(path), content, "rake bench:docs" }
  end

  def test_the_readme_has_six_rows_with_a_loss_and_a_chart_that_fits_a_screen
    rows = file("README.md")[/<!-- bench:headline -->\n(.*?)\n\n/m, 1].lines.drop(2)
    assert_equal 6, rows.size
    assert_operator rows.grep(/we lose/).size, :>=, 1
    rows.each { |row| assert_equal 1, row.scan(/\*\*[\d.,]+ /).size, row }
    chart = documents.to_h.fetch("docs/costs.svg")
    assert_operator Integer(chart[/height="(\d+)"/, 1], 10), :<, 500
    assert_includes chart, "prefers-color-scheme: dark"
    assert_includes file("README.md"), "docs/costs.svg"
  end

  def test_pictures_of_the_report_stand_in_the_docs
    parts = %w[report table growth].product(%w[light dark phone]).map { |part, size| "docs/images/bench/#{part}-#{size}.png" }
    parts.each { |path| assert_operator File.size(File.join(Bench::ROOT, path)), :>, 5_000, "rake bench:screenshots" }
    assert_includes file("bench/README.md"), parts[1]
  end

  # Those of another form or measure are in the page of a report.
  def test_the_page_has_a_place_for_every_table
    places = Bench::MarkdownReport.places(file("docs/performance.md"))
    tables = BenchTest.tables.map(&:name)
    assert_equal tables.sort - %w[interrupt jobs_seed jobs_watched jobs_due ticker], places.sort
    assert_equal tables - Bench::Documents.run.fetch("tables").map { |table| table["name"] }, []
  end

  # References are nobody's peers, and what other callers would take instead is no peer of strands alone.
  def test_losses_of_each_kind_of_callers_stand_where_others_are_faster
    table = BenchTest.table("calls") do
      title "Calls"
      contender("threads") {}
      contender("ringspun", backends: %w[uring]) {}
      beside("courier") {}
      reference("single") {}
    end
    loss = lambda do |**seconds|
      standing(BenchTest.result(table, **seconds)).clear_losses.map { |each| [each.title, each.ratio.round(1)] }
    end
    assert_empty loss.call(threads: 2.0, ringspun: 1.0, courier: 1.5, single: 0.1)
    assert_equal [["Calls", 3.0], ["Calls, courier", 2.0]], loss.call(threads: 2.0, ringspun: 6.0, courier: 4.0, single: 0.1)
    assert_empty loss.call(threads: [2.0, 4.0], ringspun: 1.0, courier: [3.0, 5.0]), "samples overlap"
  end

  def test_every_line_of_every_seed_has_a_counterpart
    lines = Bench::Report::Seed.all.flat_map(&:tables).flat_map { |table| table.lines.map { |line| [table, line] } }
    assert_equal [55, 41, 15, 19], Bench::Report::Seed.all.map { |seed| seed.tables.sum { |table| table.lines.size } }
    lines.each do |table, line|
      ours = BenchTest.tables.find { |each| each.name == table.name }
      assert ours, "no table #{table.name}"
      assert_includes ours.rows.map(&:label), line.row
      assert_empty [line.peer, *table.beside] - ours.contenders.map(&:name), "#{table.name} #{line.label}"
    end
  end

  private

  def standing(*results)
    text = Bench::JsonReport.new(BenchTest::Facts.usual, BenchTest.options, results, []).to_s
    Bench::Report::Standing.new(JSON.parse(text))
  end
end
