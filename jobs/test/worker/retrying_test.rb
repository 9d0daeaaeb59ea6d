# frozen_string_literal: true

require "jobs_helper"
require "stringio"

class WorkerRetryingTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs
  Retrying = Jobs::Worker.const_get(:Retrying)
  Outcome = Jobs::Worker.const_get(:Outcome)
  Backtrace = Jobs.const_get(:Backtrace)

  NOW = 1_795_288_827.5

  # Always as little as can be.
  class Least
    def rand(*) = 0
  end

  class Most
    def rand(max) = max - 1
  end

  def setup
    super
    @told = StringIO.new
    @config = Jobs::Config.new
  end

  def retrying(random: Least.new)
    Retrying.new(@config, log: Jobs::Log.new(Logger.new(@told)), random: random, clock: -> { NOW })
  end

  def job(**fields) = { "class" => "Mail", "args" => [1], "queue" => "mail", "jid" => "a1", "retry" => true,
                        **fields.transform_keys(&:to_s) }

  def fetched(job, queue: "mail")
    Jobs::Storage::Fetched.new(queue, job.is_a?(String) ? job : Jobs::Wire.dump(job), "token")
  end

  def outcome(job = self.job, error: raised, klass: nil, queue: "mail", **)
    retrying(**).call(fetched(job, queue: queue), error, klass: klass)
  end

  def raised(klass = RuntimeError, message = "no")
    raise klass, message
  rescue klass => error
    error
  end

  def entry_of(outcome) = JSON.parse(outcome.change.new_entry)

  def job_class(&body)
    Class.new do
      include Jobs::Job
      class_eval(&body) if body
    end
  end

  def test_the_first_failure
    outcome = outcome(job(created_at: 1.0, enqueued_at: 2.0, at: 3.0, tags: ["x"]))
    change = outcome.change
    assert_equal [:retry, "mail", "a1", :retry, 15], [outcome.kind, change.queue, change.jid, change.to, change.delay]
    assert_equal({ "class" => "Mail", "args" => [1], "queue" => "mail", "jid" => "a1", "retry" => true, "created_at" => 1.0,
                   "tags" => ["x"], "failed_at" => NOW, "retry_count" => 0, "error_class" => "RuntimeError",
                   "error_message" => "no" }, entry_of(outcome))
    assert_nil change.lock
  end

  def test_the_next_failures
    outcome = outcome(job(retry_count: 0, failed_at: 5.0, error_class: "IOError", error_message: "old"))
    assert_equal [1, 5.0, NOW, "RuntimeError"],
                 entry_of(outcome).values_at("retry_count", "failed_at", "retried_at", "error_class")
    assert_equal 16, outcome.change.delay
  end

  def test_the_wait_grows_by_the_fourth_power_and_a_jitter
    { -1 => [15, 24], 0 => [16, 34], 1 => [31, 58], 9 => [10_015, 10_114] }.each do |count, (least, most)|
      failed = count.negative? ? job : job(retry_count: count, error_class: "E")
      assert_equal [least, most], [Least, Most].map { |random| outcome(failed, random: random.new).change.delay }
    end
  end

  def test_exq_counts_from_one_and_names_no_error
    entry = job(retry_count: 1, failed_at: 5.0, error_message: "(RuntimeError) oops", error_class: nil, finished_at: nil,
                processor: nil)
    assert_equal [1, 5.0], entry_of(outcome(entry)).values_at("retry_count", "failed_at")
    dead = entry.merge("error_class" => "ExqGenericError", "retry_count" => 3)
    assert_equal 3, entry_of(outcome(dead))["retry_count"]
    assert_equal 0, entry_of(outcome(job(retry_count: 0, failed_at: nil, error_message: nil)))["retry_count"]
  end

  def test_counts_that_are_none
    ["5", -3, 1.5, nil].each { |count|
      assert_equal 0, entry_of(outcome(job(retry_count: count, error_class: "E")))["retry_count"]
    }
  end

  def test_after_the_last_time_it_is_dead
    assert_equal :retry, outcome(job(retry_count: 23, error_class: "E")).kind
    dead = outcome(job(retry_count: 24, error_class: "E", unique_token: "t"))
    assert_equal [:dead, :dead, "t", 25], [dead.kind, dead.change.to, dead.change.lock, entry_of(dead)["retry_count"]]
  end

  def test_how_often_the_entry_says
    { 2 => [1, 2], 0 => [nil, 0], -4 => [nil, 0] }.each do |allowed, (last, dead)|
      at = ->(count) { outcome(job(retry: allowed, **(count.zero? ? {} : { retry_count: count - 1, error_class: "E" }))).kind }
      assert_equal :retry, at.call(last) if last
      assert_equal :dead, at.call(dead)
    end
  end

  def test_how_often_the_class_and_the_configuration_say
    @config.retries = 1
    nothing = job.except("retry")
    assert_equal :retry, outcome(nothing).kind
    assert_equal :dead, outcome(nothing.merge("retry_count" => 0, "error_class" => "E")).kind
    assert_equal :dead, outcome(nothing, klass: job_class { job_options(retry: 0) }).kind
    assert_equal :retry, outcome(job(retry: true), klass: job_class { job_options(retry: 0) }).kind
  end

  def test_one_that_is_not_to_be_tried_again_is_dropped
    outcome = outcome(job(retry: false, unique_token: "t"))
    assert_equal [:dropped, Jobs::Storage::Ack, "t"], [outcome.kind, outcome.change.class, outcome.change.lock]
    refute_nil outcome.error
  end

  def test_one_that_is_not_to_be_kept
    assert_equal :dropped, outcome(job(retry: 0, dead: false)).kind
  end

  def test_tried_again_only_for_so_long
    assert_equal :retry, outcome(job(retry_for: 10, failed_at: NOW - 9, retry_count: 3, error_class: "E")).kind
    assert_equal :dead, outcome(job(retry_for: 10, failed_at: ((NOW - 11) * 1000).to_i, retry_count: 3, error_class: "E")).kind
    assert_equal :retry, outcome(job(retry_for: 10)).kind
    assert_equal :retry, outcome(job(retry: 1, retry_for: 10, failed_at: NOW - 9, retry_count: 3, error_class: "E")).kind
  end

  def test_a_wait_of_ones_own
    seen = nil
    klass = job_class { retry_in { |count, error, job| seen = [count, error.message, job["jid"]] and 7.5 } }
    assert_in_delta 7.5, outcome(job(retry_count: 1, error_class: "E"), klass: klass).change.delay
    assert_equal [2, "no", "a1"], seen
    { nil => 15, "x" => 15, 0 => 15, -3 => 15, Float::NAN => 15, Float::INFINITY => 15 }.each do |value, delay|
      assert_equal delay, outcome(klass: job_class { retry_in { value } }).change.delay, value.inspect
    end
    { dead: :dead, kill: :dead, discard: :dropped }.each do |value, kind|
      assert_equal kind, outcome(klass: job_class { retry_in { value } }).kind
    end
  end

  def test_a_wait_that_cannot_be_is_logged
    outcome(klass: job_class { retry_in { nil } })
    assert_empty @told.string
    ["soon", 0, -3, Float::NAN, :die].each do |value|
      outcome(klass: job_class { retry_in { value } })
      assert_match(/WARN.*answer=#{Regexp.escape(value.inspect)} retry_in gives seconds, more than 0, :dead, :discard or nil$/,
                   @told.string.gsub("\\", "").gsub('""', '"'))
      @told.truncate(0)
    end
  end

  def test_a_wait_that_raises_says_nothing
    assert_equal 15, outcome(klass: job_class { retry_in { raise "oops" } }).change.delay
    assert_match(/oops.*retry_in raises/, @told.string)
  end

  def test_who_is_told_of_the_last_time
    seen = []
    klass = job_class { retries_exhausted { |job, error| seen << [job["error_class"], error.message] } }
    outcome(klass: klass)
    assert_empty seen
    assert_equal :dead, outcome(job(retry: 0), klass: klass).kind
    assert_equal [%w[RuntimeError no]], seen
    assert_equal :dropped, outcome(job(retry: 0), klass: job_class { retries_exhausted { :discard } }).kind
    assert_equal :dead, outcome(job(retry: 0), klass: job_class { retries_exhausted { raise "oops" } }).kind
    assert_match(/oops.*retries_exhausted raises/, @told.string)
  end

  def test_the_backtrace_that_is_wanted
    assert_nil entry_of(outcome)["error_backtrace"]
    error = raised
    assert_equal error.backtrace, Backtrace.load(entry_of(outcome(job(backtrace: true), error: error))["error_backtrace"])
    assert_equal error.backtrace.first(2),
                 Backtrace.load(entry_of(outcome(job(backtrace: 2), error: error))["error_backtrace"])
    refute_operator entry_of(outcome(job(backtrace: 2), error: RuntimeError.new("never raised"))), :key?, "error_backtrace"
  end

  def test_messages_that_are_not_good
    rude = Class.new(StandardError) { def message = raise("no message") }
    assert_equal "its message raises RuntimeError", entry_of(outcome(error: raised(rude)))["error_message"]
    assert_equal "a\u{fffd}", entry_of(outcome(error: RuntimeError.new("a\xff")))["error_message"]
    assert_equal "\u{fffd}", entry_of(outcome(error: RuntimeError.new("\xff".b)))["error_message"]
    assert_equal 10_000, entry_of(outcome(error: RuntimeError.new("x" * 20_000)))["error_message"].size
    assert_match(/#<Class/, entry_of(outcome(error: raised(Class.new(StandardError))))["error_class"])
  end

  def test_into_which_queue_it_comes_again
    assert_equal "mail", entry_of(outcome(job, queue: Jobs::Storage::QUARANTINE))["queue"]
    assert_equal "slow", entry_of(outcome(job(retry_queue: "slow")))["queue"]
    assert_equal "mail", entry_of(outcome(job.except("queue")))["queue"]
    assert_equal "default", entry_of(outcome(job.except("queue"), queue: Jobs::Storage::QUARANTINE))["queue"]
  end

  def test_the_arguments_are_those_of_the_entry
    text = '{"class":"Mail","args":[{"a":[]}],"queue":"mail","jid":"a1"}'
    assert_equal [{ "a" => [] }], entry_of(outcome(text))["args"]
  end

  # JSON reads them as Infinity, for which it has no word.
  def test_numbers_that_are_too_large_stay_as_they_are
    text = '{"class":"Mail","args":[1e400,-2.5E+999,1.5],"queue":"mail","jid":"a1","retry_for":1e400,"failed_at":1e999}'
    outcome = outcome(text)
    assert_equal :retry, outcome.kind
    assert_match(/\A{"class":"Mail","args":\[1e400,-2.5E\+999,1.5\],"queue":"mail","jid":"a1","retry_for":1e400,/,
                 outcome.change.new_entry)
    malformed = retrying.malformed(fetched("[1e400]"), Jobs::MalformedEntryError.new("no job"))
    assert_match(/\A{"args":\[\[1e400\]\],"error_class":/, malformed.change.new_entry)
  end

  def test_times_in_milliseconds
    @config.milliseconds = true
    assert_equal 1_795_288_827_500, entry_of(outcome)["failed_at"]
  end

  def test_the_lock_until_it_is_done_with
    locks = [nil, "success", "start", "expiry"].map { |till| Outcome.lock_of(job(unique_token: "t", unique_until: till)) }
    assert_equal ["t", "t", nil, nil], locks
    assert_nil Outcome.lock_of(job(unique_token: 5))
  end

  def test_what_is_no_job
    error = Jobs::MalformedEntryError.new("no jid")
    outcome = retrying.malformed(fetched('{"class":"A","x":1}'), error)
    assert_equal [:malformed, :dead, nil], [outcome.kind, outcome.change.to, outcome.change.jid]
    assert_equal({ "class" => "A", "x" => 1, "error_class" => "Ringspun::Jobs::MalformedEntryError", "error_message" => "no jid",
                   "failed_at" => NOW }, entry_of(outcome))
    ["nonsense", "", "\xff"].each { |entry| assert_equal entry, retrying.malformed(fetched(entry), error).change.new_entry }
    { "[1]" => [1], "null" => nil, "7" => 7 }.each do |entry, value|
      dead = entry_of(retrying.malformed(fetched(entry), error))
      assert_equal [[value], "no jid"], dead.values_at("args", "error_message")
    end
  end
end
