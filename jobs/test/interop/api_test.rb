# frozen_string_literal: true

require "support/interop_case"

# Sidekiq's API reads what is ours, and changes it.
class InteropApiTest < InteropCase
  def test_a_queue
    before = Time.now
    FromRingspun.perform_async("first", { "a" => [1.5, nil] })
    jid = FromRingspun.set(tags: %w[x], retry: 7).perform_async("second")
    sidekiq do
      queue = Sidekiq::Queue.new
      assert_equal [2, { "default" => 2 }], [queue.size, Sidekiq::Stats.new.queues]
      assert_in_delta Time.now - before, queue.latency, 5
      second, first = queue.to_a
      assert_equal [["first", { "a" => [1.5, nil] }], ["second"]], [first.args, second.args]
      assert_equal [jid, "FromRingspun", "default", ["x"], 7],
                   [second.jid, second.klass, second.queue, second.tags, second["retry"]]
      [second.created_at, second.enqueued_at].each { |time| assert_in_delta before, time, 5 }
      assert first.delete
      assert_equal [jid], queue.map(&:jid)
      assert queue.clear
    end
  end

  def test_times_in_milliseconds
    Ringspun::Jobs.configure { |config| config.milliseconds = true }
    FromRingspun.perform_async("x")
    sidekiq do
      job = Sidekiq::Queue.new.first
      assert_equal [Integer, Integer], job.item.values_at("created_at", "enqueued_at").map(&:class)
      [job.created_at, job.enqueued_at].each { |time| assert_in_delta Time.now, time, 60 }
      assert_in_delta 0, Sidekiq::Queue.new.latency, 60
    end
  ensure
    Ringspun::Jobs.configure { |config| config.milliseconds = false }
  end

  def test_what_is_scheduled
    at = Time.now + 3600
    jid = FromRingspun.perform_at(at, "at")
    FromRingspun.perform_in(7200, "in")
    sidekiq do
      set = Sidekiq::ScheduledSet.new
      assert_equal [%w[at], %w[in]], set.map(&:args).sort
      found = set.find_job(jid)
      assert_in_delta at, found.at, 0.01
      refute found.item.key?("at")
      assert_in_delta at + 3600, set.find { |job| job.jid != jid }.at, 60
      found.reschedule(at + 60)
      assert_in_delta at + 60, set.find_job(jid).at, 0.01
      found.delete
      assert_equal 1, set.size
      set.first.add_to_queue
      assert_equal [["in"], 0], [Sidekiq::Queue.new.first.args, set.size]
    end
  end

  def test_a_process_and_what_it_does
    worker = start_worker(queues: { default: 2, other: 1 })
    jid = FromRingspun.perform_async("hold", "x")
    told
    sidekiq do
      process = soon("it is shown busy") { Sidekiq::ProcessSet.new(false).find { |each| each["busy"] == 1 } }
      assert_equal [worker.pid, 10, { "default" => 2, "other" => 1 }],
                   [process["pid"], process["concurrency"], process.weights]
      assert_equal %w[default other], process.queues.sort
      assert_equal Socket.gethostname, process["hostname"]
      [process["started_at"], process["beat"]].each { |time| assert_in_delta Time.now.to_f, time, 60 }
      assert_operator process["rss"], :>, 1000
      assert_operator process["rtt_us"], :>, 0
      refute_predicate process, :stopping?
      refute_predicate process, :embedded?

      assert_equal 1, Sidekiq::WorkSet.new.size
      identity, _, work = Sidekiq::WorkSet.new.first
      assert_equal [process.identity, "default", jid, ["hold", "x"]], [identity, work.queue, work.job.jid, work.job.args]
      assert_in_delta Time.now, work.run_at, 60
      assert_equal jid, Sidekiq::WorkSet.new.find_work(jid).job.jid
      assert_equal [1, 1], Sidekiq::Stats.new.then { |stats| [stats.processes_size, stats.workers_size] }
      redis.call("LPUSH", "go", "1")
    end
  end

  def test_a_process_hears_sidekiq
    worker = start_worker
    sidekiq do
      process = soon("it is there") { Sidekiq::ProcessSet.new(false).first }
      process.dump_threads
      process.quiet!
      soon("it is quiet") { Sidekiq::ProcessSet[process.identity].stopping? }
      FromRingspun.perform_async("never")
      process.stop!
      assert_predicate worker.wait, :success?, worker.log
      assert_equal [0, 1, 0], [Sidekiq::ProcessSet.new(false).size, Sidekiq::Queue.new.size, redis.call("LLEN", "told")]
    end
  end

  def test_what_was_counted
    start_worker
    3.times { FromRingspun.perform_async("x") }
    FromRingspun.perform_async("fail")
    told_of(4)
    sidekiq do
      soon("all are counted") { Sidekiq::Stats.new.then { |stats| stats.processed == 4 && stats.failed == 1 } }
      history = Sidekiq::Stats::History.new(2)
      assert_equal [4, 1], [history.processed.values.sum, history.failed.values.sum]
      assert_equal [1, 0, 0, 0], Sidekiq::Stats.new.then { |stats|
        [stats.retry_size, stats.dead_size, stats.scheduled_size, stats.enqueued]
      }
    end
  end

  def test_a_dead_job_is_brought_back
    start_worker
    jid = FromRingspun.set(retry: 0).perform_async("fail")
    told
    entry_of("dead")
    sidekiq do
      dead = Sidekiq::DeadSet.new.first
      assert_equal [jid, 0, "ArgumentError"], [dead.jid, *dead.item.values_at("retry_count", "error_class")]
      assert_in_delta Time.now, dead.at, 60
      Sidekiq::DeadSet.new.retry_all
    end
    assert_equal jid, told[2]
    soon("it is dead again") { redis.call("ZCARD", "dead") == 1 }
    assert_equal 0, job_of("dead")["retry_count"]
  end
end
