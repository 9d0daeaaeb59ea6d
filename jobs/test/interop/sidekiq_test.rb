# frozen_string_literal: true

require "support/interop_case"

# What we enqueue, a process of Sidekiq runs; and jobs that go from one to the other.
class InteropSidekiqTest < InteropCase
  def test_all_ways_to_enqueue
    start_sidekiq("-q", "default", "-q", "other")
    jids = [FromRingspun.perform_async("now", [], { "a" => nil }), FromRingspun.perform_in(0.5, "soon"),
            FromRingspun.perform_at(Time.now + 0.5, "at"), FromRingspun.set(queue: "other").perform_async("other"),
            *FromRingspun.perform_bulk([["many", 1], ["many", 2]])]
    arguments = [["now", [], { "a" => nil }], ["soon"], ["at"], ["other"], ["many", 1], ["many", 2]]
    expected = jids.zip(arguments).map { |jid, args| ["sidekiq", "FromRingspun", jid, *args] }
    assert_equal expected.sort_by(&:to_s), told_of(6).sort_by(&:to_s)
  end

  def test_sidekiq_retries_as_we_have_said
    start_sidekiq
    FromRingspun.set(retry: 1, tags: %w[x]).perform_async("fail")
    told
    failed = job_of("retry")
    assert_equal [0, 1, ["x"], "as told"], failed.values_at("retry_count", "retry", "tags", "error_message")
    make_due("retry")
    told
    assert_equal 1, job_of("dead")["retry_count"]
  end

  def test_a_failure_of_ours_is_retried_by_sidekiq
    FromRingspun.set(retry: 2).perform_async("fail")
    assert_goes_on(%w[ringspun sidekiq ringspun])
  end

  def test_a_failure_of_sidekiq_s_is_retried_by_us
    FromRingspun.set(retry: 2).perform_async("fail")
    assert_goes_on(%w[sidekiq ringspun sidekiq])
  end

  def test_both_at_work_at_once
    start_sidekiq
    start_worker
    held = 11 # more than our worker runs at once
    held.times { FromRingspun.perform_async("hold") }
    assert_equal %w[ringspun sidekiq], told_of(held).map(&:first).uniq.sort
    redis.call("LPUSH", "go", *Array.new(held, "on"))
    ours = Array.new(60) { |i| i.even? ? FromRingspun.perform_async("x") : FromRingspun.perform_in(rand, "x") }
    ours.concat(FromRingspun.perform_bulk(Array.new(60) { ["x"] }))
    theirs = sidekiq do
      Array.new(60) { |i| i.even? ? FromSidekiq.perform_async("x") : FromSidekiq.perform_in(rand, "x") }
    end
    runs = told_of(180)
    assert_equal (ours + theirs).sort, runs.map { |run| run[2] }.sort
    soon("nothing is in flight") { redis.call("KEYS", "queue:*").empty? }
    assert_equal 0, redis.call("EXISTS", "told", "schedule", "retry", "dead")
  end

  private

  # Each of them fails it once, and counts on from the one before.
  def assert_goes_on(names)
    first_failed = nil
    names.each_with_index do |name, count|
      program = name == "sidekiq" ? start_sidekiq : start_worker
      assert_equal [name, "fail"], told.values_at(0, 3)
      failed = job_of(count == 2 ? "dead" : "retry")
      assert_equal [count, 2], failed.values_at("retry_count", "retry")
      first_failed ||= Ringspun::Jobs::Wire.seconds(failed["failed_at"])
      assert_in_delta first_failed, Ringspun::Jobs::Wire.seconds(failed["failed_at"]), 0.001
      program.kill
      make_due("retry")
    end
    assert_equal 0, redis.call("ZCARD", "retry")
  end
end
