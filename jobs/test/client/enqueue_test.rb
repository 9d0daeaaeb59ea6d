# frozen_string_literal: true

require "jobs_helper"

# From a job's class to its entry in the storage.
class EnqueueTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs

  class HardWorker
    include Jobs::Job
  end

  class Mail
    include Jobs::Job
    job_options queue: "mail", retry: 5, tags: ["a"]
  end

  class Once
    include Jobs::Job
    job_options unique_for: 60
  end

  def setup
    @storage = Jobs.storage = Jobs::Storage::Memory.new
  end

  def teardown
    Jobs.config.client_middleware.clear
    Jobs.storage = nil
  end

  def jobs(queue = "default") = @storage.list(queue, 0, 10_000).map { |job| JSON.parse(job.entry) }

  def scheduled = @storage.scan(:schedule, 0, 10).map { |job| [JSON.parse(job.entry), job.at] }

  def test_a_job_has_the_fields_of_the_wire
    before = Time.now.to_f
    jid = HardWorker.perform_async(1, "ü", { "a" => [nil, true, 1.5] })
    assert_match(/\A\h{24}\z/, jid)
    job = jobs.first
    assert_equal({ "class" => "EnqueueTest::HardWorker", "args" => [1, "ü", { "a" => [nil, true, 1.5] }], "queue" => "default",
                   "retry" => true, "jid" => jid }, job.except("created_at", "enqueued_at"))
    assert_kind_of Float, job["created_at"]
    assert_equal job["created_at"], job["enqueued_at"]
    assert_in_delta before, job["created_at"], 60
  end

  def test_times_in_milliseconds
    Jobs.config.milliseconds = true
    Jobs.storage = @storage
    HardWorker.perform_async
    Mail.set(unique_for: 5).perform_async
    [jobs.first, jobs("mail").first].each do |job|
      assert_kind_of Integer, job["created_at"]
      assert_kind_of Integer, job["enqueued_at"]
      assert_in_delta Time.now.to_f * 1000, job["created_at"], 60_000
    end
  ensure
    Jobs.config.milliseconds = false
  end

  def test_what_the_class_says_and_what_goes_before_it
    Mail.perform_async
    assert_equal ["mail", 5, ["a"]], jobs("mail").first.values_at("queue", "retry", "tags")
    Mail.set(queue: :slow, retry: false).set(tags: ["b"]).perform_async(7)
    assert_equal ["slow", false, ["b"], [7]], jobs("slow").first.values_at("queue", "retry", "tags", "args")
  end

  def test_what_is_for_failures
    Mail.set(retry_queue: :low, retry_for: 3600, dead: false, backtrace: 5).perform_async
    assert_equal ["low", 3600, false, 5], jobs("mail").last.values_at("retry_queue", "retry_for", "dead", "backtrace")
    Mail.set(tags: [], dead: true, backtrace: false).perform_async
    assert_equal %w[args class created_at enqueued_at jid queue retry], jobs("mail").last.keys.sort
  end

  def test_options_that_change_later_hold
    job_class = Class.new(HardWorker) { def self.name = "Changing" }
    job_class.perform_async
    HardWorker.job_options(queue: "changed")
    job_class.perform_async
    assert_equal 1, jobs("changed").size
  ensure
    HardWorker.job_options(queue: "default")
  end

  def test_later_by_the_storages_clock
    HardWorker.perform_in(60, "in")
    HardWorker.perform_at(Time.now + 120, "at")
    HardWorker.set(in: 180).perform_async("set")
    assert_empty jobs
    assert_equal [["in"], ["at"], ["set"]], scheduled.map { |job, _time| job["args"] }
    scheduled.each { |job, _time| assert_equal [false, false], [job.key?("at"), job.key?("enqueued_at")] }
    scheduled.each_with_index { |(_job, time), index| assert_in_delta Time.now.to_f + (60 * (index + 1)), time, 30 }
  end

  def test_at_once_when_no_time_is_left
    HardWorker.perform_in(0)
    HardWorker.perform_in(-5)
    assert_equal 2, jobs.size
  end

  def test_the_last_word_says_when
    HardWorker.set(in: 60).perform_at(5, "at")
    HardWorker.set(at: 5).set(in: 60).perform_async("in")
    assert_equal [["at"], ["in"]], scheduled.map { |job, _time| job["args"] }
  end

  def test_bulk
    jids = HardWorker.perform_bulk((1..2500).lazy.map { |number| [number] })
    assert_equal 2500, jids.uniq.size
    assert_equal((1..2500).to_a, jobs.flat_map { |job| job["args"] })
    assert_equal jids, jobs.map { |job| job["jid"] }
    assert_empty HardWorker.perform_bulk([])
    HardWorker.perform_bulk(%w[a b].each_with_index)
    assert_equal [["a", 0], ["b", 1]], (jobs.last(2).map { |job| job["args"] })
  end

  def test_a_bulk_goes_in_pieces
    sizes = []
    @storage.define_singleton_method(:push) { |all, **options| sizes << all.size && super(all, **options) }
    HardWorker.perform_bulk([[1]] * 2100)
    HardWorker.perform_bulk([["x" * 1_500_000]] * 7)
    assert_equal [1000, 1000, 100, 3, 3, 1], sizes
  end

  def test_a_bulk_that_ends_early_tells_what_is_stored
    all = Array.new(1500) { |number| [number] } << [:symbol] << [0]
    error = assert_raises(Jobs::BulkError) { HardWorker.perform_bulk(all) }
    assert_equal 1501, error.results.size
    assert_equal jobs.map { |job| job["jid"] }, error.results.first(1000)
    assert_equal 501, error.results.grep(Jobs::InvalidJobError).size
    assert_match(/501 of 1501 jobs .*args\[0\] is a Symbol/, error.message)

    Jobs.storage = @storage = Class.new(Jobs::Storage::Memory) do
      define_method(:push) { |all, **| jobs.size == 1000 ? raise(Ringspun::Jobs::StorageError, "full") : super(all) }
      define_method(:jobs) { list("default", 0, 5000) }
    end.new
    error = assert_raises(Jobs::BulkError) { HardWorker.perform_bulk(Array.new(2500) { |number| [number] }) }
    assert_equal 2000, error.results.size
    assert_equal 1000, error.results.grep(Jobs::StorageError).size
  end

  def test_many_of_different_classes
    jids = Jobs.enqueue_all([[HardWorker, 1], ["Elixir.Worker", "x"], [Mail.set(in: 60), 3], [HardWorker, 2]])
    assert_equal 4, jids.uniq.size
    assert_equal [["EnqueueTest::HardWorker", [1]], ["Elixir.Worker", ["x"]], ["EnqueueTest::HardWorker", [2]]],
                 (jobs.map { |job| job.values_at("class", "args") })
    assert_equal(["mail"], scheduled.map { |job, _time| job["queue"] })
  end

  # Notes the jids and the connection of each push.
  def note_pushes
    calls = []
    Jobs.storage = @storage = Class.new(Jobs::Storage::Memory) do
      define_method(:push) do |all, connection: nil|
        calls << [all.map(&:jid), connection]
        super(all)
      end
    end.new
    calls
  end

  def test_by_a_connection_of_the_callers
    calls = note_pushes
    bound = HardWorker.set(connection: :mine)
    jids = [bound.perform_async(1), bound.perform_in(60, 2), bound.set(queue: "mail").perform_at(Time.now + 60, 3),
            bound.perform_bulk([[4], [5]]), Jobs.enqueue_all([[HardWorker, 6], [bound, 7], ["Other"]], connection: :mine),
            bound.set(connection: nil).perform_async(8)]
    assert_equal jids.map { |each| Array(each) }, calls.map(&:first)
    assert_equal [*([:mine] * 5), nil], calls.map(&:last)
    assert_equal [[1], [4], [5], [6], [7], [], [8]], (jobs.map { |job| job["args"] })
  end

  def test_by_a_connection_a_bulk_goes_in_batches_and_middleware_is_called
    calls = note_pushes
    Jobs.config.client_middleware.add(->(_job_class, job, _queue, &block) { block.call unless job["args"] == [3] })
    Mail.set(connection: :mine).perform_bulk(Array.new(1005) { |number| [number] })
    assert_nil Mail.set(connection: :mine).perform_async(3)
    assert_equal [[999, :mine], [5, :mine]], (calls.map { |jids, connection| [jids.size, connection] })
  end

  def test_jobs_that_are_enqueued_together_have_one_connection
    [nil, :other].each do |connection|
      error = assert_raises(Jobs::InvalidJobError) do
        Jobs.enqueue_all([[HardWorker.set(connection: :mine), 1]], connection: connection)
      end
      assert_match(/have one connection: give it to enqueue_all/, error.message)
    end
    assert_empty jobs
  end

  def test_queues_that_no_program_may_have
    ["ringspun-quarantine", "backup::a", "", 5].each do |queue|
      error = assert_raises(Jobs::InvalidJobError) { HardWorker.set(queue: queue) }
      assert_equal "queue must be the name of a queue that programs may have, got #{queue.inspect}", error.message
    end
  end

  def test_a_priority
    jids = [HardWorker.set(priority: 5).perform_async, HardWorker.set(priority: 0).perform_async,
            HardWorker.set(priority: -5, unique_for: 9).perform_async]
    assert_equal([[-5, jids[2]], [nil, jids[1]], [5, jids[0]]], jobs.map { |job| job.values_at("ringspun_priority", "jid") })
    [1.5, "5", nil, 101, -101].each do |value|
      error = assert_raises(Jobs::InvalidJobError) { HardWorker.set(priority: value) }
      assert_match(/\Apriority must be an Integer from -100 to 100, got/, error.message)
    end
  end

  def test_by_name
    assert Jobs.enqueue("Other", 1)
    assert Jobs.enqueue_in(60, "Other", 2)
    assert Jobs.enqueue_at(Time.now + 120, Mail, 3)
    assert Jobs.set("Other", queue: "q").perform_async(4)
    assert_equal ["Other", [1], true], jobs.first.values_at("class", "args", "retry")
    assert_equal(%w[Other EnqueueTest::Mail], scheduled.map { |job, _time| job["class"] })
    assert_equal [[4]], (jobs("q").map { |job| job["args"] })
  end

  def test_a_job_that_is_there_already_is_refused
    jid = Once.perform_async(1, { "a" => 1, "b" => 2 })
    assert_nil Once.perform_async(1, { "b" => 2, "a" => 1 })
    assert Once.perform_async(2)
    assert Once.set(queue: "other").perform_async(1, { "a" => 1, "b" => 2 })
    assert Once.set(unique_for: nil).perform_async(1, { "a" => 1, "b" => 2 })
    job = jobs.first
    assert_equal [60, "success", jid], job.values_at("unique_for", "unique_until", "jid")
    assert_match(/\A\h{64}\z/, job["unique_token"])
  end

  def test_bulk_tells_who_was_refused
    jids = Once.perform_bulk([[1], [1], [2]])
    assert_equal [String, NilClass, String], jids.map(&:class)
  end

  def test_a_token_of_the_callers
    assert HardWorker.set(unique_for: 5, unique_until: :expiry, unique_token: "order-5").perform_async(1)
    assert_nil Mail.set(unique_for: 5, unique_token: "order-5").perform_async(2)
    assert_equal %w[expiry order-5], jobs.first.values_at("unique_until", "unique_token")
  end

  # The storage adds the time until the job is due, by its own clock.
  def test_what_a_lock_lasts
    pushes = pushes_of { Once.perform_in(100, 1) && Once.perform_at(Time.now + 200, 2) && Once.perform_async(3) }
    assert_equal [60, 60, 60], pushes.map(&:lock_seconds)
  end

  def pushes_of
    pushes = []
    @storage.define_singleton_method(:push) { |all, **options| pushes.concat(all) && super(all, **options) }
    yield
    pushes
  end

  def test_what_is_no_job_is_refused
    { -> { Jobs.enqueue(String) } => /String does not include .*give its name/, -> { Jobs.enqueue(5) } => /5 does not include/,
      -> { Jobs.enqueue("") } => /does not include/, -> { Class.new(HardWorker).perform_async } => /no name/,
      -> { Mail.set(quee: 1) } => /no option :quee, did you mean queue\?/, -> { Mail.perform_in("5") } => /in must be a number/,
      -> { Mail.perform_in(Float::NAN) } => /in must be/, -> { Mail.perform_at("now") } => /at must be a Time/,
      -> { Mail.set(in: 5, at: 5) } => /both say when/, -> { Mail.perform_bulk([1]) } => /an Array, got 1/,
      -> { Mail.perform_bulk(1) } => /Array of Arrays/, -> { Jobs.enqueue_all([Mail]) } => /its class and arguments/,
      -> { Jobs.enqueue_all(nil) } => /enqueue_all takes an Array of Arrays, .* got NilClass/,
      -> { Jobs.enqueue_all({ "Other" => 1 }) } => /enqueue_all takes an Array of Arrays, .* got Hash/,
      -> { HardWorker.set(tags: ["\xff"]) } => /tags must be an Array of Strings, in UTF-8, got \["\\xFF"\]/,
      -> { HardWorker.set(unique_for: 5, unique_token: "\xff") } => /unique_token must be a String, in UTF-8, got "\\xFF"/,
      -> { Jobs.enqueue("A\xff") } => /"A\\xFF" is no name of a class/,
      -> { Mail.set(unique_token: 5) } => /unique_token must be/ }.each do |call, reason|
      assert_match reason, assert_raises(Jobs::InvalidJobError, reason.inspect, &call).message
    end
    assert_empty jobs("mail")
  end

  def test_names_in_another_encoding
    HardWorker.set(queue: "ü".encode("ISO-8859-1"), tags: ["ä".encode("ISO-8859-1")]).perform_async
    assert_equal ["ü", ["ä"]], jobs("ü").first.values_at("queue", "tags")
    assert_equal %w[ü], Jobs::Config.new.update(queues: ["ü".encode("ISO-8859-1")]).queues
  end

  # --- middleware ---

  def test_middleware_may_change_a_job
    given = nil
    Jobs.config.client_middleware.add(lambda { |job_class, job, queue, &block|
      given = [job_class, queue]
      job["locale"] = "de"
      job["args"] = [2]
      job["queue"] = "elsewhere"
      block.call
    })
    jid = HardWorker.perform_async(1)
    assert_equal [HardWorker, "default"], given
    assert_equal ["de", [2], jid], jobs("elsewhere").first.values_at("locale", "args", "jid")
    assert_kind_of Float, jobs("elsewhere").first["enqueued_at"]
  end

  def test_middleware_may_stop_a_job
    Jobs.config.client_middleware.add(->(_job_class, job, _queue, &block) { block.call if job["args"] != [2] })
    assert_nil HardWorker.perform_async(2)
    assert_equal [String, NilClass, String], HardWorker.perform_bulk([[1], [2], [3]]).map(&:class)
    assert_equal [[1], [3]], (jobs.map { |job| job["args"] })
  end

  def test_what_middleware_makes_is_checked
    changes = { { "args" => [:a] } => /args\[0\] is a Symbol/, { "args" => 1 } => /must be an Array/,
                { "queue" => "" } => /queue/, { "class" => nil } => /class/, { "unique_for" => "x" } => /unique_for/,
                { "ringspun_priority" => 101 } => /a middleware's ringspun_priority must be an Integer from -100 to 100/ }
    changes.each do |change, reason|
      Jobs.config.client_middleware.clear.add(->(_job_class, job, _queue, &block) { job.update(change) && block.call })
      assert_match reason, assert_raises(Jobs::InvalidJobError) { HardWorker.perform_async }.message
    end
    assert_empty jobs
  end

  def test_middleware_may_make_a_job_unique
    Jobs.config.client_middleware.add(lambda { |_job_class, job, _queue, &block|
      job.update("unique_for" => 60, "unique_until" => "start")
      block.call
    })
    assert HardWorker.perform_async(1)
    assert_nil HardWorker.perform_async(1)
    assert_equal "start", jobs.first["unique_until"]
  end

  # --- the process's own ---

  def test_a_change_of_settings_makes_anew
    before = Jobs.enqueuer
    Jobs.configure { |config| config.strategy = :single }
    assert_predicate before, :closed?
    assert_equal :single, Jobs.enqueuer.strategy
    assert_same @storage, Jobs.storage
  ensure
    Jobs.configure { |config| config.strategy = :group_commit }
  end

  def test_a_signal_handler_is_refused_clearly
    before = trap("USR1") { @error = error_of { HardWorker.perform_async } }
    [-> {}, -> { HardWorker.perform_async }].each do |warm|
      warm.call
      @error = nil
      Process.kill(:USR1, Process.pid)
      Thread.pass until @error
      assert_kind_of Ringspun::UsageError, @error
      assert_match(/a signal handler cannot enqueue/, @error.message)
      Ringspun.run { Process.kill(:USR1, Process.pid) }
      assert_match(/a signal handler cannot enqueue/, @error.message)
    end
    assert_equal 1, jobs.size
  ensure
    trap("USR1", before)
  end

  include Strands

  # As a program does that measures how long jobs wait, and one that dates them back.
  def test_a_middleware_sees_when_a_job_is_enqueued
    seen = []
    Jobs.config.client_middleware.add(->(_class, job, _queue, &block) { (seen << job["enqueued_at"]) && block.call })
    Jobs.storage = @storage
    HardWorker.perform_async
    Once.perform_async
    HardWorker.perform_bulk([[1]])
    HardWorker.perform_in(60)
    assert_equal jobs.map { |job| job["enqueued_at"] }, seen.first(3)
    seen.first(3).each { |time| assert_in_delta Time.now.to_f, time, 60 }
    assert_equal [[nil], [false]], [seen.drop(3), scheduled.map { |job, _| job.key?("enqueued_at") }]
    Jobs.config.client_middleware.add(->(_class, job, _queue, &block) { (job["enqueued_at"] = 5.0) && block.call })
    HardWorker.perform_async
    HardWorker.perform_in(60)
    assert_equal [5.0, [false] * 2], [jobs.last["enqueued_at"], scheduled.map { |job, _| job.key?("enqueued_at") }]
  end

  def test_a_middleware_sees_milliseconds
    seen = nil
    Jobs.config.milliseconds = true
    Jobs.config.client_middleware.add(->(_class, job, _queue, &block) { (seen = job["enqueued_at"]) && block.call })
    Jobs.storage = @storage
    HardWorker.perform_async
    assert_equal [seen, Integer], [jobs.first["enqueued_at"], seen.class]
  ensure
    Jobs.config.milliseconds = false
  end
end
