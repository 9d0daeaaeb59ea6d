# frozen_string_literal: true

require "support/both_sides"

# What checks of health and consoles ask.
class SidekiqApiTest < BothSides
  MAIL = <<~'RUBY'
    require "sidekiq/api"
    class Mail
      include Sidekiq::Job
      sidekiq_options tags: ["a"]

      def perform(*) = nil
    end
    # What is compared of times: one side may be slower than the other.
    def minutes(seconds) = (seconds / 60).round
    def put(set, score, **fields)
      job = { "class" => "Mail", "args" => [set], "queue" => "low", "jid" => "j#{score.to_i}", "created_at" => 1795288827250,
              **fields.transform_keys(&:to_s) }
      Sidekiq.redis { |redis| redis.call("ZADD", set, score, JSON.generate(job)) }
    end
  RUBY

  def test_numbers
    made = both(<<~RUBY)
      #{MAIL}
      3.times { |i| Mail.perform_async(i) }
      Mail.set(queue: "low").perform_async("x")
      waits = { "class" => "Mail", "args" => [0], "queue" => "default", "jid" => "w" * 24, "enqueued_at" => ((Time.now.to_f - 3600) * 1000).to_i }
      Sidekiq.redis { |redis| redis.call("RPUSH", "queue:default", JSON.generate(waits)) }
      Mail.perform_in(60)
      put("retry", 2_000_000_000)
      Sidekiq.redis { |redis| redis.call("MSET", "stat:processed", 7, "stat:failed", 2) }
      stats = Sidekiq::Stats.new
      [stats.processed, stats.failed, stats.enqueued, stats.scheduled_size, stats.retry_size, stats.dead_size,
       stats.processes_size, stats.workers_size, minutes(stats.default_queue_latency), stats.queues,
       stats.queue_summaries.map { |each| [each.name, each.size, minutes(each.latency), each.paused?] },
       Sidekiq::Queue.all.map(&:name), Sidekiq::Queue.new.size, Sidekiq::Queue.new("none").latency, Sidekiq::Queue.new.paused?]
    RUBY
    assert_equal [[7, 2, 5, 1, 1, 0], 60], [made.answer.first(6), made.answer[8]]
  end

  def test_jobs_of_a_queue
    both(<<~RUBY)
      #{MAIL}
      jid = Mail.perform_async("one", { "b" => nil })
      Mail.perform_async("two")
      queue = Sidekiq::Queue.new
      job = queue.find_job(jid)
      told = [job.klass, job.display_class, job.args, job.display_args, job.jid == jid, job.queue, job.tags, job["retry"],
              minutes(job.latency), minutes(Time.now - job.enqueued_at), minutes(Time.now - job.created_at), job.failed_at,
              JSON.parse(job.value) == job.item, queue.map { |each| each.args.first }]
      told << job.delete << queue.size
      queue.clear
      told << queue.size
      Mail.perform_async("left") # for an empty queue has no name there
      told
    RUBY
  end

  def test_sets
    both(<<~RUBY)
      #{MAIL}
      put("retry", 2_000_000_000.5, error_class: "E", failed_at: 1795288827250, retry_count: 1)
      put("retry", 2_000_000_100)
      put("schedule", 2_000_000_200)
      put("dead", Time.now.to_i - 100) # the real one removes older ones
      retries = Sidekiq::RetrySet.new
      told = [retries.size, retries.map(&:jid), Sidekiq::ScheduledSet.new.map { |job| [job.at.to_i, job.score, job.queue] },
              Sidekiq::DeadSet.new.size, retries.first.error?, retries.first.failed_at.to_f, retries.to_a.last.error?]
      retries.first.kill
      told << retries.size << Sidekiq::DeadSet.new.size
      retries.first.retry
      Sidekiq::ScheduledSet.new.first.add_to_queue
      told << Sidekiq::Queue.new("low").size << Sidekiq::ScheduledSet.new.size
      Sidekiq::DeadSet.new.clear
      told << Sidekiq::DeadSet.new.size
      Mail.set(queue: "low").perform_async("left")
      Sidekiq::Queue.new("low").each { |job| job.delete unless job.args == ["left"] }
      told
    RUBY
  end

  def test_jobs_that_are_killed
    made = both(<<~RUBY)
      #{MAIL}
      DEATHS = []
      Sidekiq.default_configuration.death_handlers << ->(job, error) { DEATHS << [job["jid"], job["args"], error.class.name, error.message] }
      dead = Sidekiq::DeadSet.new
      text = JSON.generate({ "class" => "Mail", "args" => ["text"], "queue" => "low", "jid" => "j1", "created_at" => Time.now.to_f, "x" => 1 })
      answers = [dead.kill(text), dead.kill(text.sub("j1", "j2"), notify_failure: false),
                 dead.kill(text.sub("j1", "j3"), ex: IOError.new("own"), trim: false)]
      put("retry", 2_000_000_000)
      put("retry", 2_000_000_100)
      put("retry", 2_000_000_200)
      Sidekiq::RetrySet.new.first.kill
      Sidekiq::RetrySet.new.kill_all(notify_failure: false)
      put("schedule", 2_000_000_300)
      Sidekiq::ScheduledSet.new.kill_all(notify_failure: true, ex: IOError.new("of all"))
      [answers, dead.size, dead.map(&:jid).sort, dead.find_job("j1").item["x"], DEATHS, (Time.now.to_f - dead.find_job("j2").score).abs < 60]
    RUBY
    assert_equal [[true] * 3, 7], made.answer.first(2)
  end

  def test_what_cannot_be_killed
    made = run_one(:ours, <<~RUBY)
      #{MAIL}
      ["no JSON", "5", "{}", '{"class":"Mail"}', nil].map do |text|
        Sidekiq::DeadSet.new.kill(text)
      rescue ArgumentError => error
        error.message
      end
    RUBY
    made.answer.each { |message| assert_match(/DeadSet#kill takes a job's JSON/, message) }
    assert_empty made.stored["dead"]
  end

  def test_a_job_that_is_put_back_counts_its_tries
    both(<<~RUBY)
      #{MAIL}
      put("retry", 2_000_000_000, retry_count: 3, error_class: "E", retry: true)
      put("retry", 2_000_000_100, retry_count: 3, error_class: "E", retry: true)
      put("retry", 2_000_000_200, retry_count: 0, error_class: "E", retry: true)
      Sidekiq::RetrySet.new.first.retry
      Sidekiq::RetrySet.new.first.add_to_queue
      Sidekiq::RetrySet.new.retry_all
      Sidekiq::Queue.new("low").map { |job| [job.jid, job["retry_count"]] }
    RUBY
  end

  def test_a_job_that_is_put_into_a_set
    both(<<~RUBY)
      #{MAIL}
      Sidekiq::ScheduledSet.new.schedule(Time.at(2_000_000_000), { "class" => "Mail", "args" => [1], "queue" => "low", "jid" => "j" * 24, "created_at" => Time.now.to_f })
      Sidekiq::ScheduledSet.new.map(&:score)
    RUBY
  end

  # Either sees the workers of either.
  def test_processes
    SIDES.each_key { |side| start_side(side, "", "-g", side.name, "-c", "3") }
    soon("both are there") { redis.call("SCARD", "processes") == 2 }
    soon("both say what they are") do
      redis.call("SMEMBERS", "processes").all? { |name| redis.call("HEXISTS", name, "info") == 1 }
    end
    code = <<~RUBY
      require "sidekiq/api"
      set = Sidekiq::ProcessSet.new
      [set.size, set.total_concurrency, set.total_rss_in_kb.positive?,
       set.map { |each| [each.tag, each["concurrency"], each.queues, each.labels, each.stopping?, each.embedded?] }.sort]
    RUBY
    told = SIDES.each_value.map do |library|
      program = ForkedProgram.ruby(library, "require 'json'\nputs 'ANSWER ' + JSON.generate(begin\n#{code}\nend)",
                                   env: { "REDIS_URL" => url })
      @programs << program
      program.wait
      program.log[/^ANSWER (.*)$/, 1]
    end
    assert_equal [2, 6, true, [["ours", 3, ["default"], [], false, false], ["theirs", 3, ["default"], [], false, false]]],
                 JSON.parse(told.first)
    assert_equal told.first, told.last
  end
end
