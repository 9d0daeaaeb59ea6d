# frozen_string_literal: true

require "jobs_helper"
require "support/telling_program"

# Who hears of runs that fail.
class ErrorHandlersTest < Minitest::Test
  include AnyBackend
  include TellingProgram

  def test_each_failed_run
    calls = told(<<~'RUBY')
      calls = []
      Ringspun::Jobs.config.error_handlers << ->(error, job, context) { calls << [error.message, job["class"], job["retry_count"], context] }
      Work.perform_async("a")
      Work.perform_async("snooze")
      Work.perform_async("fail")
      Work.set(retry: 0, queue: "default").perform_async("fail")
      Work.set(retry: 0, dead: false).perform_async("fail")
      Ringspun::Jobs.enqueue("Nobody", 1)
      work(6)
      puts JSON.generate(calls)
    RUBY
    assert_equal [["no luck", "Work", 0, { "outcome" => "dead", "queue" => "default", "delay" => nil }],
                  ["no luck", "Work", 0, { "outcome" => "dropped", "queue" => "default", "delay" => nil }],
                  ["no luck", "Work", 0, { "outcome" => "retry", "queue" => "default", "delay" => 3600 }]],
                 calls.select { |call| call[1] == "Work" }.sort_by(&:to_s)
    assert_match(/there is no class Nobody/, calls.find { |call| call[1] == "Nobody" }.first)
  end

  def test_one_that_raises_or_waits
    log, stats = told(<<~'RUBY')
      require "stringio"
      heard = []
      handlers = Ringspun::Jobs.config.error_handlers
      handlers << ->(*) { raise NotImplementedError, "broken" }
      handlers << ->(error, *) { sleep 0.01; heard << error.message }
      2.times { Work.perform_async("fail") }
      log = StringIO.new
      work(2, Logger.new(log))
      puts JSON.generate([log.string.scan(/an error handler raises/).size, [heard, Ringspun::Jobs.storage.stats[:retries]]])
    RUBY
    assert_equal [2, [["no luck", "no luck"], 2]], [log, stats]
  end

  # The way of the guide.
  def test_the_error_reporter_of_rails
    reports = told(<<~'RUBY')
      require "active_support"
      require "active_support/error_reporter"
      reporter = ActiveSupport::ErrorReporter.new
      reports = []
      subscriber = Object.new
      subscriber.define_singleton_method(:report) do |error, handled:, severity:, context:, source:|
        reports << [error.message, handled, severity, context, source]
      end
      reporter.subscribe(subscriber)
      Ringspun::Jobs.config.error_handlers << lambda do |error, job, context|
        reporter.report(error, handled: context[:outcome] == :retry, context: { job: job["class"] }, source: "ringspun.jobs")
      end
      Work.perform_async("fail")
      work(1)
      puts JSON.generate(reports)
    RUBY
    *first, context, source = reports.fetch(0)
    assert_equal [1, ["no luck", true, "warning"], "Work", "ringspun.jobs"], [reports.size, first, context["job"], source]
  end

  # As Sentry's own transport for tests has it; the way of the guide.
  def test_sentry
    events = told(<<~'RUBY')
      require "sentry-ruby"
      Sentry.init do |config|
        config.dsn = "http://12345:67890@sentry.localdomain/sentry/42"
        config.transport.transport_class = Sentry::DummyTransport
        config.background_worker_threads = 0
        config.sdk_logger = Logger.new(nil)
        config.auto_session_tracking = false
      end
      Ringspun::Jobs.config.error_handlers << lambda do |error, job, context|
        Sentry.capture_exception(error, tags: { job: job["class"], queue: context[:queue] },
                                        contexts: { job: job.slice("jid", "args", "retry_count") })
      end
      Work.perform_async("fail")
      Work.set(queue: "default").perform_async("fail", 2)
      work(2)
      puts JSON.generate(Sentry.get_current_client.transport.events.map { |event|
        [event.exception.values.first.type, event.exception.values.first.value, event.tags, event.contexts[:job]]
      })
    RUBY
    assert_equal [["ArgumentError", { "job" => "Work", "queue" => "default" }]] * 2,
                 events.map { |type, _, tags, _| [type, tags.slice("job", "queue")] }
    assert_equal [["fail"], ["fail", 2]], events.map { |event| event.last["args"] }.sort_by(&:size)
    assert_match(/no luck/, events.first[1])
  end
end
