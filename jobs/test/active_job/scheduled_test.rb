# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/active_job"
require "support/active_job_case"

# Jobs of Active Job that come by a schedule.
class ActiveJobScheduledTest < ActiveJobCase
  Cron = Jobs.const_get(:Cron)

  class Greeting < ActiveJob::Base
    queue_as :greetings
    before_enqueue { throw(:abort) if arguments == ["nobody"] }

    def perform(name, times: 1) = ActiveJobCase.done << ([name] * times)
  end

  def entry(*arguments, job_class: Greeting, **) = Cron::Entry.new("greet", "every day", job_class, arguments, **)

  # As a worker pushes it.
  def push(entry)
    push = Cron::Making.push(entry)
    @storage.cron_define("shop", [Jobs::Storage::Cron.new(name: "greet", schedule: entry.key("UTC"), text: entry.to_text("UTC"))])
    @storage.cron_push("greet", @storage.time + 1, push)
  end

  def test_it_runs_as_any_other
    assert_equal :pushed, push(entry("Ada", { "times" => 2 }))
    job = entries("greetings").first
    assert_equal ["Sidekiq::ActiveJob::Wrapper", "ActiveJobScheduledTest::Greeting"], job.values_at("class", "wrapped")
    work("greetings")
    assert_equal [%w[Ada Ada]], done
  end

  def test_each_has_an_id_of_its_own
    one = entry("Ada")
    ids = Array.new(2) { JSON.parse(Cron::Making.push(one).entry)["args"].first["job_id"] }
    assert_equal 2, ids.uniq.size
  end

  def test_its_options
    push(entry("Ada", job_class: "ActiveJobScheduledTest::Greeting", queue: "slow", priority: -3))
    assert_equal ["slow", -3], entries("slow").first.values_at("queue", "ringspun_priority")
    error = assert_raises(Jobs::InvalidJobError) { Cron::Making.push(entry("Ada", retry: 5)) }
    assert_match(/ActiveJobScheduledTest::Greeting is of Active Job, where retry says the class itself/, error.message)
  end

  def test_a_callback_stops_it
    assert_nil Cron::Making.push(entry("nobody"))
    assert_equal [:pushed, nil], [push(entry("nobody")), @storage.crons.first.runs.first.jid]
  end

  # By what the storage has of it.
  def test_a_run_by_hand
    push(entry("Ada"))
    jid = Cron::Making.run(@storage, @storage.crons.first)
    assert_equal jid, entries("greetings").last["jid"]
    assert_equal true, JSON.parse(@storage.crons.first.text)["wrapped"]
  end
end
