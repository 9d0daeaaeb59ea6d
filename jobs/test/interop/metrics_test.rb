# frozen_string_literal: true

require "support/interop_case"
require "support/sidekiq_web"
require "sidekiq/component"
require "sidekiq/job_retry"
require "sidekiq/metrics/query"
require "sidekiq/metrics/tracking"

# Sidekiq's page of metrics shows how our jobs went.
class InteropMetricsTest < InteropCase
  Measure = Ringspun::Jobs::Storage::Measure

  # In UTC, 2026-11-25 08:05:30.
  NOW = Time.utc(2026, 11, 25, 8, 5, 30)
  MINUTE = NOW.to_i / 60

  def storage = Ringspun::Jobs.storage

  def query = RealSidekiq.on(url) { |pool| yield Sidekiq::Metrics::Query.new(pool:, now: NOW) }

  # What the real one keeps of the same runs, under the same keys, for as long.
  def test_it_is_what_sidekiq_writes
    runs = [[0.004, nil], [0.021, nil], [0.9, nil], [400.0, nil], [0.1, IOError.new]]
    theirs = RealSidekiq.on(url) { |pool| written { tracker_of(runs, pool).flush(NOW) } }
    histogram = { 0 => 1, 1 => 1, 10 => 1, 25 => 1 }
    ours = written { storage.measure([Measure.new(MINUTE, "Mail", 5, 1, 400_925, histogram)]) }
    refute_empty theirs
    assert_equal theirs, ours
  end

  def test_its_query
    storage.measure([Measure.new(MINUTE, "Mail", 4, 1, 60, { 0 => 2, 3 => 1 }),
                     Measure.new(MINUTE - 1, "Mail", 1, 0, 5, { 0 => 1 }), Measure.new(MINUTE - 70, "Other", 1, 1, 0, {})])
    storage.measure([Measure.new(MINUTE, "Mail", 1, 0, 1, { 0 => 70_000 })])
    top = query { |query| query.top_jobs(minutes: 60).job_results }
    assert_equal %w[Mail], top.keys
    assert_equal [6, 1, 66], top["Mail"].totals.values_at("p", "f", "ms")
    assert_equal [1, 1], query { |query| query.top_jobs(hours: 2).job_results["Other"] }.totals.values_at("p", "f")
    mail = query { |query| query.for_job("Mail", minutes: 60).job_results["Mail"] }
    assert_equal [65_535, 1], mail.hist["2026-11-25T08:05:00Z"].reverse.values_at(0, 3)
    assert_equal 5, mail.series["p"]["2026-11-25T08:05:00Z"]
  end

  # What a worker has not sent yet it sends at its end.
  def test_the_page
    worker = start_worker
    FromRingspun.perform_async("ok")
    FromRingspun.perform_async("fail")
    told_of(2)
    entry_of("retry")
    soon("all have ended") { redis.call("MGET", "stat:processed", "stat:failed") == %w[2 1] }
    assert_predicate worker.stop, :success?
    RealSidekiq.on(url) do |pool|
      web = SidekiqWeb.new(pool)
      page = web.get("/metrics").body.gsub(/<[^>]*>/, " ").gsub(/\s+/, " ")
      # In seconds: of all, and in the mean, which is of the one that has not failed.
      assert_match(/FromRingspun 1 1 (\d+\.\d+) \1 /, page)
      assert_equal 200, web.get("/metrics/FromRingspun").status
    end
  end

  def test_a_worker_that_is_told_not_to_measure
    worker = start_worker(metrics: false)
    FromRingspun.perform_async("ok")
    told
    worker.stop
    assert_empty redis.call("KEYS", "j|*") + redis.call("KEYS", "h|*")
  end

  private

  # The real one's, of runs that took so long.
  def tracker_of(runs, pool)
    times = []
    tracker = Class.new(Sidekiq::Metrics::ExecutionTracker) do
      define_method(:mono_ms) { times.shift }
      define_method(:redis) { |&block| pool.with(&block) }
      def logger = Logger.new(nil)
    end.new(nil)
    runs.each do |seconds, error|
      times.push(0, (seconds * 1000).round)
      tracker.track("default", "Mail") { raise error if error }
    rescue IOError
      nil
    end
    tracker
  end

  def written
    redis.call("FLUSHALL")
    yield
    (redis.call("KEYS", "j|*") + redis.call("KEYS", "h|*")).sort.to_h do |key|
      value = redis.call("TYPE", key) == "hash" ? redis.call("HGETALL", key).sort : redis.call("GET", key)
      [key, [value, redis.call("TTL", key).round(-2)]]
    end
  end
end
