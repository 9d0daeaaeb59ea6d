# frozen_string_literal: true

require "support/rails_case"

# Active Job in a generated application: what its guide and the documentation of its adapters say.
class RailsActiveJobTest < RailsCase
  def test_jobs_run_in_a_worker
    app.run('NoteJob.perform_later(Note.create!(text: "hello")); nil')
    worker
    assert_equal ["hello fiber"], seen

    app.run('AttemptsJob.perform_later("late"); nil')
    assert_equal ["attempt 3 24"], seen, "retry_on, executions and provider_job_id"

    app.run('AttemptsJob.perform_later("discard"); nil')
    assert_equal ["discarded gone 1", "after_discard AttemptsJob::NeverMind"], seen(2)

    app.run("ActiveJob.perform_all_later(Array.new(50) { |number| CurrentJob.new(number.to_s) }); nil")
    assert_equal ["nil true nil"] * 50, seen(50), "CurrentAttributes of a strand's own, and empty at first"

    app.run('CallbacksJob.perform_later("yes"); nil')
    assert_equal %w[before_enqueue around_enqueue after_enqueue].sort, (told = seen(7)).grep(/enqueue/).sort
    assert_equal %w[before_perform perform around_perform after_perform].sort, told.grep(/perform/).sort

    assert_nothing_seen
  end

  def test_what_a_job_lets_through_is_reported_and_tried_again
    app.run('AttemptsJob.perform_later("fail"); AttemptsJob.perform_later("exhausted"); nil')
    process = worker
    told = seen(4).tally
    assert_equal({ "reported ArgumentError job.ringspun" => 1, "reported AttemptsJob::NotYet job.ringspun" => 1,
                   "after_discard ArgumentError" => 1, "after_discard AttemptsJob::NotYet" => 1 }, told)
    process.await(/class=AttemptsJob .*retry in/)
    retries = storage.scan(:retry, 0, 10).map { |job| JSON.parse(job.entry) }
    assert_includes retries.map { |job| job.values_at("wrapped", "error_class", "retry_count") },
                    ["AttemptsJob", "ArgumentError", 0]
  end

  def test_a_record_that_is_gone
    app.run('note = Note.create!(text: "gone"); NoteJob.perform_later(note); note.destroy!; nil')
    worker.await(/error=ActiveJob::DeserializationError .*retry in/)
    assert_equal ["reported ActiveJob::DeserializationError job.ringspun"], seen
  end

  def test_enqueued_for_a_queue_a_time_and_with_a_priority
    id, jid = app.run('job = TellJob.set(queue: "slow", priority: 5).perform_later("x"); [job.job_id, job.provider_job_id]')
    entry = JSON.parse(storage.find(jid).entry)
    assert_equal ["slow", 5, id], [*entry.values_at("queue", "ringspun_priority"), entry["args"][0]["job_id"]]
    app.run("TellJob.set(wait: 1.hour).perform_later('x'); nil")
    assert_equal 1, storage.scan(:schedule, 0, 10).size
  end

  # What Rails enqueues by itself, where nobody looks at what a call returns.
  def test_a_storage_that_is_away_is_told_to_who_calls
    app.run(<<~'RUBY')
      require "action_mailer"
      class GreetingMailer < ActionMailer::Base
        def hello = mail(to: "ada@example.com", from: "bob@example.com", body: "hello")
      end
      nil
    RUBY
    ways = { "perform_later" => "TellJob.perform_later('x')", "deliver_later" => "GreetingMailer.hello.deliver_later",
             "perform_all_later" => "ActiveJob.perform_all_later(TellJob.new('x'))" }
    errors = ways.transform_values { |way| app.run(<<~RUBY) }
      memory = Class.new(Ringspun::Jobs::Storage::Memory) { def push(*, **) = raise(Ringspun::Jobs::UnavailableError, "away") }.new
      before = Ringspun::Jobs.config.storage
      Ringspun::Jobs.storage = memory
      begin
        #{way}
      rescue => error
        [error.class.name, error.message]
      ensure
        Ringspun::Jobs.storage = before
      end
    RUBY
    assert_equal ways.transform_values { %w[Ringspun::Jobs::UnavailableError away] }, errors
  end

  def test_callbacks_may_stop_it_and_perform_now_runs_it_here
    assert_equal false, app.run('CallbacksJob.perform_later("no")')
    assert_empty entries
    app.run('TellJob.perform_now("now"); nil')
    assert_equal ["now"], seen
  end
end
