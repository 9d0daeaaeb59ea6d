# frozen_string_literal: true

require_relative "test_helper"

# How the runs in bench/results are made, and the table that has each Ruby.
class BenchTest::KeepingTest < Minitest::Test
  RUBIES = { "default" => ["ruby 3.3.8", {}, []], "newer" => ["ruby 3.4.5", { "RINGSPUN_RUBY" => "/opt/ruby" }, []],
             "yjit" => ["ruby 3.4.5 +YJIT", { "RINGSPUN_RUBY" => "/opt/ruby" }, ["--yjit"]] }.freeze

  def setup
    @folder = Dir.mktmpdir
    @calls = []
    @keeping = Bench::Keeping.new(results: @folder, parts: File.join(@folder, "parts"), run: method(:measured))
  end

  def teardown = FileUtils.remove_entry(@folder)

  # What bin/bench would write.
  def measured(environment, _bench, *options)
    *options, _, path = options
    @calls << [environment, options]
    ruby = options.include?("--yjit") ? "yjit" : environment.empty? ? "default" : "newer"
    names = options.include?("--only") ? options[options.index("--only") + 1].split(",") : %w[pipe queue]
    File.write(path, JSON.generate(run_of(names, RUBIES.fetch(ruby).first))) unless names == %w[nothing]
    false # a contender has failed
  end

  def run_of(names, ruby, **seconds)
    results = names.map { |name| BenchTest.result(table(name), **seconds) }
    facts = BenchTest::Facts.usual.then { |usual| usual.with(to_h: { **usual.to_h, ruby: }) }
    JSON.parse(Bench::JsonReport.new(facts, BenchTest.options, results, []).to_s)
  end

  def table(name)
    BenchTest.table(name) do
      title name.capitalize
      %w[threads async ringspun].each { |each| contender(each) {} }
    end.narrowed(backends: %w[uring])
  end

  def kept(name) = JSON.parse(File.read(File.join(@folder, "#{name}.json")))
  def names(data) = data["tables"].map { |table| table["name"] }

  def test_the_rubies_take_turns_table_by_table
    written = @keeping.main_rows(RUBIES.transform_values { |_, *rest| rest })
    assert_equal(%w[main-default main-newer main-yjit], written.map { |path| File.basename(path, ".json") })
    tables = Bench::Options::MAIN_ROWS.map(&:first)
    assert_equal tables.size * 3, @calls.size
    assert_equal [[{}, ["--main", "--only", "switch"]], [{ "RINGSPUN_RUBY" => "/opt/ruby" }, ["--main", "--only", "switch"]],
                  [{ "RINGSPUN_RUBY" => "/opt/ruby" }, ["--main", "--only", "switch", "--yjit"]]], @calls.first(3)
    runs = RUBIES.keys.map { |name| kept("main-#{name}") }
    assert_equal(RUBIES.values.map { |ruby, *| [ruby, tables] }, runs.map { |run| [run["facts"]["ruby"], names(run)] })
  end

  def test_a_few_tables_take_the_place_of_those_that_are_kept
    File.write(File.join(@folder, "ruby-3.3.json"), JSON.generate(run_of(%w[pipe queue], "ruby 3.3.8", ringspun: 7.0)))
    @keeping.tables(%w[pipe])
    assert_equal [[{}, %w[--only pipe --brief --backends uring,epoll]]], @calls
    reals = kept("ruby-3.3")["tables"].to_h { |table| [table["name"], table["rows"][0]["contenders"].last["medians"]["real"]] }
    assert_equal({ "pipe" => 1.0, "queue" => 7.0 }, reals)
    @keeping.tables([])
    assert_equal %w[--all --brief --backends uring,epoll], @calls.last.last
  end

  def test_what_does_not_go_together_is_refused
    File.write(File.join(@folder, "ruby-3.3.json"), JSON.generate(run_of(%w[pipe queue], "ruby 3.2.1")))
    assert_match(/of another Ruby/, assert_raises(Bench::Invalid) { @keeping.tables(%w[pipe]) }.message)
    assert_match(/--only nothing .* measured nothing/, assert_raises(Bench::Invalid) { @keeping.tables(%w[nothing]) }.message)
    assert_equal "ruby 3.2.1", kept("ruby-3.3")["facts"]["ruby"]
  end

  def test_each_ruby_has_columns_in_text_json_and_markdown
    runs = RUBIES.values.map { |ruby, *| run_of(%w[pipe queue], ruby, async: 0.5, ringspun: ruby.include?("YJIT") ? 0.25 : 1.0) }
    runs[1]["tables"].pop
    paths = runs.each_index.map { |index| File.join(@folder, "#{index}.json") }
    paths.zip(runs) { |path, run| File.write(path, JSON.generate(run)) }
    out = StringIO.new
    all = File.join(@folder, "all.json")
    BenchTest.tables
    status = Bench::Command.new(["--from", paths.join(","), "--json", all, "--report", @folder], out:, err: out).run
    assert_equal 0, status, out.string
    cells = out.string[/^Pipe .*/].strip.split(/ {2,}/)
    assert_equal ["Pipe", "500 ms (async)", "1.00 s", "2.00 x", "500 ms (async)", "1.00 s", "2.00 x", "500 ms (async)", "250 ms",
                  "0.50 x"], cells
    refute_match(/^Queue/, out.string, "one has not measured it")
    data = Bench::Report.read(all)
    assert_equal ["Ruby 3.3.8", "Ruby 3.4.5", "Ruby 3.4.5 with YJIT"], Bench::Report::Run.all(data).map(&:name)
    page = Bench::Documents.new(Bench::Documents.run, data).to_h.fetch("docs/performance.md")
    assert_includes page, "| Pipe | #{cells.drop(1).join(" | ")} |"
    assert_match(/^\| Ruby 3\.4\.5: Pipe \| async \| 500 ms \| 1\.00 s \| 2\.00 x \|$/, page)
  end
end
