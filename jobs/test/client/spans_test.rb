# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/testing/assertions"
require "support/spans"

Ringspun::Jobs::Testing.real! # for the other tests of this process

# Every method and setting that takes a span of time reads it in the same way, see runtime/test/machine/spans_test.rb. The
# signatures name them, so a new one cannot be forgotten here.
class JobsSpansTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs

  class Mail
    include Jobs::Job

    def perform = nil
  end

  # The lambdas answer what has become of the span. A limit makes 0 of a negative one, and others refuse it.
  LIMITS = {
    ".enqueue_in seconds" => ->(span) { delay { Jobs.enqueue_in(span, Mail) } },
    "Job::ClassMethods#perform_in seconds" => ->(span) { delay { Mail.perform_in(span) } },
    "Job::ClassMethods#set in" => ->(span) { delay { Mail.set(in: span).perform_async } },
    "BoundJob#perform_in seconds" => ->(span) { delay { Mail.set(queue: "mail").perform_in(span) } },
    "Job#snooze seconds" => ->(span) { snoozed { Mail.new.snooze(span) } },
    "Enqueuer#initialize pool_timeout" => lambda do |span|
      Jobs::Enqueuer.new(Jobs::Storage::Memory.new, strategy: :pool, pool_timeout: span).close
    end,
    "Quarantine#initialize grace" => ->(span) { Jobs::Quarantine.new(grace: span) && :made },
    "Storage::Memory#initialize history" => ->(span) { Jobs::Storage::Memory.new(history: span) && :made },
    "Storage::Redis#initialize history" => ->(span) { Jobs::Storage::Redis.new({}, history: span).close || :made },
    "Testing::Assertions#assert_enqueued in" => ->(span) { found { assert_enqueued(Mail, in: span) } },
    "Testing::HaveEnqueued#in seconds" => ->(span) { found { Jobs::Testing.const_get(:Query).new(Mail, { in: span }).among(records).size } }
  }.freeze
  SETTINGS = {
    "Config#beat=" => ->(span) { config.tap { |all| all.beat = span }.beat },
    "Config#dead_seconds=" => ->(span) { config.tap { |all| all.dead_seconds = span }.dead_seconds },
    "Config#history=" => ->(span) { config.tap { |all| all.history = span }.history },
    "Config#keep_done=" => ->(span) { config.tap { |all| all.keep_done = span }.keep_done },
    "Config#lease=" => ->(span) { config.tap { |all| all.lease = span }.lease },
    "Config#pool_timeout=" => ->(span) { config.tap { |all| all.pool_timeout = span }.pool_timeout },
    "Config#timeout=" => ->(span) { config.tap { |all| all.timeout = span }.timeout },
    "Job::ClassMethods#job_options keep_result" => ->(span) { options(keep_result: span) },
    "Job::ClassMethods#job_options retry_for" => ->(span) { options(retry_for: span) },
    "Job::ClassMethods#job_options unique_for" => ->(span) { options(unique_for: span) },
    "Job::ClassMethods#set keep_result" => ->(span) { entry { Mail.set(keep_result: span).perform_async }["keep_result"] },
    "Job::ClassMethods#set retry_for" => ->(span) { entry { Mail.set(retry_for: span).perform_async }["retry_for"] },
    "Job::ClassMethods#set unique_for" => ->(span) { entry { Mail.set(unique_for: span).perform_async }["unique_for"] }
  }.freeze

  # What the library passes to its own rooms: plain numbers, which the methods above have read.
  OURS = /\A(Log#|Snooze#initialize|Storage[#:]|Testing::Record|Wire\.)/

  def test_every_span_of_the_signatures_has_a_row
    said = Spans.said_in("jobs").map { |name| name.sub(/\ARingspun::Jobs(::)?/, "") }
    rows = LIMITS.keys + SETTINGS.keys
    assert_equal said.reject { |name| OURS.match?(name) && !rows.include?(name) }, rows.sort
  end

  LIMITS.each do |name, row|
    define_method("test_limit_#{name}") do
      expected = outcome(row, 0)
      Spans::PASSED.each { |span| assert_equal expected, outcome(row, span), span.inspect }
      take(row, [])
    end
  end

  SETTINGS.each do |name, row|
    define_method("test_setting_#{name}") { take(row, [-1, -Float::INFINITY, Spans::Duration.new(-1)]) }
  end

  private

  include Jobs::Testing::Assertions

  # All spellings of the same span do the same, and what is none is refused.
  def take(row, wrong)
    expected = outcome(row, 60)
    Spans.spellings(60).each { |span| assert_equal expected, outcome(row, span), span.inspect }
    [*Spans::WRONG, *wrong].each do |span|
      assert_includes [Jobs::ConfigError, Jobs::InvalidJobError, Ringspun::UsageError], outcome(row, span), span.inspect
    end
  end

  def outcome(row, span)
    [instance_exec(span, &row)]
  rescue Ringspun::Error => error
    error.class
  end

  def config = Jobs::Config.new
  def options(**options) = Class.new { include Jobs::Job }.job_options(**options).slice(*options.keys)
  def records = Jobs::Testing.records

  def record
    Jobs::Testing.fake! do
      yield
      records.last
    ensure
      Jobs::Testing.clear_all
    end
  end

  def snoozed
    yield
  rescue Jobs::Snooze => snooze
    snooze.seconds
  end

  def delay(&) = record(&).delay
  def entry(&) = record(&).to_h

  # A job in a minute is enqueued.
  def found
    Jobs::Testing.fake! do
      Mail.perform_in(60)
      yield
      :found
    rescue Minitest::Assertion
      :none
    ensure
      Jobs::Testing.clear_all
    end
  end
end
