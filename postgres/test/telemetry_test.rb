# frozen_string_literal: true

require "postgres_helper"
require "json"

# What ActiveSupport::Notifications and OpenTelemetry hear of statements: each in a program of its own, for these gems patch what
# others use.
class PostgresTelemetryTest < Minitest::Test
  include Children
  include OnPool

  LISTEN = <<~'RUBY'
    require "ringspun/postgres/notifications"
    events = []
    listener = ActiveSupport::Notifications.subscribe("statement.ringspun_postgres") { |event| events << event }
  RUBY

  SPANS = <<~'RUBY'
    require "opentelemetry/sdk"
    EXPORTER = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    OpenTelemetry::SDK.configure do |config|
      config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(EXPORTER))
    end
    require "ringspun/postgres/tracing"
  RUBY

  # @return [Object] what the program has printed as JSON; it has a pool, db
  def told(first, program)
    code = "require 'json'\n#{first}\ndb = Ringspun::Postgres.connect(#{url.inspect})\n#{program}"
    answer = ruby_child(code, env: { "RUBYLIB" => $LOAD_PATH.join(":"), "OTEL_TRACES_EXPORTER" => "none" })
    assert_equal ["", true], [answer.err, answer.status.success?]
    JSON.parse(answer.out)
  end

  def test_events
    one, two, later = told(LISTEN, <<~'RUBY')
      Ringspun.run { db.query("select $1::text, generate_series(1, 2)", "parameter") }
      Thread.new { db.query("alter role nobody_at_all password 'secret'") rescue nil }.join
      count = events.size
      ActiveSupport::Notifications.unsubscribe(listener)
      db.query("select 3")
      puts JSON.generate([*events.map { |event| [event.name, event.duration >= 0, event.payload] }, events.size - count])
    RUBY
    name, lasted, payload = one
    assert_equal ["statement.ringspun_postgres", true], [name, lasted]
    expected = ["select $1::text, generate_series(1, 2)", "query", 2, nil]
    assert_equal expected, payload.values_at("sql", "kind", "rows", "exception_object")
    assert_equal %w[sql exception_object kind rows affected connection queue wire decoding], payload.keys
    assert_equal "alter role nobody_at_all password '...'", two.last["sql"]
    assert_match(/does not exist/, two.last["exception_object"])
    assert_equal 0, later
  end

  def test_a_listener_that_raises_breaks_nothing
    assert_equal [1, true], told("#{LISTEN.sub("listener = ", "")}\nrequire 'stringio'\n$stderr = StringIO.new\n", <<~'RUBY')
      ActiveSupport::Notifications.subscribe("statement.ringspun_postgres") { |_| raise KeyError, "broken" }
      value = db.query_value("select 1")
      puts JSON.generate([value, $stderr.string.include?("broken")])
    RUBY
  end

  def test_spans
    outer, *spans = told(SPANS, <<~'RUBY').sort_by { |span| span["parent"] == "0" * 16 ? 0 : 1 }
      OpenTelemetry.tracer_provider.tracer("test").in_span("outer") do
        Ringspun.run do |machine|
          machine.spin { db.query("select $1::text", "parameter") }.await
          db.query("select 1 / $1::int", 0) rescue nil
          db.script("select 1; select 2")
        end
      end
      puts JSON.generate(EXPORTER.finished_spans.map { |span|
        { name: span.name, kind: span.kind, id: span.hex_span_id, parent: span.hex_parent_span_id, attributes: span.attributes,
          status: span.status.code, said: span.status.description, lasted: span.end_timestamp - span.start_timestamp } })
    RUBY
    assert_equal "outer", outer["name"]
    database = on_pool { |pool| pool.config.options.database }
    assert_equal ["SELECT #{database}", "SELECT #{database}", "SCRIPT #{database}"], spans.map { |span| span["name"] }
    spans.each do |span|
      assert_equal [outer["id"], "client"], span.values_at("parent", "kind")
      assert_operator span["lasted"], :>=, 0
      assert_equal ["postgresql", database], span["attributes"].values_at("db.system.name", "db.namespace")
      assert span["attributes"]["server.address"]
    end
    assert_equal ["select $1::text", 1], spans[0]["attributes"].values_at("db.query.text", "db.response.returned_rows")
    assert_equal ["22012", "22012"], spans[1]["attributes"].values_at("error.type", "db.response.status_code")
    assert_equal [2, "Ringspun::Postgres::DivisionByZero"], spans[1].values_at("status", "said")
    refute_match(/parameter/, spans.inspect)
  end

  def test_pools_without_them_are_not_observed
    first = "require 'ringspun/postgres'; before = Ringspun::Postgres::Pool.new('postgres://db')\n"
    assert_equal [true, false], told("#{first}#{LISTEN.sub("listener = ", "")}", <<~RUBY)
      puts JSON.generate([before.config.observers.nil?, db.config.observers.nil?])
    RUBY
  end
end
