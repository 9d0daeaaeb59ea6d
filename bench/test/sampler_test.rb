# frozen_string_literal: true

require_relative "test_helper"
require "timeout"

class BenchTest::SamplerTest < Minitest::Test
  def self.table
    @table ||= begin
      require File.join(BenchTest::FIXTURES, "behaviours.rb")
      # Not one of the real tables.
      Bench.tables.delete(Bench.tables.find { |table| table.name == "behaviours" })
    end
  end

  def test_a_sample_has_times_operations_and_notes
    sample = sample("right")
    assert_kind_of Float, sample["real"]
    assert_equal 10, sample["operations"]
    assert_equal({ "parked" => 7 }, sample["notes"])
  end

  def test_every_sample_has_a_process_of_its_own
    pids = 2.times.map { sample("fresh")["notes"]["parked"] }
    assert_equal 3, [*pids, Process.pid].uniq.size
  end

  def test_a_wrong_result_is_a_failure
    assert_equal({ "failed" => "wrong result: done is 9, not 10" }, sample("wrong"))
  end

  def test_a_missing_peer_is_a_remark_and_a_missing_subject_a_failure
    assert_match(/cannot load such file -- ringspun_bench/, sample("absent")["unavailable"])
    assert_match(/cannot load such file -- ringspun_bench/, sample("ringspun")["failed"])
    assert_match(/cannot load such file -- ringspun_bench/, sample("ringspun epoll")["failed"])
    assert_equal "not on this machine", sample("unable")["unavailable"]
  end

  def test_the_parent_prepares_each_size_and_that_of_its_warm_up
    prepared = []
    table = BenchTest.table do
      warm_up rows: 1
      beforehand { |rows:| prepared << rows }
      floor("stream.c") { |**| ["pipe", 1, 1, 1] }
    end
    sample = Bench::Sampler.new.sample(table, table.floor, { rows: 5 })
    assert sample["real"] || sample["unavailable"], sample["failed"]
    assert_equal [5, 1], prepared
  end

  def test_what_the_parent_cannot_prepare_is_a_remark
    table = BenchTest.table do
      beforehand { |**| raise Bench::Unavailable, "no server" }
      floor("stream.c") { |**| [] }
    end
    assert_equal({ "unavailable" => "no server" }, Bench::Sampler.new.sample(table, table.floor, {}))
  end

  def test_two_samplers_prepare_one_after_the_other
    inside, leave = [], Thread::Queue.new
    most = 0
    table = BenchTest.table do
      beforehand do |**|
        inside << Thread.current
        most = [most, inside.size].max
        leave.pop
        inside.delete(Thread.current)
        raise Bench::Unavailable, "no server"
      end
      floor("stream.c") { |**| [] }
    end
    threads = Array.new(2) { Thread.new { Bench::Sampler.new.sample(table, table.floor, {}) } }
    Thread.pass until threads.all?(&:stop?)
    2.times { leave << true }
    threads.each(&:join)
    assert_equal 1, most
  end

  # The fixture has a Ringspun whose machines are refused, as a host may do.
  def test_a_backend_that_the_host_refuses_is_a_remark
    assert_equal({ "unavailable" => "no uring here" }, sample_refused("ringspun"))
    assert_equal({ "unavailable" => "no uring here" }, sample_refused("ringspun sqpoll"))
    assert_equal({ "backend" => "epoll", "sqpoll" => nil }, sample_refused("ringspun epoll")["notes"])
  end

  def test_exceptions_and_crashes_are_failures_with_a_reason
    assert_match(/\AArgumentError: something broke \(behaviours.rb:\d+\)\z/, sample("raising")["failed"])
    assert_match(/never called measure/, sample("unmeasured")["failed"])
    assert_match(/\Akilled by signal KILL/, sample("crashing")["failed"])
  end

  def test_a_contender_that_hangs_is_stopped
    assert_equal "no answer within 1 s", sample("hanging", time_limit: 1.0)["failed"]
  end

  def test_a_limit_grows_with_the_load
    assert_equal [1.0, 1.0, 10.0, 20.0, 1.0], [0.1, 2.0, 20.0, 900.0, nil].map { |load| Bench::Load.factor(load, processors: 2) }
    assert_kind_of Float, Bench::Load.average
    table = self.class.table
    contender = table.contender("hanging")
    sampler = Bench::Sampler.new(time_limit: 0.25, load: -> { 4.0 })
    assert_equal "no answer within 1 s", sampler.sample(table, contender, table.size_of(table.rows.first, contender))["failed"]
  end

  # What the bench prepares itself, such as a server, may break as well: the other rows go on.
  def test_what_breaks_before_a_sample_fails_that_sample_alone
    table = BenchTest.table do
      contender("threads") {}
      beforehand { |**| raise IOError, "no disk" }
    end
    assert_equal({ "failed" => "IOError: no disk" }, Bench::Sampler.new.sample(table, table.contenders.first, {}))
  end

  def test_what_a_contender_leaves_running_is_ended
    Tempfile.create do |lock|
      ENV["BENCH_LOCK"] = lock.path
      assert_equal({ "done" => 10 }, sample("leaving")["proof"])
      assert_equal 0, Timeout.timeout(10) { lock.flock(File::LOCK_EX) }
    ensure
      ENV.delete("BENCH_LOCK")
    end
  end

  def test_nothing_is_left_in_the_scratch_directory
    Dir.mktmpdir do |directory|
      kept = ENV.fetch("TMPDIR", nil)
      ENV["TMPDIR"] = directory
      sample("right")
      assert_empty Dir.children(directory)
    ensure
      ENV["TMPDIR"] = kept
    end
  end

  def test_uringmachine_runs_on_the_ruby_that_is_named
    with_ruby_4(nil) { assert_match(/\Aset RINGSPUN_RUBY_4 to a Ruby 4/, sample("uringmachine")["unavailable"]) }
    Dir.mktmpdir do |directory|
      ruby = File.join(directory, "ruby")
      File.write(ruby, %(#!/bin/sh\nWHICH_RUBY=4 exec #{RbConfig.ruby} "$@"\n), perm: 0o755)
      with_ruby_4(ruby) { assert_equal({ "parked" => "4" }, sample("uringmachine")["notes"]) }
    end
  end

  def test_the_probe_names_each_library
    assert_equal %w[async concurrently eventmachine io-event io-stream pg ringspun sidekiq], Bench::Sampler.new.probe.keys.sort
  end

  private

  def with_ruby_4(ruby)
    kept = ENV.fetch("RINGSPUN_RUBY_4", nil)
    ENV["RINGSPUN_RUBY_4"] = ruby
    yield
  ensure
    ENV["RINGSPUN_RUBY_4"] = kept
  end

  def sample_refused(name)
    require File.join(BenchTest::FIXTURES, "refused.rb")
    table = Bench.tables.find { |candidate| candidate.name == "refused" }
    Bench::Sampler.new.sample(table, table.contender(name), {})
  ensure
    Bench.tables.delete(table)
    $LOADED_FEATURES.delete(File.join(BenchTest::FIXTURES, "refused.rb"))
  end

  def sample(name, time_limit: 60.0)
    table = self.class.table
    contender = table.contender(name)
    Bench::Sampler.new(time_limit:).sample(table, contender, table.size_of(table.rows.first, contender))
  end
end
