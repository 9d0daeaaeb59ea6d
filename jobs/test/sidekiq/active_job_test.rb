# frozen_string_literal: true

require "support/both_sides"

# Jobs of Active Job whose adapter is :sidekiq.
class SidekiqActiveJobTest < BothSides
  JOBS = <<~'RUBY'
    require "active_job"
    %w[active_job/queue_adapters/sidekiq_adapter].each { |name| require name }
    ActiveJob::Base.logger = nil
    ActiveJob::Base.queue_adapter = :sidekiq

    class Plain < ActiveJob::Base
      def perform(*) = nil
    end

    class Own < ActiveJob::Base
      queue_as :mail
      sidekiq_options retry: 3, backtrace: 5, "tags" => ["a"]

      def perform(*) = nil
    end
  RUBY

  # Of the entry: what Active Job says of a job has times and an id.
  def entries(made)
    made.stored.transform_values do |jobs|
      jobs.map { |job| job.merge("args" => job["args"].map { |data| data.slice("job_class", "arguments", "queue_name") }) }
    end
  end

  def test_what_is_enqueued
    theirs, ours = SIDES.keys.map do |side|
      run_one(side, <<~RUBY)
        #{JOBS}
        Plain.perform_later("a", 1)
        Own.perform_later
        Plain.set(wait: 3600, queue: "other").perform_later
        Own.new.enqueue.provider_job_id.size
      RUBY
    end
    assert_equal theirs.answer, ours.answer
    assert_equal entries(theirs), entries(ours)
    assert_equal [3, 5, %w[a], "Own"], ours.stored["mail"].first.values_at("retry", "backtrace", "tags", "wrapped")
  end

  def test_options_of_all_jobs
    theirs, ours = SIDES.keys.map do |side|
      run_one(side, <<~RUBY)
        #{JOBS}
        Plain.perform_later
        Sidekiq.default_job_options = { "retry" => 7, "tags" => ["all"] }
        class Later < ActiveJob::Base; end
        [Later, Own].each(&:perform_later)
        Later.perform_later
        nil
      RUBY
    end.map { |made| entries(made) }
    assert_equal theirs, ours
    assert_equal [[7, %w[all]], [7, %w[all]], [true, nil]], ours["default"].map { |job| job.values_at("retry", "tags") }
  end

  THROUGH = <<~'RUBY'
    class Through
      def call(*) = yield
    end
    Sidekiq.default_configuration.client_middleware { |chain| chain.add(Through) }
  RUBY

  def test_jobs_that_are_due_later_with_middleware
    theirs, ours = SIDES.keys.map do |side|
      run_one(side, <<~RUBY)
        #{JOBS}
        #{THROUGH}
        Own.set(wait: 3600).perform_later("one")
        Plain.set(wait: 3600).perform_later
        ActiveJob.perform_all_later(Own.new("many").set(wait: 7200), Own.new("at once"))
        nil
      RUBY
    end
    assert_equal entries(theirs), entries(ours)
    assert_equal [60, 60, 120], ours.stored["schedule"].map { |job| job["due"].minutes_from_now }
    assert_equal ["at once"], ours.stored["mail"].flat_map { |job| job["args"].first["arguments"] }
  end

  def test_when_a_job_is_due_is_seen_and_changed_by_middleware
    made = both(<<~RUBY)
      #{JOBS}
      class Look
        def call(_class, job, *)
          at = job["at"]
          SEEN << (at && minutes(at))
          case job["args"][0]["arguments"][0]
          when "later" then job["at"] = at + 600
          when "now" then job.delete("at")
          end
          yield
        end
      end
      SEEN = []
      def minutes(time) = ((time - Time.now.to_f) / 60).round
      Sidekiq.default_configuration.client_middleware { |chain| chain.add(Look) }
      %w[same later now].each { |what| Plain.set(wait: 3600).perform_later(what) }
      Plain.perform_later
      ActiveJob.perform_all_later(Plain.new("many").set(wait: 1800))
      queued, due = Sidekiq.redis { |redis| [redis.call("LLEN", "queue:default"), redis.call("ZRANGE", "schedule", 0, -1, "WITHSCORES")] }
      Sidekiq.redis { |redis| redis.call("FLUSHALL") } # each job has an id of its own
      [SEEN, queued, due.map { |_entry, score| minutes(score) }]
    RUBY
    assert_equal [[60, 60, 60, nil, 30], 2, [30, 60, 70]], made.answer
  end

  # A worker of Sidekiq's looks into the queue's list alone.
  def test_a_priority
    ["", THROUGH].each do |middleware|
      theirs, ours = SIDES.keys.map do |side|
        run_one(side, <<~RUBY)
          #{JOBS}
          #{middleware}
          Plain.set(priority: 5).perform_later("a")
          Plain.perform_later("b")
          Own.set(priority: -5).perform_later("c")
          nil
        RUBY
      end.map { |made| entries(made) }
      assert_equal theirs, ours
      assert_equal [2, 1], ours.values_at("default", "mail").map(&:size)
    end
  end

  def test_what_a_job_cannot_say
    made = run_one(:ours, <<~RUBY)
      #{JOBS}
      begin
        Own.sidekiq_retry_in { 1 }
      rescue Ringspun::Jobs::ConfigError => error
        error.message
      end
    RUBY
    assert_match(/Own is a job of Active Job.* retry_on/, made.answer)
  end
end
