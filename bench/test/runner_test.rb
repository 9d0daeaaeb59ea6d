# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::RunnerTest < Minitest::Test
  # Answers what it is told, and remembers who ran.
  class FakeSampler
    attr_reader :turns

    def initialize(answers = {})
      @answers = answers
      @turns = []
    end

    def sample(_table, contender, size)
      @turns << [contender.name, size]
      @answers.fetch(contender.name) { BenchTest.sample }
    end
  end

  def test_each_round_runs_every_contender_of_every_row_once
    sampler = run_rounds(BenchTest.usual_table, samples: 3)
    rounds = sampler.turns.each_slice(8).to_a
    assert_equal 3, rounds.size
    everyone = %w[threads async ringspun floor].product([{ groups: 1 }, { groups: 2 }]).sort_by(&:to_s)
    rounds.each do |round|
      assert_equal everyone, round.sort_by(&:to_s)
      assert_equal 2, round.chunk_while { |one, other| one.last == other.last }.count, "a row is not together"
    end
  end

  def test_the_order_is_shuffled_anew_in_each_round_and_follows_the_seed
    rounds = run_rounds(BenchTest.usual_table, samples: 3, seed: 1).turns.each_slice(8).to_a
    assert_operator rounds.uniq.size, :>, 1
    assert_equal rounds.flatten(1), run_rounds(BenchTest.usual_table, samples: 3, seed: 1).turns
    refute_equal rounds.flatten(1), run_rounds(BenchTest.usual_table, samples: 3, seed: 2).turns
  end

  def test_who_cannot_run_is_asked_once_and_is_never_silently_missing
    table = BenchTest.usual_table
    sampler = FakeSampler.new("async" => { "unavailable" => "no gem" }, "ringspun" => { "failed" => "wrong result" })
    result = runner(sampler, samples: 5).run(table)
    assert_equal(2, sampler.turns.count { |name, _| name == "async" })
    assert_equal "n/a (no gem)", result.rows.first.remark(table.contender("async"))
    assert_equal ["usual N=1 ringspun FAILED: wrong result", "usual N=2 ringspun FAILED: wrong result"], result.failures
  end

  # In the main rows, which are to be done in minutes.
  def test_who_takes_long_is_asked_once
    table = BenchTest.usual_table
    long = BenchTest.sample.merge("real" => 5.0)
    { 4.0 => 2, 6.0 => 6, nil => 6 }.each do |limit, count|
      sampler = FakeSampler.new("threads" => long)
      Bench::Runner.new(samples: 3, quick: true, seed: 1, sampler:, long_sample: limit).run(table)
      assert_equal [count, 6], %w[threads async].map { |who| sampler.turns.count { |name, _| name == who } }, limit
    end
    sampler = FakeSampler.new("threads" => long, "ringspun" => long)
    Bench::Runner.new(samples: 3, quick: true, seed: 1, sampler:, long_sample: 4.0, long_roles: %i[peer]).run(table)
    assert_equal [2, 6], %w[threads ringspun].map { |who| sampler.turns.count { |name, _| name == who } }, "of peers alone"
  end

  def test_a_row_may_leave_a_contender_out_with_a_reason
    table = BenchTest.table do
      row "big", skipped: { threads: "too many" }
      contender("threads") {}
    end
    result = runner(FakeSampler.new, samples: 1).run(table)
    assert_equal "n/a (too many)", result.rows.first.remark(table.contenders.first)
    assert_empty result.failures
  end

  def test_ringspun_is_left_out_on_all_backends_at_once
    table = BenchTest.table do
      row "big", skipped: { ringspun: "too many" }
      contender("ringspun") {}
    end
    result = runner(FakeSampler.new, samples: 1).run(table)
    assert_equal(["n/a (too many)"] * 3, table.contenders.map { |contender| result.rows.first.remark(contender) })
  end

  def test_sizes_of_row_contender_and_quick_override_one_another
    table = BenchTest.table do
      size times: 100, groups: 1, bytes: 9
      quick times: 10
      row "N=2", groups: 2
      contender("threads", size: { bytes: 3 }) {}
    end
    assert_equal [["threads", { times: 100, groups: 2, bytes: 3 }]], run_rounds(table, samples: 1).turns
    assert_equal [["threads", { times: 10, groups: 2, bytes: 3 }]], run_rounds(table, samples: 1, quick: true).turns
  end

  def test_system_calls_are_counted_in_the_first_round_only
    table = BenchTest.table do
      size times: 1
      syscalls :times, few: 1, many: 2
      contender("threads") {}
    end
    counter = Class.new { def per_operation(*) = 0.25 }.new
    result = runner(FakeSampler.new, samples: 2, syscalls: counter).run(table)
    assert_equal([0.25, nil], result.rows.first.samples(table.contenders.first).map { |sample| sample["syscalls"] })
    assert_equal 0.25, result.rows.first.value("threads", :syscalls)
  end

  def test_a_row_may_stay_out_of_quick
    table = BenchTest.table do
      row "N=1"
      row "N=2", quick: false
      contender("ringspun") {}
    end
    assert_equal(%w[N=1 N=2], table.narrowed(backends: %w[uring]).rows.map(&:label))
    quick = table.narrowed(backends: %w[uring], quick: true)
    assert_equal([%w[N=1], %w[ringspun]], [quick.rows.map(&:label), quick.contenders.map(&:name)])
    assert_equal 3, table.contenders.size
  end

  # Tracing is slow, so the other sizes may be smaller there; the difference is divided by what was done in it.
  def test_system_calls_are_those_of_the_operations_between_two_sizes
    table = BenchTest.table do
      syscalls(:times, few: 2, many: 12, groups: 5) { |times:, groups:| times * groups }
      contender("threads") {}
    end
    counter = Class.new(Bench::Syscalls) do
      def self.available? = true
      def count(_table, _contender, size) = 1_000 + size.fetch(:times) * size.fetch(:groups) * 3
    end
    assert_in_delta 3.0, counter.new.per_operation(table, table.contenders.first, { times: 9, groups: 50 })
  end

  def test_quick_counts_no_system_calls
    table = BenchTest.table do
      syscalls :times, few: 1, many: 2
      contender("threads") {}
    end
    counter = Class.new { def per_operation(*) = raise("not asked for") }.new
    result = runner(FakeSampler.new, samples: 1, quick: true, syscalls: counter).run(table)
    assert_nil result.rows.first.value("threads", :syscalls)
  end

  # Each waits for the other.
  def test_samples_run_beside_each_other
    table = BenchTest.table { %w[threads async].each { |name| contender(name) {} } }
    begun = { "threads" => Thread::Queue.new, "async" => Thread::Queue.new }
    sampler = sampler_of do |contender|
      other = (begun.keys - [contender.name]).first
      begun.fetch(contender.name) << true
      begun.fetch(other).pop(timeout: 30) or raise "#{other} has not begun"
      BenchTest.sample
    end
    row = runner(sampler, samples: 1, at_once: 2).run(table).rows.first
    assert_equal [1, 1], table.contenders.map { |contender| row.samples(contender).size }
  end

  def test_those_of_a_table_that_counts_the_time_of_a_server_do_not
    table = BenchTest.table do
      columns :backend
      %w[threads async].each { |name| contender(name) {} }
    end
    threads = []
    runner(sampler_of { (threads << Thread.current) && BenchTest.sample }, samples: 1, at_once: 2).run(table)
    assert_equal [Thread.current] * 2, threads
  end

  def test_one_that_raises_ends_the_others
    table = BenchTest.table { %w[threads async].each { |name| contender(name) {} } }
    begun, ended = Array.new(2) { Thread::Queue.new }
    sampler = sampler_of do |contender|
      if contender.name == "async"
        begun.pop
        raise "no more"
      end
      begin
        begun << true
        sleep
      ensure
        ended << true
      end
    end
    assert_equal "no more", assert_raises(RuntimeError) { runner(sampler, samples: 1, at_once: 2).run(table) }.message
    assert_equal 1, ended.size
  end

  private

  def sampler_of(&block)
    Object.new.tap { |sampler| sampler.define_singleton_method(:sample) { |_table, contender, _size| block.call(contender) } }
  end

  def runner(sampler, samples:, seed: 1, quick: false, **rest)
    Bench::Runner.new(samples:, quick:, seed:, sampler:, **rest)
  end

  def run_rounds(table, **)
    FakeSampler.new.tap { |sampler| runner(sampler, **).run(table) }
  end
end
