# frozen_string_literal: true

require "support/both_sides"

# A program's own tests, with the modes of sidekiq/testing.
class SidekiqTestingTest < BothSides
  JOBS = <<~'RUBY'
    require "sidekiq/testing"
    RAN = []
    class Mail
      include Sidekiq::Job
      sidekiq_options queue: "mail"

      def perform(what, hash = {})
        RAN << [what, hash, jid.size]
        Mail.perform_async("more") if what == "twice"
        raise IOError if what == "fail"
      end
    end
    class Other
      include Sidekiq::Job

      def perform = RAN << :other
    end
  RUBY

  def test_jobs_are_kept
    made = both(<<~RUBY)
      #{JOBS}
      Mail.perform_async("a", { "b" => 1 })
      Mail.perform_in(60, "later")
      Mail.perform_bulk([["c"], ["d"]])
      Other.perform_async
      answers = [Sidekiq::Testing.fake?, Sidekiq::Testing.enabled?, Mail.jobs.map { |job| [job["args"], job.key?("at")] }, Mail.queue,
                 Sidekiq::Queues["mail"].size, Sidekiq::Queues["none"].size, Sidekiq::Queues.jobs_by_class["Other"].size,
                 Sidekiq::Job.jobs.size]
      Mail.perform_one
      answers << RAN.dup << Mail.jobs.size
      Mail.clear
      answers << Mail.jobs.size << Other.jobs.size
      begin
        Mail.perform_one
      rescue Sidekiq::EmptyQueueError
        answers << :empty
      end
      Sidekiq::Job.clear_all
      answers << Sidekiq::Job.jobs.size
    RUBY
    assert_equal [4, :mail.to_s], [made.answer[2].size, made.answer[3]]
    assert_equal [], made.stored["schedule"]
  end

  def test_jobs_are_run
    both(<<~RUBY)
      #{JOBS}
      Mail.perform_async("twice")
      Mail.perform_in(60, "later")
      Other.perform_async
      Mail.drain
      ran = RAN.map(&:first)
      Mail.perform_async("fail")
      error = begin
        Sidekiq::Job.drain_all
      rescue => error
        error.class.name
      end
      Sidekiq::Job.drain_all
      [ran, error, RAN.size, Mail.jobs.size, Other.jobs.size]
    RUBY
  end

  def test_modes
    both(<<~RUBY)
      #{JOBS}
      inside = Sidekiq::Testing.inline! { [Sidekiq::Testing.inline?, Mail.perform_async("now", { "a" => nil }).size] }
      stored = Sidekiq.testing!(:disable) { [Sidekiq::Testing.disabled?, Mail.perform_async("stored").size] }
      require "sidekiq/testing/inline"
      Mail.perform_in(60, "at once")
      [inside, stored, RAN, Mail.jobs.size, Sidekiq::Testing.inline?]
    RUBY
  end
end
