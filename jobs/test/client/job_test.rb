# frozen_string_literal: true

require "jobs_helper"

class JobTest < Minitest::Test
  include AnyBackend

  InvalidJobError = Ringspun::Jobs::InvalidJobError

  def job_class(parent = Object, &body)
    Class.new(parent) do
      include Ringspun::Jobs::Job
      class_eval(&body) if body
    end
  end

  def test_options_of_a_class
    assert_equal({ queue: "default", retry: true }, job_class.options)
    mail = job_class { job_options(queue: :mail, retry: 5, unique_for: 60, unique_until: :start, tags: [:a]) }
    assert_equal({ queue: "mail", retry: 5, unique_for: 60, unique_until: "start", tags: ["a"] }, mail.options)
    assert_predicate mail.options, :frozen?
  end

  def test_options_are_inherited_and_said_piece_by_piece
    parent = job_class { job_options(queue: "mail") }
    child = job_class(parent) { job_options(retry: false) }
    assert_equal({ queue: "mail", retry: false }, child.options)
    parent.job_options(tags: ["later"])
    child.job_options(queue: "other")
    assert_equal({ queue: "other", retry: false, tags: ["later"] }, child.options)
    assert_equal({ queue: "mail", retry: true, tags: ["later"] }, parent.options)
  end

  def test_options_that_cannot_be_are_refused
    { { quee: "a" } => /no option :quee, did you mean queue\?/, { queue: "" } => /queue must be/, { queue: 5 } => /got 5/,
      { queue: "\xff" } => /queue must be/, { retry: -1 } => /retry must be/, { retry: "yes" } => /retry must be/,
      { retry_queue: "" } => /retry_queue/, { retry_for: 0 } => /retry_for must be/,
      { keep_result: 1e17 } => /keep_result must be at most 31622400 s, a year/,
      { dead: nil } => /dead must be/, { backtrace: 0 } => /backtrace must be/,
      { unique_for: 0 } => /unique_for must be/, { unique_for: "60" } => /unique_for/, { unique_until: :end } => /success, start/,
      { deaths: -1 } => /deaths must be how often/,
      { tags: "a" } => /an Array of Strings/, { at: 5 } => /no option :at/ }.each do |options, reason|
      error = assert_raises(InvalidJobError, options.inspect) { job_class.job_options(**options) }
      assert_match reason, error.message
    end
  end

  def test_how_often_a_job_may_end_its_process_stands_in_its_entry
    entry = ->(**options) { template_class.new("A", { queue: "default", **options }).job([], false)["ringspun_deaths"] }
    assert_equal [nil, 0, 7], [entry.call, entry.call(deaths: 0), entry.call(deaths: 7)]
  end

  def template_class = Ringspun::Jobs.const_get(:Template)

  def test_what_a_class_says_of_failures_is_inherited
    parent = job_class do
      retry_in { |count, _error, _job| count * 10 }
      retries_exhausted { |job, _error| job["jid"] }
    end
    child = job_class(parent)
    assert_equal 30, child.retry_in.call(3, nil, {})
    assert_equal "x", child.retries_exhausted.call({ "jid" => "x" }, nil)
    child.retry_in { 1 }
    assert_equal 1, child.retry_in.call(3, nil, {})
    assert_equal 30, parent.retry_in.call(3, nil, {})
    assert_nil job_class.retry_in
    assert_nil job_class.retries_exhausted
  end

  def test_a_snooze_passes_by_the_jobs_own_rescue
    snoozing = job_class do
      define_method(:perform) do
        snooze 5
      rescue StandardError
        :failed
      end
    end
    error = assert_raises(Ringspun::Jobs::Snooze) { snoozing.new.perform }
    assert_in_delta 5.0, error.seconds
    assert_raises(InvalidJobError) { snoozing.new.snooze("soon") }
  end

  def test_an_instance
    job = job_class.new
    assert_nil job.jid
    job.jid = "abc"
    assert_equal "abc", job.jid
    refute_predicate job, :cancelled?
    job.mark_cancelled
    assert_predicate job, :cancelled?
  end
end
