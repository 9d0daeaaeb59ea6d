# frozen_string_literal: true

require_relative "test_helper"

# Reports that are made of several runs: one of another Ruby, or with a name of its own, stands beside the first.
class BenchTest::RunsTest < Minitest::Test
  # Seconds of each contender => the JSON of a run.
  def run_of(table, ruby: "ruby 3.3.8", name: nil, **seconds)
    facts = BenchTest::Facts.usual.then { |usual| usual.with(to_h: { **usual.to_h, ruby: }) }
    result = BenchTest.result(table, **seconds)
    data = JSON.parse(Bench::JsonReport.new(facts, BenchTest.options, [result], []).to_s)
    name ? data.merge("name" => name) : data
  end

  def table(name = "pipe")
    BenchTest.table(name) do
      row "C=50x2"
      ["threads", "async", *Bench::URING_MACHINE_RINGS.keys, "uringmachine fs", "ringspun"].each { |each| contender(each) {} }
    end.narrowed(backends: %w[uring])
  end

  def read(*runs)
    Dir.mktmpdir do |folder|
      paths = runs.each_with_index.map { |run, index| "#{folder}/#{index}".tap { |path| File.write(path, JSON.generate(run)) } }
      Bench::Report.read(*paths)
    end
  end

  def beside
    nowhere = { "unavailable" => "no Ruby 4" }
    read(run_of(table, uringmachine: nowhere, "uringmachine sqpoll": nowhere, "uringmachine fs": nowhere, ringspun: 2.0),
         run_of(table, ruby: "ruby 4.0.5", uringmachine: 4.0, ringspun: 3.0))
  end

  def test_a_run_on_another_ruby_takes_no_place_of_the_first
    data = beside
    assert_equal(["ruby 3.3.8", "ruby 4.0.5"], [data, *data["others"]].map { |each| each["facts"]["ruby"] })
    assert_equal ["Ruby 3.3.8", "Ruby 4.0.5"], Bench::Report::Run.all(data).map(&:name)
    refute read(run_of(table), run_of(table("other")))["others"], "tables of one Ruby are put together"
    assert_equal(%w[Exq], read(run_of(table), run_of(table, name: "Exq"))["others"].map { |each| each["name"] })
    assert_match(/\A\d{4}-\d\d-\d\d\z/, data["date"])
  end

  def test_it_has_columns_of_its_own_and_ratios_within_itself
    part = Bench::Report.new(beside).to_s[%r{<section id="pipe">.*?</section>}m]
    heads = part.scan(%r{<th scope="col">(.*?)</th>}).flatten
    assert_equal ["Ruby 4.0.5", "Ruby 4.0.5: to the best peer"], heads.last(2)
    cells = part[%r{<th scope="row">ringspun</th>(.*?)</tr>}, 1].scan(%r{<td[^>]*>(.*?)</td>}).flatten
    assert_equal ["2.00 s", "", "", "2.00 x", "3.00 s", "3.00 x"], cells
    cells = part[%r{<th scope="row">uringmachine</th>(.*?)</tr>}, 1].scan(%r{<td[^>]*>(.*?)</td>}).flatten
    assert_equal ['<a href="#missing">n/a</a>', "4.00 s"], cells.values_at(0, 4)
    assert_equal 3, part.scan("<figcaption>").size, "what was published, and what each has measured"
  end

  def test_a_seed_says_once_what_has_no_figures
    seed = Bench::Report::Seed.all.first
    runs = Bench::Report::Run.all(beside)
    names = "uringmachine fs, uringmachine, uringmachine sqpoll"
    assert_equal ["No figures on Ruby 3.3.8 of #{names}: no Ruby 4."], seed.remarks(runs)
    assert_equal runs, seed.tables.first.measured_by(runs)
    assert_empty seed.tables.last.measured_by(runs)
  end

  def test_scripts_of_a_seed_have_a_section_of_their_own
    scripts = run_of(table("script"), ruby: "ruby 4.0.5 +YJIT", ringspun: 3.0).merge("scripts_of" => "UringMachine")
    data = read(run_of(table), scripts)
    html = Bench::Report.new(data).to_s
    assert_match(%r{<h2 id="[\w-]+">UringMachine: its own scripts, Ruby 4.0.5 with YJIT</h2>\s*<section id="script">}, html)
    assert_includes Bench::MarkdownReport.new(Bench::Report::Run.all(data).last.data).all, "| **3.00 s** |"
  end

  # Half a spread on either side of the median.
  def test_samples_that_were_not_kept_have_a_spread
    data = run_of(table, ringspun: 2.0, threads: 1.9)
    data["tables"][0]["rows"][0]["contenders"].each { |each| each.merge!("samples" => [], "spread" => 0.1) }
    row = Bench::Report::Standing.new(data).row("pipe", "C=50x2")
    assert_equal [1.9, 2.1], [row.subject.low, row.subject.high]
    refute row.subject.apart?(row.named("threads"))
    assert row.subject.apart?(row.named("async"))
  end

  # What stands in the place of a seed's own contender is that contender.
  def test_no_ratio_is_of_ringspun_against_ringspun
    peers = Bench::Report::Seed.all.flat_map(&:tables).flat_map(&:lines).map(&:peer).uniq
    assert_empty peers.grep(/ringspun|pool enqueuer|\Adrop-in/)
    BenchTest.tables.each { |each| assert_empty each.peers.map(&:name).grep(/ringspun/), each.name }
    exq = Bench::Documents.run.fetch("others").find { |run| run["name"] == "Exq" }
    contenders = exq["tables"][0]["rows"].map { |row| row["contenders"].to_h { |each| [each["name"], each] } }
    assert_equal [%w[peer peer peer subject]] * 5, contenders.map { |each| each.values.map { |one| one["role"] } }
    ratios = contenders.map { |each| 1 / each.fetch("ringspun, group commit")["peer_ratios"]["real_ns"] }
    assert_equal [1.29, 1.43, 2.26, 2.86, 2.79], ratios.map { |ratio| ratio.round(2) }
  end
end
