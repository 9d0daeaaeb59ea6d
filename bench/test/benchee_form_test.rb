# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::BencheeFormTest < Minitest::Test
  SYSTEM = { "Operating System" => "Linux 6", "CPU Information" => "a CPU", "Number of Available Cores" => 2,
             "Available memory" => "8.00 GB", "Ruby" => "3.3.8", "Redis" => "8.0.2" }.freeze

  # The numbers of the seed at parallelism 6.
  def test_it_is_the_form_of_the_seed
    text = form(named: [253_410, 0.5325, 227_000, 605_000], pool: [227_140, 0.3915, 216_000, 417_000],
                default: [954_020, 0.2191, 951_000, 1_446_130])
    assert_equal <<~TEXT, text
      ### Parallelism 6

      Operating System: Linux 6
      CPU Information: a CPU
      Number of Available Cores: 2
      Available memory: 8.00 GB
      Ruby 3.3.8
      Redis 8.0.2

      Benchmark suite executing with the following configuration:
      warmup: 1 s
      time: 4 s
      memory time: 0 ns
      parallel: 6
      inputs: none specified
      Estimated total run time: 15 s

      Benchmarking default enqueuer...
      Benchmarking named enqueuer...
      Benchmarking pool enqueuer...

      Name                       ips        average  deviation         median         99th %
      pool enqueuer           4.40 K      227.14 μs    ±39.15%      216.00 μs      417.00 μs
      named enqueuer          3.95 K      253.41 μs    ±53.25%      227.00 μs      605.00 μs
      default enqueuer        1.05 K      954.02 μs    ±21.91%      951.00 μs     1446.13 μs

      Comparison:
      pool enqueuer           4.40 K
      named enqueuer          3.95 K - 1.12x slower +26.27 μs
      default enqueuer        1.05 K - 4.20x slower +726.88 μs
    TEXT
  end

  # As in the seed at parallelism 48: one unit for a column, of those that most of its values have.
  def test_a_column_has_one_unit
    text = form(pool: [1_100_000, 0.3056, 1_010_000, 2_350_000], named: [1_119_500, 0.7777, 860_000, 4_060_000],
                default: [4_920_000, 0.1866, 4_650_000, 8_840_000])
    assert_includes text, "named enqueuer          893.26        1.12 ms    ±77.77%        0.86 ms        4.06 ms\n"
    assert_includes text, "default enqueuer        203.25        4.92 ms    ±18.66%        4.65 ms        8.84 ms\n"
    assert_includes text, "named enqueuer          893.26 - 1.02x slower +0.0195 ms\n"
  end

  def test_of_two_units_as_frequent_the_larger_is_taken
    text = form(pool: [900_000, 0.1, 1, 1], named: [1_100_000, 0.1, 1, 1], default: nil)
    assert_match(/^pool enqueuer +1.11 K +0.90 ms/, text)
  end

  def test_who_has_no_numbers_is_named_with_the_reason
    text = form(pool: [900_000, 0.1, 1, 1], named: [1_100_000, 0.1, 1, 1], default: nil)
    assert_includes text, "default enqueuer: FAILED: no answer\n"
    refute_match(/^default enqueuer +\d/, text)
    refute_includes form(pool: nil, named: nil, default: nil), "Comparison"
  end

  def test_the_time_is_that_of_the_samples
    assert_includes form(seconds: 0.5, pool: [1, 1, 1, 1], named: nil, default: nil), "time: 4 s\n"
    assert_includes form(seconds: 0.5, default: [1, 1, 1, 1], named: nil, pool: nil), "time: 0.5 s\n"
  end

  def test_a_report_uses_it_for_a_table_that_says_so
    out = StringIO.new
    report = Bench::TextReport.new(out)
    report.opening(BenchTest::Facts.usual, BenchTest.options)
    report.table(result(pool: [227_140, 0.3915, 216_000, 417_000], named: nil, default: nil))
    assert_includes out.string, "CPU Information: a CPU\nNumber of Available Cores: 2\n"
    assert_match(/^pool enqueuer +4.40 K +227.14 μs/, out.string)
  end

  def test_it_is_measured_once
    sampler = Class.new do
      attr_reader :count

      def sample(*)
        @count = @count.to_i + 1
        BenchTest.sample
      end
    end.new
    Bench::Runner.new(samples: 3, quick: false, seed: 1, sampler:).run(declared)
    assert_equal 3, sampler.count
  end

  private

  def form(...) = Bench::BencheeForm.new(result(...), SYSTEM).to_s

  # Each contender's average, deviation, median and 99th percentile, or nil for one that has failed.
  def result(seconds: nil, **numbers)
    Bench::Result.new(declared).tap do |result|
      result.table.contenders.each do |contender|
        result.rows.first.add(contender, sample(numbers.fetch(contender.name.split.first.to_sym), seconds))
      end
    end
  end

  def sample(numbers, seconds)
    return { "failed" => "no answer" } unless numbers

    notes = %w[average deviation median p99].zip(numbers).to_h
    BenchTest.sample(notes: seconds ? notes.merge("seconds" => seconds) : notes)
  end

  def declared
    BenchTest.table do
      form :benchee
      size seconds: 4
      warm_up seconds: 1
      row "6", callers: 6
      beside("default enqueuer") {}
      beside("named enqueuer") {}
      beside("pool enqueuer") {}
    end
  end
end
