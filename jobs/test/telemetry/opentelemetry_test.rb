# frozen_string_literal: true

require "jobs_helper"
require "support/telling_program"

# Spans of the real gem, kept in memory.
class OpentelemetryTest < Minitest::Test
  include AnyBackend
  include TellingProgram

  SPANS = <<~'RUBY'
    require "opentelemetry/sdk"
    EXPORTER = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    OpenTelemetry::SDK.configure do |config|
      config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(EXPORTER))
    end
    TRACER = OpenTelemetry.tracer_provider.tracer("test")

    def span(name, &) = TRACER.in_span(name, &)

    def spans
      EXPORTER.finished_spans.map do |span|
        { name: span.name, kind: span.kind, id: span.hex_span_id, parent: span.hex_parent_span_id, trace: span.hex_trace_id,
          attributes: span.attributes, status: span.status.code, error: span.status.description,
          events: span.events.to_a.map { |event| event.attributes["exception.message"] } }
      end
    end
  RUBY

  def spans(program) = told("#{SPANS}#{program}\nputs JSON.generate(spans)")

  def named(spans, name) = spans.select { |span| span["name"] == name }

  def test_from_whoever_enqueues_to_the_run
    spans = spans(<<~'RUBY')
      BLOCKS["inner"] = -> { sleep 0.001; span("inner") { nil } }
      span("request") { Work.set(queue: "default").perform_async("block", "inner") }
      work(1)
    RUBY
    names = ["request", "enqueue default", "perform default", "inner"]
    request, enqueue, perform, inner = names.map { |name| named(spans, name).first }
    assert_equal [4, 1], [spans.size, spans.map { |span| span["trace"] }.uniq.size]
    assert_equal [request, enqueue, perform].map { |span| span["id"] }, [enqueue, perform, inner].map { |span| span["parent"] }
    assert_equal %w[producer consumer], [enqueue["kind"], perform["kind"]]
    jid = perform["attributes"].fetch("messaging.message.id")
    assert_equal({ "messaging.system" => "ringspun_jobs", "messaging.destination.name" => "default",
                   "messaging.operation.name" => "enqueue", "messaging.operation.type" => "send",
                   "messaging.ringspun_jobs.job_class" => "Work", "messaging.message.id" => jid }, enqueue["attributes"])
    assert_equal({ "messaging.system" => "ringspun_jobs", "messaging.destination.name" => "default",
                   "messaging.operation.name" => "perform", "messaging.operation.type" => "process",
                   "messaging.ringspun_jobs.job_class" => "Work", "messaging.message.id" => jid }, perform["attributes"])
  end

  # Many on one thread, each with its own.
  def test_runs_at_the_same_time
    spans = spans(<<~'RUBY')
      BLOCKS["wait"] = -> { span("before") { sleep 0.01 }; span("after") { sleep 0.005 } }
      20.times { |number| span("request") { Work.perform_async("block", "wait", number) } }
      work(20)
    RUBY
    assert_equal 100, spans.size
    traces = spans.group_by { |span| span["trace"] }.each_value
    names = ["after", "before", "enqueue default", "perform default", "request"]
    assert_equal [names] * 20, traces.map { |all| all.map { |span| span["name"] }.sort }
    traces.each do |all|
      perform = named(all, "perform default").first
      assert_equal [perform["id"]] * 2, [*named(all, "before"), *named(all, "after")].map { |span| span["parent"] }
    end
  end

  def test_a_strand_inherits_what_is_open_where_it_is_made
    spans = spans(<<~'RUBY')
      BLOCKS["strands"] = lambda do
        span("outer") do
          Ringspun.scope do |scope|
            2.times { |number| scope.spin { sleep 0.002; span("child #{number}") { sleep 0.002 } } }
          end
        end
        span("last") { nil }
      end
      Work.perform_async("block", "strands")
      work(1)
    RUBY
    outer, perform = ["outer", "perform default"].map { |name| named(spans, name).first["id"] }
    assert_equal [outer, outer, perform],
                 ["child 0", "child 1", "last"].map { |name| named(spans, name).first["parent"] }
  end

  def test_a_run_that_fails
    spans = spans(<<~'RUBY')
      Work.perform_async("fail")
      Work.perform_async("snooze")
      work(2)
    RUBY
    failed, snoozed = named(spans, "perform default").partition { |span| span["events"].any? }
    assert_equal [[["no luck"], 2, "ArgumentError: no luck"]], failed.map { |span| span.values_at("events", "status", "error") }
    assert_equal [[[], 1]], snoozed.map { |span| span.values_at("events", "status") }
  end

  def test_each_further_run_belongs_to_the_same_trace
    spans = spans(<<~'RUBY')
      span("request") { Work.perform_async("fail") }
      work(1)
      storage = Ringspun::Jobs.storage
      storage.retry_now(:retry, storage.scan(:retry, 0, 1).map(&:token))
      work(1)
    RUBY
    runs = named(spans, "perform default")
    assert_equal [2, 1, [nil, 0]], [runs.size, spans.map { |span| span["trace"] }.uniq.size,
                                    runs.map { |span| span["attributes"]["messaging.ringspun_jobs.retry_count"] }]
  end

  def test_many_jobs_in_one_call
    spans = spans(<<~'RUBY')
      span("request") { Work.perform_bulk([["a"], ["b"]]) }
      work(2)
    RUBY
    enqueue = named(spans, "enqueue many").first
    assert_equal 2, enqueue["attributes"]["messaging.batch.message_count"]
    assert_equal [enqueue["id"]] * 2, named(spans, "perform default").map { |span| span["parent"] }
  end

  # As the instrumentation of Sidekiq reads and writes it, with baggage.
  def test_what_stands_in_the_entry
    entry, baggage = told(<<~RUBY)
      #{SPANS}
      heard = nil
      BLOCKS["baggage"] = -> { heard = OpenTelemetry::Baggage.value("tenant") }
      OpenTelemetry::Context.with_current(OpenTelemetry::Baggage.set_value("tenant", "acme")) { Work.perform_async("block", "baggage") }
      entry = JSON.parse(Ringspun::Jobs.storage.list("default", 0, 1).first.entry)
      work(1)
      puts JSON.generate([entry, heard])
    RUBY
    assert_match(/\A00-\h{32}-\h{16}-01\z/, entry["traceparent"])
    assert_equal ["tenant=acme", "acme"], [entry["baggage"], baggage]
  end

  def test_without_the_gem
    entry = told(<<~'RUBY')
      Work.perform_async("a")
      puts Ringspun::Jobs.storage.list("default", 0, 1).first.entry
    RUBY
    refute entry.key?("traceparent")
  end
end
