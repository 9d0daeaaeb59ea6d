# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::OptionsTest < Minitest::Test
  def test_defaults
    options = parse
    assert_equal [:default, 3, :run], [options.mode, options.samples, options.action]
    assert_equal %w[pipe], options.only
    assert_nil options.json
    assert_equal %w[pipe mutex_cpu mutex_io], parse("--all").only
  end

  # What README's first command runs is to be done in minutes.
  def test_without_a_choice_the_main_rows_run_with_all_peers_and_ringspun_once
    BenchTest.tables
    options = Bench::Options.parse([])
    assert_predicate options, :main?
    assert_equal 12, options.only.size
    echo = BenchTest.tables.find { |each| each.name == "echo" }
    narrowed = echo.narrowed(**options.narrowing("echo"))
    assert_equal [%w[N=64], ["async", "eventmachine", "floor", "io-stream", "ring floor", "ringspun", "threads"]],
                 [narrowed.rows.map(&:label), narrowed.contenders.map(&:name).grep_v(/uringmachine/).sort]
    chosen = echo.narrowed(**Bench::Options.parse(["--backends", "uring,epoll"]).narrowing("echo")).contenders.map(&:name)
    assert_includes chosen, "ringspun epoll"
    [%w[--all], %w[--only echo], %w[--scaling]].each { |more| refute_predicate Bench::Options.parse(more), :main? }
    assert_refused(/--main and --all exclude each other/, "--main", "--all")
  end

  # `bin/bench --help` prints the comment at its top, for which no Ruby is needed.
  def test_the_help_of_the_script_has_every_option
    script = File.read(File.join(Bench::ROOT, "bin/bench"))[/\A.*?\n\n/m]
    options = parse.help.scan(/^ +(?:-\w, )?(--[a-z-]+)/).flatten - %w[--help]
    assert_empty(options.reject { |option| script.include?(option) })
  end

  def test_modes
    assert_equal 1, parse("--quick").samples
    assert_equal 5, parse("--full").samples
    assert_predicate parse("--quick"), :quick?
    assert_predicate parse("--full"), :full?
  end

  # An option of the command line alone would not reach what contenders start.
  def test_yjit_is_refused_where_this_ruby_would_not_hand_it_on
    with_rubyopt(nil) { assert_refused(/--yjit needs a Ruby with YJIT, .* `bin.setup --yjit` finds such a Ruby/, "--yjit") }
    refute_predicate parse, :yjit?
  end

  def test_children_with_gems_of_their_own_get_no_other_option_of_ruby
    assert_equal "--yjit", Bench::Yjit.option("-rbundler/setup --yjit -W0")
    assert_nil Bench::Yjit.option("-rbundler/setup")
    with_rubyopt("-w") { assert_nil Bench::Yjit.option }
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
    assert_equal %w[uring], parse.backends
    assert_equal %w[uring epoll sqpoll], parse("--all").backends
    assert_equal %w[uring epoll], parse("--all", "--quick").backends
    assert_equal %w[epoll sqpoll], parse("--quick", "--backends", "epoll,sqpoll,epoll").backends
  end

  def test_the_main_rows_are_a_row_of_each_of_twelve_tables
    BenchTest.tables
    options = Bench::Options.parse(["--main", "--quick", "--backends", "uring,epoll"])
    assert_equal 12, options.only.uniq.size
    options.only.each do |name|
      table = BenchTest.tables.find { |each| each.name == name }.narrowed(**options.narrowing(name))
      assert_equal 1, table.rows.size, name
      assert_includes table.contenders.map(&:name), "ringspun", name
    end
    assert_nil parse("--all").narrowing("pipe").fetch(:rows)
    assert_equal %w[pipe], parse("--main", "--only", "pipe,mutex_io").only
    assert_equal %w[pipe], parse("--only", "pipe,mutex_io", "--main").only
    assert_refused(/no main row is in the tables/, "--main", "--only", "mutex_io")
    assert_refused(/--main and --scaling exclude each other/, "--main", "--scaling")
  end

  def test_how_long_all_tables_take_is_told_from_the_run_that_is_kept
    medians = [{ "real" => 9.3 }, {}, { "real" => 20_000.0 }].map { |values| { "medians" => values } }
    data = { "tables" => [{ "rows" => [{ "contenders" => medians }] }] }
    assert_equal ["7 minutes", "2.0 hours"], [3, 55].map { |samples| Bench::ExpectedTime.new(data).words(samples) }
    assert_operator Bench::ExpectedTime.new.of_all(3), :>, 600
  end

  def test_contenders_take_names_and_globs
    pipe = BenchTest.tables.find { |table| table.name == "pipe" }
    names = lambda do |*globs|
      pipe.narrowed(**parse("--backends", "uring,epoll", "--contender", *globs).narrowing("pipe")).contenders.map(&:name)
    end
    assert_equal ["async", "ringspun fs", "ringspun", "ringspun epoll"], names.call("ringspun*,async")
    assert_equal %w[threads], names.call("threads")
    err = StringIO.new
    assert_equal 2, Bench::Command.new(%w[--only pipe --contender thread], out: StringIO.new, err:).run
    assert_match(/no table here has a contender thread/, err.string)
  end

  def test_scaling_is_of_the_tables_whose_work_can_grow
    BenchTest.tables
    scaled = BenchTest.tables.filter_map(&:scaled)
    assert_equal %w[switch_by_strands parked_by_strands echo_by_connections timers_by_strands interrupt_by_strands
                    idle_by_connections cluster_by_processes pg_small_by_callers pg_rows_by_rows jobs_enqueue_by_callers
                    jobs_cores_by_processes], scaled.map(&:name)
    scaled.each { |table| refute_empty table.narrowed(backends: %w[uring], quick: true).rows }
    switch = scaled.first
    most = switch.rows.last
    assert_equal ["30,000", [:threads, :async, :"bare transfer"]], [most.label, most.skipped.keys]
    threads, subject = %w[threads ringspun].map { |name| switch.size_of(most, switch.contender(name), quick: true) }
    assert_equal [{ strands: 30_000, yields: 40_000 }] * 2, [threads, subject]
    err = StringIO.new
    assert_equal 2, Bench::Command.new(%w[--only pipe --scaling], out: StringIO.new, err:).run
    assert_match(/nothing in pipe grows/, err.string)
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

  def test_a_page_gets_all_its_tables_or_none
    Dir.mktmpdir do |folder|
      page = File.join(folder, "performance.md")
      assert_equal page, parse("--only", "pipe", "--markdown", page).markdown
      File.write(page, "<!-- bench:table pipe, mutex_io -->\n| all |\n<!-- /bench:table -->\n")
      assert_refused(/a place for mutex_io, which --only leaves out/, "--only", "pipe", "--markdown", page)
      assert_equal page, parse("--all", "--markdown", page).markdown
      [%w[--scaling], %w[--all --contender ringspun], []].each do |few|
        assert_refused(/places for whole tables/, *few, "--markdown", page)
      end
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

  def with_rubyopt(options)
    kept = ENV.fetch("RUBYOPT", nil)
    ENV["RUBYOPT"] = options
    yield
  ensure
    ENV["RUBYOPT"] = kept
  end

  def parse(*arguments) = BenchTest.options(*arguments)

  def assert_refused(message, *arguments)
    error = assert_raises(Bench::Invalid) { parse(*arguments) }
    assert_match message, error.message
  end
end
