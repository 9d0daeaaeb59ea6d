# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::CountersTest < Minitest::Test
  # As `perf stat`: runs a program, acknowledges orders, and writes what it has counted. As instructions it counts the orders.
  PERF = <<~RUBY
    #!#{RbConfig.ruby}
    path = ARGV[ARGV.index("-o") + 1] if ARGV.include?("-o")
    control = ARGV.grep(/--control=fd:(\\d+),(\\d+)/) { [Integer($1), Integer($2)] }.first
    program = ARGV.include?("--") ? ARGV.drop(ARGV.index("--") + 1) : ["true"]
    given = control ? [12, 13] : []
    pid = Process.spawn(*program, 3 => (path ? 3 : 1), **given.to_h { |number| [number, number] })
    given.each { |number| IO.for_fd(number).close }
    orders = 0
    if control
      asked, answer = control.zip(%w[r w]).map { |number, mode| IO.for_fd(number, mode) }
      Thread.new do
        while asked.gets
          orders += 1
          answer.syswrite("ack\\n")
        end
      end
    end
    Process.wait(pid)
    File.write(path, <<~TEXT) if path
      # started on a day

      \#{orders * 10},,instructions:u,100,100.00,,
      <not supported>,,cache-misses,0,100.00,,
      3,,context-switches,100,100.00,,
    TEXT
    exit($?.exitstatus)
  RUBY

  def test_the_region_is_counted_and_each_event_that_there_is
    sample = with_perf { sample_of_fixture }
    assert_equal({ "instructions" => 20.0, "context_switches" => 3.0 }, sample["counters"])
    assert_equal [2.0, nil, 0.3], %i[instructions cache_misses context_switches].map { |name| Bench::Metric[name].read(sample) }
  end

  def test_without_operations_they_are_those_of_the_region
    assert_in_delta 20.0, Bench::Metric[:instructions].read({ "counters" => { "instructions" => 20.0 } })
    assert_nil Bench::Metric[:instructions].read({})
  end

  def test_a_program_in_c_is_counted_whole
    table = BenchTest.table { floor("stream.c") { |**| ["pipe", 1, 1, 1] } }
    sample = with_perf { Bench::Sampler.new(counters: Bench::Counters.new).sample(table, table.floor, {}) }
    assert_equal({ "instructions" => 0.0, "context_switches" => 3.0 }, sample["counters"])
  end

  def test_a_table_shows_them_where_they_are_asked_for
    table = BenchTest.table { columns :real_ns }
    assert_equal %i[real_ns], table.narrowed(backends: []).columns
    assert_equal %i[real_ns instructions cache_misses context_switches], table.narrowed(backends: [], counters: true).columns
  end

  def test_where_perf_is_missing_the_option_is_refused
    Dir.mktmpdir do |folder|
      error = with_path(folder) do
        assert_raises(Bench::Invalid) { Bench::Options.parse(%w[--counters], table_names: %w[pipe]) }
      end
      assert_match(/install linux-perf/, error.message)
    end
    with_perf { assert_predicate Bench::Options.parse(%w[--counters], table_names: %w[pipe]), :counters? }
  end

  private

  def with_perf
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "perf"), PERF, perm: 0o755)
      with_path("#{folder}:#{ENV.fetch("PATH")}") { yield }
    end
  end

  def with_path(path)
    kept = ENV.fetch("PATH")
    ENV["PATH"] = path
    yield
  ensure
    ENV["PATH"] = kept
  end

  # Loaded anew, whatever tests have required it before.
  def sample_of_fixture
    load File.join(BenchTest::FIXTURES, "behaviours.rb")
    table = Bench.tables.find { |candidate| candidate.name == "behaviours" }
    contender = table.contender("right")
    Bench::Sampler.new(counters: Bench::Counters.new).sample(table, contender, table.size_of(table.rows.first, contender))
  ensure
    Bench.tables.delete(table)
  end
end
