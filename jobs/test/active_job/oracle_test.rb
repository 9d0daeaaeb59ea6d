# frozen_string_literal: true

require "jobs_helper"
require "active_support"
require "active_support/core_ext"
require "bigdecimal"
require "ringspun/jobs/active_job"
require "support/active_job_case"

# What the public methods of Active Job do by our adapter and a worker, beside Rails' own adapter for tests, which runs each job
# as soon as it is enqueued. Active Job's own suite is no part of its gem.
class ActiveJobOracleTest < ActiveJobCase
  Oracle = ActiveJob::QueueAdapters::TestAdapter

  class Refused < StandardError; end
  class Dropped < StandardError; end
  class Unknown < StandardError; end

  class Base < ActiveJob::Base
    def self.name = "ActiveJobOracleTest::#{super[/\w+\z/]}"

    def note(*all) = ActiveJobCase.done << [self.class.name[/\w+\z/], *all]
  end

  class Called < Base
    before_enqueue { note(:before_enqueue) }
    around_enqueue { |_job, block| [note(:around_enqueue), block.call, note(:enqueued)] }
    after_enqueue { note(:after_enqueue, successfully_enqueued?) }
    before_perform { note(:before_perform, queue_name, priority, executions) }
    around_perform { |_job, block| [note(:around_perform), block.call, note(:performed)] }
    after_perform { note(:after_perform) }

    def perform(*values, **options) = note(:perform, values, options)
  end

  class Stopped < Base
    before_enqueue { throw :abort if arguments.first == :enqueue }
    before_perform { throw :abort if arguments.first == :perform }

    def perform(how) = note(how)
  end

  class Failing < Base
    retry_on(Refused, wait: 0, attempts: 3) { |job, error| job.note(:gave_up, error.message, job.executions) }
    discard_on(Dropped) { |job, error| job.note(:dropped, error.message) }
    rescue_from(Unknown) { |error| note(:rescued, error.message) }
    after_discard { |job, error| job.note(:after_discard, error.class.name) }

    def perform(error, times)
      note(:try, executions, exception_executions.dup)
      raise error.constantize, "at #{executions}" if executions <= times
    end
  end

  class Here < Base
    def perform = note(I18n.locale, Time.zone&.name, Time.zone&.utc_offset)
  end

  class Steps < Base
    include ActiveJob::Continuable

    def perform
      step(:first) { note(:first) }
      step(:each, start: 1) { |step| 3.times { note(:each, step.cursor).then { step.advance! } } }
      step(:last)
    end

    def last = note(:last)
  end

  Named = Struct.new(:name)

  class NamedSerializer < ActiveJob::Serializers::ObjectSerializer
    def serialize(named) = super("name" => named.name)

    def deserialize(hash) = Named.new(hash["name"])

    def klass = Named
  end

  VALUES = [
    nil, true, false, 1, -(2**70), 1.5, "text \u{1f642}", :symbol, BigDecimal("1.10"), Date.new(2026, 2, 28),
    Time.at(1.25r).utc, DateTime.new(2026, 1, 2, 3, 4, 5.5r), ActiveSupport::TimeZone["Tokyo"].at(1.125r), 90.seconds,
    1.month + 1.day,
    [1, [2, { "a" => :b }]], { a: 1, "b" => { c: [nil] } }, { 1.5 => 2 }.transform_keys(&:to_s), 1..3, (1...), ("a".."c"), String,
    ActiveSupport::HashWithIndifferentAccess.new(x: 1), Named.new("own")
  ].freeze

  def teardown
    ActiveJob::Base.queue_name_prefix = nil
    Time.zone = nil
    super
  end

  # Until nothing is left to be done now or later.
  def work_all
    worker = Jobs::Worker.new(Jobs::Config.new.update({ queues: %w[*] }), storage: @storage, logger: Logger.new(nil))
    Ringspun.run do |machine|
      running = machine.spin { worker.run }
      machine.sleep(0.001) until nothing_left? && worker.busy.zero?
      worker.stop
      running.join
    end
  end

  def nothing_left? = @storage.stats.values_at(:enqueued, :in_flight, :scheduled, :retries).sum.zero?

  # @return [Array] what the block's jobs have noted with our adapter, after it was seen to be what they note with Rails' own.
  #   There a job begins within the call that enqueues it.
  def same
    own = noted(at_once) { yield.inspect }
    ours = noted(:ringspun) { yield.inspect.tap { work_all } }
    assert_equal parts(own), parts(ours)
    ours.drop(1)
  end

  def at_once = Oracle.new.tap { |one| one.perform_enqueued_jobs = one.perform_enqueued_at_jobs = true }

  def noted(adapter)
    done.clear
    ActiveJob::Base.queue_adapter = adapter
    [yield, *done]
  end

  def parts(noted) = noted.partition { |_, what| what.to_s.match?(/enqueue/) }

  def test_callbacks
    assert_equal 9, same { Called.perform_later(1, a: 2).successfully_enqueued? }.size
    same { Called.set(queue: :low, priority: 7, wait: 0).perform_later.priority }
    same { Called.set(wait_until: Time.now - 1).perform_later.queue_name }
    same { Called.perform_now(1) && nil }
    same { Called.new(1).enqueue(queue: "other").queue_name }
    same { ActiveJob.perform_all_later(Called.new(1), Called.new(2, b: 3)) }
    same { %i[enqueue perform none].map { |how| Stopped.perform_later(how).respond_to?(:job_id) } }
  end

  def test_each_type_of_argument
    ActiveJob::Serializers.add_serializers(NamedSerializer) unless ActiveJob::Serializers.serializers.include?(NamedSerializer.instance)
    VALUES.each do |value|
      given = same { Called.perform_later([value]) && nil }.find { |_, what| what == :perform }[2]
      assert_equal [[[value]], value.class], [given, given.dig(0, 0).class], value.inspect
    end
    same { Called.perform_later({ "a" => 1 }, b: { c: 2 }, **{ d: [] }) && nil }
    error = assert_raises(ActiveJob::SerializationError) { Called.perform_later(Object.new) }
    assert_match(/Unsupported argument type: Object/, error.message)
  end

  def test_errors
    [[Refused, 1], [Refused, 9], [Dropped, 1], [Unknown, 1]].each do |error, times|
      same { Failing.perform_later(error.name, times) && nil }
    end
    noted = same { Failing.perform_later(Refused.name, 9) && nil }.map { |_, what| what }
    assert_equal({ try: 3, gave_up: 1, after_discard: 1 }, noted.tally)
  end

  def test_locale_and_zone_come_along
    I18n.available_locales |= %i[en de]
    same { I18n.with_locale(:de) { Time.use_zone("Tokyo") { Here.perform_later && nil } } }
    assert_equal [["Here", :de, "Tokyo", 32_400]], done
  end

  def test_names_of_queues
    ActiveJob::Base.queue_name_prefix = "app"
    job = self.class.const_set(:Prefixed, Class.new(Called) { queue_as { arguments.first == 1 ? :one : :other } })
    noted = same { [1, 2].map { |number| job.perform_later(number).queue_name } }
    assert_equal %w[app_one app_other], noted.select { |_, what| what == :before_perform }.map { |_, _, queue| queue }
  ensure
    self.class.__send__(:remove_const, :Prefixed)
  end

  def test_steps
    assert_equal %w[first each each each last], same { Steps.perform_later && nil }.map { |_, what| what.to_s }
  end

  def test_what_is_instrumented
    own, ours = [at_once, :ringspun].map do |adapter|
      seen = []
      note = ->(name, *, payload) { seen << "#{name} #{payload[:job].class} #{payload[:error].inspect}" }
      ActiveSupport::Notifications.subscribed(note, /active_job/) do
        noted(adapter) { Failing.perform_later(Refused.name, 1).then { work_all if adapter == :ringspun } }
      end
      seen.sort
    end
    assert_equal own, ours
  end

  # What Rails' helper for tests expects of a test.
  class TestBase
    include Minitest::Assertions

    attr_accessor :assertions

    def initialize(adapter)
      @assertions = 0
      @adapter = adapter
    end

    def before_setup = nil
    def after_teardown = nil
  end

  # A test of a program.
  class ProgramTest < TestBase
    include ActiveJob::TestHelper

    def queue_adapter_for_test = @adapter

    def self.run_with(adapter)
      test = new(adapter)
      test.before_setup
      yield test
    ensure
      test.after_teardown
    end
  end

  def test_the_helper_for_tests_keeps_jobs_from_our_storage
    ProgramTest.run_with(Oracle.new) do |test|
      test.assert_enqueued_with(job: Called, args: [1, { b: 2 }], queue: "low", priority: 7) do
        Called.set(queue: :low, priority: 7).perform_later(1, b: 2)
      end
      test.assert_enqueued_jobs(2, only: Stopped) { ActiveJob.perform_all_later(Stopped.new(:a), Stopped.new(:b), Called.new) }
      test.assert_performed_jobs(4) { test.perform_enqueued_jobs }
      test.assert_no_enqueued_jobs
    end
    assert_equal 0, @storage.calls
    Called.perform_later
    assert_equal [1, 1], [@storage.calls, entries.size]
  end

  # As with any adapter that is not Rails' own for tests. Without one for tests, the adapter that the program has set stays.
  def test_the_helper_for_tests_with_our_adapter
    ProgramTest.run_with(nil) do |test|
      Called.perform_later(1)
      assert_equal 1, entries.size
      %i[assert_enqueued_jobs assert_performed_jobs].each do |name|
        error = assert_raises(ArgumentError) { test.public_send(name, 1) }
        assert_match(/requires the Active Job test adapter, you're using .*RingspunAdapter/, error.message)
      end
      work_all
      assert_includes done, ["Called", :perform, [1], {}]
    end
  end
end
