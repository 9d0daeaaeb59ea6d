# frozen_string_literal: true

require "support/interop_case"

# What Sidekiq's client enqueues, our worker runs.
class InteropWorkerTest < InteropCase
  def setup
    super
    start_worker(queues: %w[default other])
  end

  def test_all_ways_to_enqueue
    jids = sidekiq do
      [FromSidekiq.perform_async("now", [], { "a" => nil }), FromSidekiq.perform_in(0.5, "soon"),
       FromSidekiq.perform_at(Time.now + 0.5, "at"), FromSidekiq.set(queue: "other").perform_async("other"),
       *FromSidekiq.perform_bulk([["many", 1], ["many", 2]])]
    end
    arguments = [["now", [], { "a" => nil }], ["soon"], ["at"], ["other"], ["many", 1], ["many", 2]]
    expected = jids.zip(arguments).map { |jid, args| ["ringspun", "FromSidekiq", jid, *args] }
    assert_equal expected.sort_by(&:to_s), told_of(6).sort_by(&:to_s)
  end

  def test_a_failure_is_one_that_sidekiq_understands
    jid = sidekiq { FromSidekiq.set(retry: 3, tags: %w[x], backtrace: 5, custom: { "a" => [] }).perform_async("fail") }
    before = Time.now
    told
    entry_of("retry")
    sidekiq do
      failed = Sidekiq::RetrySet.new.first
      assert_equal [jid, "FromSidekiq", ["fail"], "default", ["x"], { "a" => [] }, 3, 0, "ArgumentError", "as told"],
                   [failed.jid, failed.klass, failed.args, failed.queue, failed.tags,
                    *failed.item.values_at("custom", "retry", "retry_count", "error_class", "error_message")]
      assert_in_delta before, failed.failed_at, 60
      assert_in_delta before, failed.created_at, 60
      assert_nil failed.retried_at
      assert_operator failed.at, :>, before + 10
      assert_match(/program\.rb:\d+:in .*perform/, failed.error_backtrace.first)
      assert_operator failed.error_backtrace.size, :<=, 5
    end
  end

  def test_how_often_a_job_is_tried_again
    sidekiq { FromSidekiq.set(retry: 1).perform_async("fail") }
    told
    assert_equal 0, job_of("retry")["retry_count"]
    make_due("retry")
    told
    dead = job_of("dead")
    assert_equal [1, "as told"], dead.values_at("retry_count", "error_message")
    assert_kind_of Float, dead["retried_at"]
    sidekiq { assert_equal 1, Sidekiq::DeadSet.new.size }
    assert_equal 0, redis.call("ZCARD", "retry")
  end

  def test_what_is_not_to_be_tried_again
    sidekiq do
      FromSidekiq.set(retry: 0).perform_async("fail", "dies")
      FromSidekiq.set(retry: false).perform_async("fail", "vanishes")
      FromSidekiq.perform_async("last")
    end
    told_of(3)
    soon("all are counted") { redis.call("MGET", "stat:processed", "stat:failed") == %w[3 2] }
    assert_equal ["dies"], redis.call("ZRANGE", "dead", 0, -1).map { |entry| JSON.parse(entry)["args"].last }
    assert_equal 0, redis.call("ZCARD", "retry")
  end

  def test_the_times_of_sidekiq_7_and_8
    [1_795_288_827.25, 1_795_288_827_250].each do |time|
      jid = "%024x" % time.to_i
      redis.call("LPUSH", "queue:default", JSON.generate("class" => "FromSidekiq", "args" => ["fail"], "queue" => "default",
                                                         "jid" => jid, "retry" => true, "created_at" => time,
                                                         "enqueued_at" => time, "failed_at" => time, "retry_count" => 2,
                                                         "retried_at" => time, "error_class" => "IOError"))
      assert_equal jid, told[2]
      sidekiq do
        failed = soon("it is to be tried again") { Sidekiq::RetrySet.new.first }
        assert_equal 3, failed["retry_count"]
        assert_equal Array.new(2, Time.at(1_795_288_827.25)), [failed.created_at, failed.failed_at]
        assert_in_delta Time.now, failed.retried_at, 60
      end
      redis.call("DEL", "retry")
    end
  end

  # Sidekiq's `retry` takes one off, also from zero.
  def test_a_job_that_sidekiq_has_put_back
    sidekiq { FromSidekiq.perform_async("fail") }
    told
    entry_of("retry")
    sidekiq { Sidekiq::RetrySet.new.first.retry }
    told
    assert_equal 0, job_of("retry")["retry_count"]
  end
end
