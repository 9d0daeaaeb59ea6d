# frozen_string_literal: true

require "http_helper"

# What those who look from outside see of requests: numbers, and the names of strands.
class HTTPSeenTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  HELLO = ->(_env) { [200, TEXT.dup, ["hello\n"]] }

  # @return [Hash{String => Float}] by names with labels
  def numbers(text)
    text.lines.reject { |line| line.start_with?("#") }.to_h { |line| line.split.then { |name, value| [name, Float(value)] } }
  end

  def ask(client, path)
    client.get(path)
    client.answer
  end

  def test_numbers_of_requests
    metrics = HTTP::Metrics.new
    app = lambda do |env|
      raise "no" if env["PATH_INFO"] == "/fail"

      env["PATH_INFO"] == "/none" ? [404, TEXT.dup, []] : HELLO.call(env)
    end
    serving(app, metrics:) do |connect|
      client = connect.call
      %w[/ /none /fail].each { |path| ask(client, path) }
      connect.call.then { |other| ask(other, "x") }
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nabcde")
      client.answer
    end
    after = numbers(metrics.text)
    prefix = "ringspun_http_"
    assert_equal [2, 2, 1, 0], %w[2xx 4xx 5xx none].map { |status| after["#{prefix}requests_total{status=\"#{status}\"}"] }
    ends = %w[answered refused failed gone].map { |what| after["#{prefix}requests_ended_total{happened=\"#{what}\"}"] }
    assert_equal [3, 1, 1, 0], ends
    prefix_of_seconds = "#{prefix}request_duration_seconds_"
    assert_equal [5, 5], after.values_at("#{prefix_of_seconds}bucket{le=\"+Inf\"}", "#{prefix_of_seconds}count")
    assert_equal [5, 3], [after["#{prefix}request_body_bytes_total"], after["#{prefix}connections_total"]]
    assert_operator after["#{prefix}response_body_bytes_total"], :>, 12 + 22
    assert_equal [0, 0], [after["#{prefix}connections"], after["#{prefix}requests_in_flight"]]
  end

  def test_what_is_open_now
    metrics = HTTP::Metrics.new
    inside, go_on = Array.new(2) { Ringspun::Queue.new }
    app = lambda do |env|
      inside.push(true)
      go_on.pop
      HELLO.call(env)
    end
    serving(app, metrics:) do |connect|
      clients = Array.new(2) { connect.call }
      clients.each { |client| client.get("/") }
      2.times { inside.pop }
      assert_equal [2, 2], numbers(metrics.text).values_at("ringspun_http_connections", "ringspun_http_requests_in_flight")
      2.times { go_on.push(true) }
      clients.each(&:answer)
      assert_equal [2, 0], numbers(metrics.text).values_at("ringspun_http_connections", "ringspun_http_requests_in_flight")
    end
  end

  # Those of a process that was killed while it served are not counted, and its totals are.
  def test_numbers_of_other_processes
    metrics = HTTP::Metrics.new
    counters = metrics.instance_variable_get(:@counters)
    2.times do
      reader, writer = IO.pipe
      pid = fork do
        metrics.here
        metrics.began(nil)
        counters.add(0, 10)
        writer.write("x")
        sleep
      end
      reader.read(1)
      assert_equal 1, numbers(metrics.text)["ringspun_http_requests_in_flight"]
      Process.kill(:KILL, pid)
      Process.wait(pid)
      assert_equal 0, numbers(metrics.text)["ringspun_http_requests_in_flight"]
    ensure
      [reader, writer].each(&:close)
    end
    assert_equal 20, counters.total(0)
    assert_raises(IndexError) { counters.add(1000, 1) }
    assert_raises(IndexError) { counters.move(7, 1) }
    assert_raises(IndexError) { counters.total(-1) }
  end

  def test_metrics_as_a_program_and_at_a_path
    serving(HTTP::Metrics.new) do |connect|
      client = connect.call
      answer = ask(client, "/any")
      assert_empty @errors.string
      assert_equal ["text/plain; version=0.0.4; charset=utf-8", true],
                   [answer["content-type"], answer.body.include?("# TYPE ringspun_http_request_duration_seconds histogram\n")]
      client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
      assert_equal [405, "GET, HEAD"], client.answer.then { |refused| [refused.status, refused["allow"]] }
    end
    serving(HELLO, metrics: "/metrics") do |connect|
      client = connect.call
      assert_equal "hello\n", ask(client, "/").body
      assert_match(/^ringspun_http_requests_total{status="2xx"} 1$/, ask(client, "/metrics").body)
    end
  end

  def test_the_inspector_names_requests_and_says_what_they_wait_for
    inside = Ringspun::Queue.new
    app = lambda do |env|
      env["sinatra.route"] = "GET /posts/:id"
      inside.push(true)
      env["rack.input"].read
      HELLO.call(env)
    end
    serving(app) do |connect|
      client = connect.call
      client.send("POST /posts/1?secret=2 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
      inside.pop
      Ringspun::Machine.current.yield
      assert_match(%r{ "POST /posts/1 \(GET /posts/:id\)">: waits for re}, Ringspun.inspect_tree)
      client.send("0\r\n\r\n")
      client.answer
      assert_match(/ "idle connection of 127\.0\.0\.1">: waits for/, Ringspun.inspect_tree)
    end
  end
end
