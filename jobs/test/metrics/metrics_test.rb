# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "ringspun/jobs/metrics"
require "rack/lint"
require "rack/mock"
require "stringio"

# What Prometheus reads. The form is checked by its grammar, of which this is the part that is used:
# https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details
class MetricsTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage

  LABEL = /[a-z]+="(?:[^"\\\n]|\\[\\n"])*"/
  LINE = /\A([a-z_]+)(?:\{(#{LABEL}(?:,#{LABEL})*)\})? (\d+(?:\.\d+)?)\z/

  def storage = @storage ||= Storage::Memory.new

  def fill
    entry = JSON.generate("class" => "Work", "args" => ["secret"], "jid" => "a", "enqueued_at" => storage.time - 90)
    storage.push([Storage::Push.new("a\\\"\nb\xff", entry), Storage::Push.new("c", "no job")])
    storage.push([Storage::Push.new("c", entry, nil, storage.time + 100)])
    storage.pause("c")
    storage.announce("host:1:aa", { "concurrency" => 10 }, [["1", "c", entry, 1.0]])
    storage.counters(processed: 7, failed: 2, twice: 3)
    storage.measure([Storage::Measure.new(29_000_000, "Work", 4, 1, 400_010, { 0 => 1, 2 => 1, 25 => 1 })])
  end

  # By the text of name and labels.
  def values(text)
    text.lines(chomp: true).reject { |line| line.start_with?("# ") }.to_h do |line|
      assert_match LINE, line
      name, value = line.match(/\A(.*) (\S+)\z/).captures
      [name.delete_prefix("ringspun_jobs_"), value.to_f]
    end
  end

  def test_all_there_is
    fill
    text = Jobs::Metrics.text(storage)
    values = values(text)
    assert_equal({ "processed_total" => 7.0, "failed_total" => 2.0, "ran_twice_total" => 3.0, 'set_size{set="scheduled"}' => 1.0,
                   'set_size{set="retries"}' => 0.0, 'set_size{set="dead"}' => 0.0, "in_flight" => 0.0,
                   'queue_size{queue="a\\\\\\"\\nb?"}' => 1.0,
                   'queue_size{queue="c"}' => 1.0, 'queue_paused{queue="c"}' => 1.0, "processes" => 1.0, "busy" => 1.0,
                   "concurrency" => 10.0, 'class_failed_total{class="Work"}' => 1.0 },
                 values.reject { |name, _| name.match?(/duration|latency|paused\{queue="a/) })
    assert_in_delta 90, values['queue_latency_seconds{queue="a\\\\\\"\\nb?"}'], 60
    refute_includes text, "secret"
  end

  def test_the_histogram_adds_up
    fill
    values = values(Jobs::Metrics.text(storage))
    buckets = values.select { |name, _| name.start_with?("duration_seconds_bucket") }
    assert_equal [1.0, 1.0, 2.0, 2.0], buckets.values.first(4)
    assert_equal [2.0, 3.0], buckets.values.last(2)
    assert_equal ['le="0.02"', 'le="335.0"', 'le="+Inf"'], buckets.keys.values_at(0, -2, -1).map { |name| name[/le="[^"]*"/] }
    assert_equal [3.0, 400.01], values.values_at('duration_seconds_count{class="Work"}', 'duration_seconds_sum{class="Work"}')
  end

  def test_each_metric_has_one_head
    fill
    text = Jobs::Metrics.text(storage)
    heads = text.scan(/^# TYPE (\S+) (?:counter|gauge|histogram)$/).flatten
    assert_equal heads.uniq, heads
    assert_equal heads, text.scan(/^# HELP (\S+) \S.*\.$/).flatten
    used = text.lines.grep(/\A[^#]/).map { |line| line[/\A\w+/].sub(/(duration_seconds)_\w+/, '\1') }.uniq
    assert_equal heads, used
  end

  def test_an_empty_storage
    refute_empty values(Jobs::Metrics.text(storage))
  end

  def test_the_rack_app
    app = Rack::MockRequest.new(Rack::Lint.new(Jobs::Metrics.new(storage:)))
    answer = app.get("/")
    assert_equal [200, "text/plain; version=0.0.4; charset=utf-8"], [answer.status, answer["content-type"]]
    assert_includes answer.body, "ringspun_jobs_processed_total 0\n"
    assert_equal [200, ""], [app.head("/").status, app.head("/").body]
    assert_equal [405, "GET, HEAD"], [app.post("/").status, app.post("/")["allow"]]
  end

  # Whatever asks how often.
  def test_the_storage_is_asked_once_in_a_while
    counting = Class.new(SimpleDelegator) do
      def asked = @asked || 0

      def stats(**)
        @asked = asked + 1
        super
      end
    end.new(storage)
    time = 10.0
    metrics = Jobs::Metrics.new(storage: counting)
    metrics.define_singleton_method(:now) { time }
    app = Rack::MockRequest.new(metrics)
    3.times { app.get("/") }
    assert_equal 1, counting.asked
    time += 1.0
    app.get("/")
    assert_equal 2, counting.asked
  end

  def test_the_storage_is_away
    away = Class.new(SimpleDelegator) { def stats(**) = raise(Ringspun::Jobs::UnavailableError, "gone fishing") }.new(storage)
    answer = Rack::MockRequest.new(Rack::Lint.new(Jobs::Metrics.new(storage: away))).get("/")
    assert_equal [503, "gone fishing\n"], [answer.status, answer.body]
  end

  def test_the_command
    output = StringIO.new
    command = Jobs::CLI.const_get(:Arguments).new(["metrics"]).command
    assert_equal 0, command.new(storage, output:).call([])
    assert_equal output.string, Jobs::Metrics.text(storage)
  end
end
