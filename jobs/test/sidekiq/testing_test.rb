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

  # What a test keeps in a variable goes with what is enqueued, and what it changes holds.
  def test_arrays_that_live
    both(<<~RUBY)
      #{JOBS}
      queue, mine, all = Sidekiq::Queues["mail"], Mail.jobs, Sidekiq::Queues.jobs_by_queue
      sizes = [[queue.size, mine.size]]
      note = -> { sizes << [queue.size, mine.size, Sidekiq::Job.jobs.size, Sidekiq::Queues["mail"].equal?(queue), Mail.jobs.equal?(mine), all.keys] }
      Mail.perform_async("a")
      note.call
      Mail.perform_async("b")
      Mail.set(queue: "other").perform_async("c")
      note.call
      Mail.perform_one
      note.call
      queue.first["args"] = ["changed", {}]
      Mail.drain
      note.call
      Mail.perform_async("d")
      queue.clear
      sizes << Sidekiq::Job.jobs.size << mine.size
      Mail.clear
      note.call
      Sidekiq::Queues.push("mail", "Mail", { "class" => "Mail", "args" => ["pushed"], "jid" => "j" * 24, "queue" => "mail" })
      note.call
      Mail.drain
      Mail.perform_async("e")
      Sidekiq::Queues.delete_for(Mail.jobs.first["jid"], "mail", "Mail")
      note.call
      Mail.perform_async("f")
      Sidekiq::Queues.clear_for("mail", "Mail")
      note.call
      Mail.perform_in(60, "g")
      Sidekiq::Queues.clear_all
      sizes << Sidekiq::Queues["mail"].size << Mail.jobs.size << Sidekiq::Queues["none"]
      Sidekiq::Queues["none"] << 1
      [sizes, RAN.map(&:first), Sidekiq::Queues["none"]]
    RUBY
  end

  def test_modes_inside_of_each_other
    both(<<~RUBY)
      #{JOBS}
      nested = begin
        Sidekiq::Testing.inline! { Sidekiq::Testing.fake! { :reached } }
      rescue Sidekiq::Testing::TestModeAlreadySetError => error
        [error.class.superclass.name, Sidekiq::Testing.fake?]
      end
      global = Sidekiq::Testing.inline! do
        Sidekiq::Testing.disable!
        [Sidekiq::Testing.inline?, Sidekiq::Testing.disabled?]
      end
      elsewhere = Sidekiq::Testing.inline! { Thread.new { Sidekiq::Testing.fake! { Sidekiq::Testing.fake? } }.value }
      left = begin
        Sidekiq::Testing.inline! { raise "as told" }
      rescue
        Sidekiq::Testing.inline! { Sidekiq::Testing.inline? }
      end
      [nested, global, elsewhere, left, Sidekiq::Testing.disabled?]
    RUBY
  end

  def test_how_a_job_is_run
    both(<<~RUBY)
      #{JOBS}
      class Mail
        def self.execute_job(job, arguments)
          RAN << :around
          super
        end
      end
      Mail.perform_async("a", { "b" => 1 })
      Mail.drain
      RAN.map { |what| what.is_a?(Array) ? what.first : what }
    RUBY
  end
end
