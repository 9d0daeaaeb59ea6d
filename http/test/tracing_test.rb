# frozen_string_literal: true

require "http_helper"

# Spans of the real gem, kept in memory, in processes of their own: where it is loaded it is used.
class HTTPTracingTest < Minitest::Test
  include OnServer

  PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  def traced(app, **)
    status = in_child do
      require "opentelemetry/sdk"
      exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
      OpenTelemetry::SDK.configure do |config|
        config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
      end
      serving(app, lint: false, **) { |connect| yield(connect, exporter) }
    end
    assert_predicate status, :success?
  end

  def text(status, body) = [status, { "content-type" => "text/plain" }, [body]]

  def test_a_span_for_each_request_below_that_of_the_client
    app = lambda do |env|
      env["sinatra.route"] = "/posts/:id"
      OpenTelemetry.tracer_provider.tracer("test").in_span("inner") { text(200, "x") }
    end
    traced(app) do |connect, exporter|
      client = connect.call
      client.get("/posts/1?a=b", "traceparent: #{PARENT}", "user-agent: me")
      client.answer
      client.get("/posts/2")
      client.answer
      inner, first, _, second = exporter.finished_spans
      assert_equal ["GET /posts/:id", :server, PARENT[3, 32], PARENT[36, 16]],
                   [first.name, first.kind, first.hex_trace_id, first.hex_parent_span_id]
      assert_equal [first.span_id, first.trace_id], [inner.parent_span_id, inner.trace_id]
      expected = { "http.request.method" => "GET", "url.path" => "/posts/1", "url.query" => "a=b", "url.scheme" => "http",
                   "server.address" => "example.org", "client.address" => "127.0.0.1", "network.protocol.version" => "1.1",
                   "user_agent.original" => "me", "http.response.status_code" => 200, "http.route" => "/posts/:id" }
      assert_equal expected, first.attributes.slice(*expected.keys)
      refute_equal first.trace_id, second.trace_id
      assert_equal OpenTelemetry::Trace::Status::UNSET, first.status.code
    end
  end

  def test_requests_that_fail
    app = ->(env) { env["PATH_INFO"] == "/raise" ? raise(KeyError, "no") : text(503, "busy") }
    traced(app) do |connect, exporter|
      { "/raise" => "KeyError", "/busy" => "503" }.each do |path, type|
        client = connect.call
        client.send("BREW #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
        client.answer
        span = exporter.finished_spans.last
        assert_equal ["HTTP", "_OTHER", "BREW", type, OpenTelemetry::Trace::Status::ERROR],
                     [span.name, *span.attributes.values_at("http.request.method", "http.request.method_original", "error.type"),
                      span.status.code]
      end
    end
  end

  def test_not_where_it_is_not_wanted
    traced(->(_env) { text(200, "x") }, tracing: false) do |connect, exporter|
      connect.call.then { |client| client.get("/") && client.answer }
      assert_empty exporter.finished_spans
    end
    error = assert_raises(Ringspun::UsageError) { serving(->(_env) { text(200, "x") }, tracing: true) { flunk } }
    assert_match(/needs the gem opentelemetry-sdk/, error.message)
  end
end
