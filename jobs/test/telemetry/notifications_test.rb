# frozen_string_literal: true

require "jobs_helper"
require "support/telling_program"

# Events of ActiveSupport::Notifications.
class NotificationsTest < Minitest::Test
  include AnyBackend
  include TellingProgram

  LISTEN = <<~'RUBY'
    require "active_support"
    require "active_support/notifications"
    events = []
    ActiveSupport::Notifications.subscribe(/\.ringspun_jobs\z/) { |event| events << event }
  RUBY

  def test_enqueue
    events = told(<<~RUBY)
      #{LISTEN}
      Work.set(queue: "slow").perform_async("a", 1)
      Ringspun::Jobs.enqueue_in(60, "Other", 2)
      Work.perform_bulk([[1], [2]])
      Ringspun::Jobs.config.client_middleware.add(->(*) { nil })
      Work.perform_async("stopped")
      jid = Ringspun::Jobs.storage.list("slow", 0, 1).first.entry[/"jid":"(\\h+)"/, 1]
      puts JSON.generate([jid, *events.map { |event| [event.name, event.payload] }])
    RUBY
    jid, one, other, many, stopped = events
    assert_equal ["enqueue.ringspun_jobs", { "class" => "Work", "queue" => "slow", "arguments" => ["a", 1], "jid" => jid }], one
    assert_equal %w[enqueue.ringspun_jobs Other], [other.first, other.last["class"]]
    assert_equal ["enqueue_all.ringspun_jobs", 2, 2], [many.first, many.last["count"], many.last["jids"].uniq.size]
    assert_nil stopped.last["jid"]
  end

  def test_a_job_of_active_job
    events = told(<<~RUBY)
      require "ringspun/jobs/active_job"
      #{LISTEN}
      ActiveJob::Base.logger = Logger.new(nil)
      class Later < ActiveJob::Base
        self.queue_adapter = :ringspun
        def perform(*) = nil
      end
      Later.perform_later(1)
      work(1)
      puts JSON.generate(events.map { |event| [event.name, event.payload[:class] || event.payload[:job]["wrapped"]] })
    RUBY
    assert_equal [%w[enqueue.ringspun_jobs Later], %w[perform.ringspun_jobs Later]], events
  end

  def test_an_enqueue_that_fails
    name, error = told(<<~RUBY)
      #{LISTEN}
      Ringspun::Jobs.storage.define_singleton_method(:push) { |*, **| raise Ringspun::Jobs::UnavailableError, "away" }
      Work.perform_async("a") rescue nil
      puts JSON.generate([events.first.name, events.first.payload[:exception]])
    RUBY
    assert_equal ["enqueue.ringspun_jobs", ["Ringspun::Jobs::UnavailableError", "away"]], [name, error]
  end

  def test_runs
    events = told(<<~RUBY)
      #{LISTEN}
      Work.perform_async("a")
      Work.perform_async("fail")
      Work.set(retry: 0).perform_async("fail")
      Work.set(retry: 0, dead: false).perform_async("fail")
      events.clear
      work(4)
      puts JSON.generate(events.map { |event|
        [event.name, *event.payload.values_at(:queue, :delay), event.payload[:job]["args"], event.payload[:exception_object]&.message,
         event.payload[:error]&.message]
      })
    RUBY
    name = ->(event) { "#{event}.ringspun_jobs" }
    assert_equal [[name["perform"], "default", nil, ["a"], nil, nil],
                  *[[name["perform"], "default", nil, ["fail"], "no luck", nil]] * 3,
                  [name["dead"], "default", nil, ["fail"], nil, "no luck"],
                  [name["dropped"], "default", nil, ["fail"], nil, "no luck"],
                  [name["retry"], "default", 3600, ["fail"], nil, "no luck"]].sort_by(&:to_s), events.sort_by(&:to_s)
  end

  # Each has its own, although all run on one thread: the long one begins first, and goes on when the short one has ended.
  def test_the_durations_of_runs_at_the_same_time
    durations = told(<<~RUBY)
      #{LISTEN}
      BLOCKS["long"] = lambda do
        sleep 0.001 while events.empty?
        sleep 0.1
      end
      BLOCKS["short"] = -> { sleep 0.001 }
      Work.perform_async("block", "long")
      Work.perform_async("block", "short")
      events.clear
      work(2)
      puts JSON.generate(events.map { |event| [event.payload[:job]["args"].last, event.duration] })
    RUBY
    assert_equal %w[short long], durations.map(&:first)
    assert_operator durations.last.last - durations.first.last, :>, 50
  end

  # Whoever listens must not break the worker.
  def test_a_listener_that_raises
    lines = told(<<~'RUBY')
      require "active_support"
      require "active_support/notifications"
      require "stringio"
      ActiveSupport::Notifications.subscribe("retry.ringspun_jobs") { raise "broken" }
      Work.perform_async("fail")
      log = StringIO.new
      work(1, Logger.new(log))
      puts JSON.generate([log.string.scan(/who listens to retry raises/).size, Ringspun::Jobs.storage.stats[:retries]])
    RUBY
    assert_equal [1, 1], lines
  end
end
