# frozen_string_literal: true

require "support/interop_case"

# Entries as Exq writes them, by the letter: our worker reads them, and what it writes Exq can read.
class InteropExqTest < InteropCase
  # Fields in an order of its own, a UUID, seconds as a float, nulls for what has not been.
  FRESH = '{"queue":"default","retry":true,"class":"FromRingspun","args":["fail",{"deep":[]}],' \
          '"jid":"2f0b6ec2-6a1c-4b4f-9d8f-3a8f7a0c7b11","enqueued_at":1795288827.123456,"retry_count":0,"error_message":null,' \
          '"error_class":null,"failed_at":null,"retried_at":null,"finished_at":null,"processor":null,' \
          '"ours":{"empty":{},"list":[],"big":12345678901234567890,"text":"\u00e4\ud83d\ude00"}}'

  # Exq has tried it once, which counts as 1, and again, which counts as 2.
  TRIED = FRESH.sub('"retry_count":0', '"retry_count":2').sub('"failed_at":null', '"failed_at":1795288830.5')
               .sub('"retried_at":null', '"retried_at":1795288850').sub('"error_message":null', '"error_message":"boom"')

  OURS = { "empty" => {}, "list" => [], "big" => 12_345_678_901_234_567_890, "text" => "\u00e4\u{1f600}" }.freeze

  def put(entry, prefix = "")
    redis.call("SADD", "#{prefix}queues", "default")
    redis.call("LPUSH", "#{prefix}queue:default", entry)
  end

  def run_it(**settings)
    start_worker(**settings)
    assert_equal ["ringspun", "FromRingspun", "2f0b6ec2-6a1c-4b4f-9d8f-3a8f7a0c7b11", "fail", { "deep" => [] }], told
  end

  # Exq takes every number for seconds, and cannot read what is not one of the moment.
  def assert_times_for_exq(job)
    times = job.select { |field, value| field.end_with?("_at") && value }
    assert_equal [Float], times.values.map(&:class).uniq, times.inspect
    times.each { |field, value| assert_in_delta Time.now.to_f, value, 10 * 365 * 86_400, field }
  end

  def test_a_fresh_one
    put(FRESH)
    run_it
    job = job_of("retry")
    assert_equal [0, "ArgumentError", "as told", OURS, true, "default"],
                 job.values_at("retry_count", "error_class", "error_message", "ours", "retry", "queue")
    assert_empty JSON.parse(FRESH).keys - job.keys - ["enqueued_at"], "a field is lost"
    assert_times_for_exq(job)
  end

  def test_one_that_exq_has_tried_counts_on
    put(TRIED)
    run_it
    job = job_of("retry")
    # The third failure is Sidekiq's 2 and Exq's 3.
    assert_equal [2, 1_795_288_830.5, "as told"], job.values_at("retry_count", "failed_at", "error_message")
    assert_operator job["retried_at"], :>, 0
    assert_equal OURS, job["ours"]
  end

  def test_how_often_one_of_exq_s_is_tried_again
    put(TRIED.sub('"retry":true', '"retry":2'))
    run_it
    assert_equal [2, "as told", OURS], job_of("dead").values_at("retry_count", "error_message", "ours")
    assert_equal 0, redis.call("ZCARD", "retry")
  end

  def test_what_exq_has_scheduled
    redis.call("ZADD", "schedule", "1795288827.123456", FRESH)
    now = Time.now.to_f
    redis.call("ZADD", "schedule", "XX", (now - 1).to_s, FRESH)
    run_it
    assert_equal OURS, job_of("retry")["ours"]
  end

  def test_the_namespace_that_exq_has_by_itself
    put(FRESH, "exq:")
    run_it(namespace: "exq")
    assert_equal OURS, job_of("exq:retry")["ours"]
    told_lists = %w[told go]
    assert_empty redis.call("KEYS", "*").reject { |key| key.start_with?("exq:") } - told_lists
  end

  # The dashboard of Exq shows who runs what from there.
  def test_what_runs_is_shown_to_exq
    put(FRESH.sub('"fail"', '"hold"'))
    start_worker
    told
    worker = soon("it is shown") do
      redis.call("SMEMBERS", "processes").flat_map { |identity| redis.call("HVALS", "#{identity}:workers") }.first
    end
    shown = JSON.parse(worker)
    assert_in_delta Time.now.to_f, shown["run_at"], 60
    payload = shown["payload"]
    assert_equal "FromRingspun", (payload.is_a?(String) ? JSON.parse(payload) : payload)["class"]
    redis.call("LPUSH", "go", "1")
    soon("it is counted") { redis.call("GET", "stat:processed") == "1" }
  end
end
