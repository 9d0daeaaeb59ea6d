# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::OptionsTest < Minitest::Test
  def test_defaults
    options = parse
    assert_equal [:default, 3, :run], [options.mode, options.samples, options.action]
    assert_equal %w[pipe mutex_cpu mutex_io], options.only
    assert_nil options.json
  end

  def test_modes
    assert_equal 1, parse("--quick").samples
    assert_equal 5, parse("--full").samples
    assert_predicate parse("--quick"), :quick?
    assert_predicate parse("--full"), :full?
  end

  def test_only_takes_names_and_globs
    assert_equal %w[pipe], parse("--only", "pipe").only
    assert_equal %w[mutex_cpu mutex_io], parse("--only", "mutex_*").only
    assert_equal %w[mutex_io pipe], parse("--only", "mutex_io,pipe,mutex_io").only
  end

  def test_sizes_take_the_place_of_those_of_the_tables
    assert_empty parse.sizes
    assert_equal({ streams: 400, rows: 8 }, parse("--size", "streams=400", "--size", "rows=08").sizes)
    assert_refused(/invalid argument: --size streams/, "--size", "streams")
    table = BenchTest.tables.find { |candidate| candidate.name == "pg_streams" }
    table = table.narrowed(backends: [], sizes: { streams: 400, x: 1 })
    assert_equal({ streams: 400, rows: 500, table: 8_000, strands: 1 },
                 table.size_of(table.rows.first, table.contenders.first, quick: true))
  end

  def test_a_size_that_no_table_has_is_refused
    BenchTest.tables
    err = StringIO.new
    assert_equal 2, Bench::Command.new(%w[--only pg_streams --size strams=1], out: StringIO.new, err:).run
    assert_match(/no table here has a size strams/, err.string)
  end

  def test_backends_are_all_but_the_last_with_quick
    assert_equal %w[uring epoll sqpoll], parse.backends
    assert_equal %w[uring epoll], parse("--quick").backends
    assert_equal %w[epoll sqpoll], parse("--quick", "--backends", "epoll,sqpoll,epoll").backends
  end

  def test_seed_is_kept
    assert_equal 42, parse("--seed", "42").seed
  end

  def test_other_actions
    assert_equal :list, parse("--list").action
    assert_equal :help, parse("--help").action
    assert_includes parse.help, "--markdown FILE"
  end

  def test_what_makes_no_sense_is_refused
    assert_refused(/exclude each other/, "--quick", "--full")
    assert_refused(/no table matches "nope".*pipe/, "--only", "nope")
    assert_refused(/no backend is called "kqueue"; there are: uring, epoll, sqpoll/, "--backends", "kqueue")
    assert_refused(/unexpected argument: pipe/, "pipe")
    assert_refused(/invalid option: --fast/, "--fast")
    assert_refused(/missing argument: --json/, "--json")
    assert_refused(/invalid argument: --seed/, "--seed", "x")
  end

  def test_files_are_checked_before_anything_runs
    assert_refused(/not a directory/, "--json", "/no/such/folder/x.json")
    assert_refused(/it is a directory/, "--markdown", Dir.tmpdir)
  end

  def test_a_page_with_all_rows_does_not_get_a_few
    Dir.mktmpdir do |folder|
      page = File.join(folder, "performance.md")
      assert_equal page, parse("--only", "pipe", "--markdown", page).markdown
      File.write(page, "<!-- bench:table -->\n| all |\n<!-- /bench:table -->\n")
      assert_refused(/a table of all rows/, "--only", "pipe", "--markdown", page)
      assert_equal page, parse("--markdown", page).markdown
    end
  end

  def test_a_bad_option_exits_with_2_and_says_why
    err = StringIO.new
    BenchTest.tables
    assert_equal 2, Bench::Command.new(["--fast"], out: StringIO.new, err:).run
    assert_equal "bench: invalid option: --fast\nTry --help.\n", err.string
  end

  def test_list_names_every_table
    out = StringIO.new
    BenchTest.tables
    assert_equal 0, Bench::Command.new(["--list"], out:, err: StringIO.new).run
    assert_equal(Bench.tables.map(&:name), out.string.lines.map { |line| line.split.first })
  end

  private

  def parse(*arguments) = BenchTest.options(*arguments)

  def assert_refused(message, *arguments)
    error = assert_raises(Bench::Options::Invalid) { parse(*arguments) }
    assert_match message, error.message
  end
end
