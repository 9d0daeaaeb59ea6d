# frozen_string_literal: true

require "jobs_helper"
require "active_support/core_ext/string/output_safety"
require "ringspun/jobs/active_job"
require "ringspun/jobs/testing"
require "support/active_job_case"

# From a job of Active Job to its entry in the storage.
class ActiveJobAdapterTest < ActiveJobCase
  class Greeting < ActiveJob::Base
    queue_as :greetings

    def perform(name) = ActiveJobCase.done << name
  end

  Jobs::Testing.real! # for requiring it changes that

  class Other < ActiveJob::Base
    def perform(*) = nil
  end

  def test_the_adapter_is_found_by_its_name
    assert_instance_of ActiveJob::QueueAdapters::RingspunAdapter, Greeting.queue_adapter
    assert_equal "ringspun", Greeting.queue_adapter_name
  end

  def test_a_job_stands_on_the_wire_as_sidekiqs_adapter_writes_it
    job = Greeting.perform_later("Ada")
    entry = entries("greetings").first
    assert_equal({ "class" => "Sidekiq::ActiveJob::Wrapper", "wrapped" => "ActiveJobAdapterTest::Greeting",
                   "queue" => "greetings", "retry" => true, "jid" => job.provider_job_id },
                 entry.except("args", "created_at", "enqueued_at"))
    data = entry["args"].first
    assert_equal ["ActiveJobAdapterTest::Greeting", job.job_id, ["Ada"], "greetings"],
                 data.values_at("job_class", "job_id", "arguments", "queue_name")
    assert_kind_of Float, entry["enqueued_at"]
  end

  def test_enqueued_successfully
    job = Greeting.perform_later("Ada")
    assert_predicate job, :successfully_enqueued?
    assert_nil job.enqueue_error
    assert_match(/\A\h{24}\z/, job.provider_job_id)
  end

  def test_queue_and_priority_of_a_job
    Greeting.set(queue: "slow", priority: -3).perform_later("Ada")
    assert_equal ["slow", -3], entries("slow").first.values_at("queue", "ringspun_priority")
    refute entries("slow").first["args"].first.key?("missing")
    Greeting.perform_later("Bob")
    refute entries("greetings").first.key?("ringspun_priority")
  end

  def test_a_priority_beyond_ours
    { 1000 => 100, -1000 => -100 }.each do |said, stored|
      job = Greeting.set(queue: "far#{said}", priority: said).perform_later("Ada")
      entry = entries("far#{said}").first
      assert_equal [said, stored, said], [job.priority, entry["ringspun_priority"], entry["args"].first["priority"]]
    end
  end

  def test_a_delayed_job_waits_in_the_schedule
    time = Time.now + 3600
    job = Greeting.set(wait_until: time).perform_later("Ada")
    entry, at = scheduled.first
    assert_in_delta time.to_f, at, 0.001
    assert_equal [job.provider_job_id, "greetings"], entry.values_at("jid", "queue")
    refute entry.key?("enqueued_at")
  end

  def test_many_jobs_in_one_call_of_the_storage
    jobs = [Greeting.new("Ada"), Other.new(1), Greeting.new("Bob").set(wait: 60), Other.new(2).set(queue: "slow")]
    assert_equal 4, Greeting.queue_adapter.enqueue_all(jobs)
    assert_equal 1, @storage.calls
    assert(jobs.all?(&:successfully_enqueued?))
    stored = [*%w[greetings default slow].flat_map { |queue| entries(queue) }, scheduled.first.first]
    assert_equal jobs.map(&:provider_job_id).sort, stored.map { |job| job["jid"] }.sort
  end

  def test_perform_all_later
    assert_nil ActiveJob.perform_all_later(Greeting.new("Ada"), [Greeting.new("Bob")])
    assert_equal %w[Ada Bob], entries("greetings").map { |job| job["args"].first["arguments"].first }
  end

  def test_of_many_each_says_whether_it_is_stored
    @storage.answers = [nil, Jobs::StorageError.new("it is full"), nil]
    jobs = %w[Ada Bob Eve].map { |name| Greeting.new(name) }
    error = assert_raises(Jobs::BulkError) { ActiveJob.perform_all_later(jobs) }
    assert_equal "1 of 3 jobs is not stored, or not for certain: it is full", error.message
    assert_equal [true, false, true], jobs.map(&:successfully_enqueued?)
    assert_equal [nil, "it is full", nil], jobs.map { |job| job.enqueue_error&.message }
    assert_instance_of ActiveJob::EnqueueError, jobs[1].enqueue_error
    assert_instance_of Jobs::StorageError, jobs[1].enqueue_error.cause
  end

  FAILURES = [Jobs::StorageError, Jobs::UnavailableError, Jobs::UnknownOutcomeError, Jobs::PoolTimeoutError].freeze

  def test_what_is_not_stored_is_raised
    FAILURES.each do |failure|
      @storage.error = failure.new("it is full")
      ways = [-> { Greeting.perform_later("Ada") }, -> { Greeting.set(wait: 60).perform_later("Ada") },
              -> { Greeting.new("Ada").enqueue }]
      ways.each { |way| assert_equal "it is full", assert_raises(failure, &way).message }
    end
  end

  def test_of_many_none_is_stored_by_a_storage_that_refuses
    FAILURES.each do |failure|
      @storage.error = failure.new("it is full")
      jobs = [Greeting.new("Ada"), Greeting.new("Bob")]
      assert_raises(failure) { ActiveJob.perform_all_later(jobs) }
      assert_equal [[false, "it is full"]], jobs.map { |job| [job.successfully_enqueued?, job.enqueue_error.message] }.uniq
    end
  end

  # A thousand go in one call, and what comes after a call that fails is not tried.
  def test_of_many_those_that_are_not_tried_are_not_stored
    @storage.define_singleton_method(:push) { |pushes, **| pushes.size == 1000 ? super(pushes) : raise(Jobs::UnavailableError, "gone") }
    jobs = Array.new(1002) { |number| Greeting.new(number.to_s) }
    error = assert_raises(Jobs::BulkError) { ActiveJob.perform_all_later(jobs) }
    assert_equal [1000, 2], jobs.partition(&:successfully_enqueued?).map(&:size)
    assert_equal ["gone"], jobs.last(2).map { |job| job.enqueue_error.message }.uniq
    assert_match(/gone/, error.message)
  end

  class Reports
    def initialize = @all = []
    attr_reader :all

    def report(error, **rest) = @all << [error.message, rest]
  end

  # As Rails' own adapters answer.
  def test_what_is_not_stored_is_returned_logged_and_reported
    reports, log = Reports.new, StringIO.new
    ActiveSupport.error_reporter.subscribe(reports)
    Jobs.configure do |config|
      config.active_job_errors = "return"
      config.logger = Logger.new(log)
    end
    @storage.error = Jobs::UnknownOutcomeError.new("cut")
    seen = nil
    refute(Greeting.perform_later("Ada") { |job| seen = job })
    assert_instance_of ActiveJob::EnqueueError, seen.enqueue_error
    assert_instance_of Jobs::UnknownOutcomeError, seen.enqueue_error.cause
    @storage.error = nil
    @storage.answers = [nil, Jobs::StorageError.new("it is full")]
    many = [Greeting.new("Bob"), Other.new]
    assert_nil ActiveJob.perform_all_later(many)
    assert_equal [true, false], many.map(&:successfully_enqueued?)
    assert_equal ["cut", "1 of 2 jobs is not stored, or not for certain: it is full"], reports.all.map(&:first)
    names = ["#{Greeting} #{seen.job_id}", "#{Other} #{many.last.job_id}"]
    assert_equal names, reports.all.flat_map { |_, rest| rest[:context][:jobs] }
    ways = reports.all.map { |_, rest| rest.values_at(:handled, :severity, :source) }
    assert_equal [[true, :error, "enqueue.ringspun"]], ways.uniq
    assert_equal names, log.string.lines.map { |line| line[/ERROR.*: not stored, or not for certain: ([^:]+::\w+ \S+):/, 1] }
  ensure
    ActiveSupport.error_reporter.unsubscribe(reports)
    Jobs.config.active_job_errors = :raise
    Jobs.config.remove_instance_variable(:@logger)
  end

  def test_only_known_answers
    error = assert_raises(Jobs::ConfigError) { Jobs.configure { |config| config.active_job_errors = false } }
    assert_equal "active_job_errors must be one of [:raise, :return], got false", error.message
  end

  def test_a_job_that_a_middleware_stops_is_not_enqueued
    Jobs.config.client_middleware.add(->(*) {})
    seen = nil
    refute(Greeting.perform_later("Ada") { |job| seen = job })
    assert_match(/middleware/, seen.enqueue_error.message)
    assert_equal 0, Greeting.queue_adapter.enqueue_all([Greeting.new("Ada")])
    assert_empty entries("greetings")
  end

  def test_a_queue_without_a_name_is_refused
    assert_raises(Jobs::InvalidJobError) { Greeting.set(queue: "").perform_later("Ada") }
  end

  class Detailed < ActiveJob::Base
    def serialize = super.merge("attempt" => :first, "list" => [1, nil])

    def perform(*) = nil
  end

  def test_data_that_are_not_plain_are_what_json_makes_of_them
    Detailed.perform_later("<b>".html_safe)
    data = entries.first["args"].first
    assert_equal [["<b>"], "first", [1, nil]], data.values_at("arguments", "attempt", "list")
    assert_raises(Jobs::InvalidJobError) { Detailed.perform_later(Float::NAN) }
    assert_raises(Jobs::InvalidJobError) { ActiveJob.perform_all_later(Detailed.new("\xFF")) }
  end

  # The Array of arguments is the third level of an entry, after the job's and that of Active Job's data.
  def test_how_deeply_data_may_be_nested
    deepest = nested(96)
    Other.perform_later(deepest)
    ActiveJob.perform_all_later(Other.new(deepest))
    assert_equal [[deepest]] * 2, entries.map { |entry| Jobs::Wire.parse(JSON.generate(entry))["args"].first["arguments"] }
    [-> { Other.perform_later(nested(97)) }, -> { ActiveJob.perform_all_later(Other.new(nested(97))) }].each do |way|
      assert_match(/nested more deeply than 98 times/, assert_raises(Jobs::InvalidJobError, &way).message)
    end
    assert_equal 2, entries.size
  end

  def test_data_are_looked_at_once
    looks = 0
    arguments = Jobs.const_get(:Arguments)
    check = TracePoint.new(:call) { |call| looks += 1 if call.method_id == :hash? && call.self.equal?(arguments) }
    check.enable { ActiveJob.perform_all_later(Array.new(3) { Other.new("Ada") }) }
    assert_equal 6, looks # Active Job's data have a Hash of exceptions in them
    looks = 0
    check.enable { Other.perform_later("Ada") }
    assert_equal 2, looks
  end

  # Neighbours of the same class, queue and priority share what their entries have in common.
  def test_of_many_each_has_its_own_class_queue_and_priority
    jobs = [Greeting.new("Ada"), Greeting.new("Bob").set(priority: 2), Greeting.new("Eve").set(priority: 2, queue: "slow"),
            Other.new(1).set(priority: 2, queue: "slow"), Greeting.new("Ada")]
    ActiveJob.perform_all_later(jobs)
    stored = %w[greetings slow].flat_map { |queue| entries(queue) }.to_h { |entry| [entry["jid"], entry] }
    expected = jobs.map { |job| [job.class.name, job.queue_name, job.priority] }
    assert_equal expected, jobs.map { |job| stored[job.provider_job_id].values_at("wrapped", "queue", "ringspun_priority") }
  end

  def test_in_a_programs_tests
    Jobs::Testing.inline! { Greeting.perform_later("Ada") }
    assert_equal ["Ada"], done
    Jobs::Testing.fake! do
      Greeting.perform_later("Bob")
      assert_equal(["ActiveJobAdapterTest::Greeting"], Jobs::Testing.jobs.map { |job| job["wrapped"] })
      assert_equal 1, Jobs::Testing.drain
    end
    assert_equal %w[Ada Bob], done
  end

  def test_a_class_without_a_name_is_refused
    assert_raises(Jobs::InvalidJobError) { Class.new(ActiveJob::Base).perform_later }
  end

  def test_a_worker_runs_it_with_its_provider_job_id
    job = Greeting.perform_later("Ada")
    assert_equal({ done: 1 }, work("greetings"))
    assert_equal ["Ada"], ActiveJobCase.done
    assert_match(/\A\h{24}\z/, job.provider_job_id)
  end

  def test_a_worker_runs_what_older_sidekiqs_have_written
    Greeting.perform_later("Ada")
    entry = @storage.list("greetings", 0, 1).first.entry
    old = JSON.generate(JSON.parse(entry).merge("class" => "ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper"))
    @storage.push([Jobs::Storage::Push.new("greetings", old, "old")])
    assert_equal({ done: 2 }, work("greetings"))
    assert_equal %w[Ada Ada], ActiveJobCase.done
  end

  def test_no_other_constant_of_the_wire_is_run
    %w[ActiveJobAdapterTest::Greeting ActiveJob::Base Sidekiq::ActiveJob::Others].each do |name|
      entry = JSON.generate("class" => name, "args" => [{}], "jid" => "a", "queue" => "default", "retry" => false)
      @storage.push([Jobs::Storage::Push.new("default", entry, "a")])
    end
    assert_equal({ dropped: 3 }, work("default"))
  end

  class Victim
    class << self
      attr_accessor :made
    end

    def initialize = Victim.made = true
  end

  # Its name would be stored, and no worker could run it.
  def test_a_class_of_active_job_is_not_enqueued_as_a_plain_one
    [-> { Jobs.enqueue(Greeting, "Ada") }, -> { Jobs.set(Greeting, queue: "a") }].each do |way|
      assert_match(/Greeting is one of Active Job: enqueue its jobs by perform_later\z/,
                   assert_raises(Jobs::InvalidJobError, &way).message)
    end
    Jobs.enqueue("ActiveJobAdapterTest::Greeting", "Ada")
    assert_equal({ retry: 1 }, work("default"))
    assert_match(/Greeting is one of Active Job: enqueue its jobs by perform_later\z/,
                 JSON.parse(@storage.scan(:retry, 0, 1).first.entry)["error_message"])
  end

  # The class inside is as much in the hands of whoever has written the entry.
  def test_no_other_constant_inside_a_wrapper_is_made_an_instance_of
    [{ "job_class" => "ActiveJobAdapterTest::Victim" }, { "job_class" => "NoSuchClass" }, { "job_class" => 5 }, {}].each do |data|
      entry = JSON.generate("class" => "Sidekiq::ActiveJob::Wrapper", "args" => [data], "jid" => "a", "queue" => "default",
                            "retry" => 0)
      @storage.push([Jobs::Storage::Push.new("default", entry, "a")])
    end
    assert_equal({ dead: 4 }, work("default"))
    assert_nil Victim.made
    errors = @storage.scan(:dead, 0, 9).map { |one| JSON.parse(one.entry)["error_class"] }
    assert_equal ["Ringspun::Jobs::UnknownClassError"], errors.uniq
  end

  private

  def nested(levels) = (1...levels).inject([]) { |inner, _level| [inner] }
end
