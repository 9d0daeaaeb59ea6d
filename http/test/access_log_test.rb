# frozen_string_literal: true

require "http_helper"
require "json"
require "tmpdir"

# A line for each request, whatever becomes of it.
class HTTPAccessLogTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  HELLO = ->(_env) { [200, TEXT.dup, ["hello\n"]] }

  # What a server has logged that has served what the block asks of it.
  def logged(format, app = HELLO, **, &)
    out = StringIO.new
    serving(app, access_log: HTTP::AccessLog.new(format, to: out), **, &)
    out.string.lines
  end

  # As a guide has it.
  FORWARDED = ->(exchange) { exchange.env["HTTP_X_FORWARDED_FOR"] || exchange.client }
  HAPPENED = ->(exchange) { [exchange.status || "-", exchange.happened, exchange.bytes, FORWARDED.call(exchange)].join(" ") }

  # The status, and what has become of each request.
  def happened(app = HELLO, **, &)
    logged(HAPPENED, app, **, &).map { |line| line.delete_suffix(" 127.0.0.1\n") }
  end

  def test_the_common_and_the_combined_form
    { common: "", combined: ' "http://a/b" "curl/8 \x22x\x22"' }.each do |format, more|
      lines = logged(format) do |connect|
        client = connect.call
        client.get("/a%20b?c=d", "referer: http://a/b", "user-agent: curl/8 \"x\"")
        client.answer
      end
      time = %r{\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]}
      assert_equal 1, lines.size
      assert_match(%r{\A127\.0\.0\.1 - - #{time} "GET /a%20b\?c=d HTTP/1\.1" 200 6#{Regexp.escape(more)} \d\.\d{6}\n\z},
                   lines.first)
    end
  end

  def test_json
    line, = logged(:json) do |connect|
      client = connect.call
      client.send("POST /a?b HTTP/1.1\r\nhost: h\r\nuser-agent: \xff\r\ncontent-length: 3\r\n\r\nabc")
      client.answer
    end
    entry = JSON.parse(line)
    assert_equal({ "client" => "127.0.0.1", "method" => "POST", "path" => "/a?b", "protocol" => "HTTP/1.1", "host" => "h",
                   "agent" => "\\xff", "status" => 200, "bytes" => 6, "happened" => "answered" },
                 entry.slice("client", "method", "path", "protocol", "host", "agent", "status", "bytes", "happened"))
    assert_operator entry["seconds"], :>=, 0
    assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\z/, entry["time"])
  end

  # Middleware may change what stands there, and empty it.
  def test_an_env_that_the_program_has_changed
    { ->(env) { env["REMOTE_USER"] = 7 } => / - 7 \[/, ->(env) { env["REMOTE_USER"] = :"a\n" } => / - a\\x0a \[/,
      :clear.to_proc => / 200 6/ }
      .each do |change, line|
        %i[common combined json].each do |format|
          lines = logged(format, ->(env) { HELLO.call(env).tap { change.call(env) } }) do |connect|
            client = connect.call
            client.get("/")
            client.answer
          end
          assert_match(format == :json ? /"status":200/ : line, lines.join)
        end
      end
  end

  # Bytes that a terminal or a reader of lines would take for something else.
  def test_what_a_client_sends_ends_no_line_and_no_field
    lines = logged(:combined) do |connect|
      client = connect.call
      client.get("/\"\\\x7c", "user-agent: \xe2\x80\xa8\" 200 1\t\x80", "referer: \x9b31m")
      client.answer
    end
    assert_equal 1, lines.size
    assert_match(%r{"GET /\\x22\\x5c\\| HTTP/1\.1" 200 6 "\\x9b31m" "\\xe2\\x80\\xa8\\x22 200 1\\x09\\x80" }, lines.first)
    assert_match(/\A[\x20-\x7e]*\n\z/, lines.first)
  end

  def test_requests_that_are_answered
    app = lambda do |env|
      case env["PATH_INFO"]
      when "/pieces" then [200, TEXT.dup, %w[a b c].each]
      when "/stream" then [200, TEXT.dup, ->(stream) { stream << "abc" << "defg" }]
      else [404, TEXT.dup, ["no"]]
      end
    end
    lines = happened(app) do |connect|
      client = connect.call
      %w[/pieces /stream /other].each do |path|
        client.get(path)
        client.answer
      end
    end
    assert_equal ["200 answered 3", "200 answered 7", "404 answered 2"], lines
  end

  def test_requests_that_are_refused
    read = ->(env) { [200, TEXT.dup, [env["rack.input"].read]] }
    { "GET / HTTP/1.1\r\n\r\n" => "400 refused", "GET /#{"x" * 9000} HTTP/1.1\r\n\r\n" => "414 refused",
      "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nx\r\n" => "400 refused" }.each do |request, expected|
      lines = happened(read) do |connect|
        client = connect.call
        client.send(request)
        client.answer
      end
      assert_equal [expected], lines.map { |line| line[/\A\d+ \w+/] }
    end
  end

  def test_a_head_and_a_body_that_do_not_come_in_time
    { "GET / HTTP/1.1\r\n" => { head: 0.01 }, # must pass
      "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n" => { body: 0.01 } }.each do |request, limits| # must pass
      lines = happened(->(env) { [200, TEXT.dup, [env["rack.input"].read]] }, limits:) do |connect|
        client = connect.call
        client.send(request)
        client.answer
      end
      assert_equal ["408 timed_out"], lines.map { |line| line[/\A\d+ \w+/] }
    end
  end

  # The name of what has become of them is also that of a counter.
  def assert_counted(expected, app, request, **limits)
    metrics = HTTP::Metrics.new
    lines = happened(app, lint: false, metrics:, **limits) do |connect|
      connect.call.send(request)
      Ringspun::Machine.current.yield until metrics.text.match?(/_requests_total\{status="\dxx"\} 1$/)
    end
    assert_equal [expected], lines.map { |line| line[/\A\d+ \w+/] }
    assert_includes metrics.text, "ringspun_http_requests_ended_total{happened=\"#{expected.split.last}\"} 1\n"
  end

  CLOSE = "host: a\r\nconnection: close\r\n"

  def test_an_answer_that_takes_too_long
    never = ->(_env) { Ringspun::Machine.current.sleep }
    assert_counted("503 timed_out", never, "GET / HTTP/1.1\r\n#{CLOSE}\r\n", request_timeout: 0.01) # must pass
    assert_match(/no whole answer after 0\.01 s/, @errors.string)
  end

  def test_a_body_that_is_too_long
    assert_counted("413 refused", HELLO, "POST / HTTP/1.1\r\n#{CLOSE}content-length: 9\r\n\r\n", limits: { body_max: 8 })
    chunks = "transfer-encoding: chunked\r\n\r\n9\r\n"
    assert_counted("413 refused", ->(env) { [200, {}, [env["rack.input"].read]] }, "POST / HTTP/1.1\r\n#{CLOSE}#{chunks}",
                   limits: { body_max: 8 })
  end

  def test_a_client_that_takes_nothing
    much = ["x" * 30_000_000]
    assert_counted("200 timed_out", ->(_env) { [200, {}, much] }, "GET / HTTP/1.1\r\n#{CLOSE}\r\n",
                   limits: { write: 0.01 }) # must pass
  end

  def test_a_request_for_which_there_is_no_place
    gate = Ringspun::Condition.new
    metrics = HTTP::Metrics.new
    lines = happened(->(env) { gate.wait && HELLO.call(env) }, metrics:, max_requests: 1) do |connect|
      first, second = connect.call, connect.call
      first.get("/")
      Ringspun::Machine.current.yield until gate.waiting == 1
      second.get("/") && second.answer
      gate.broadcast
      first.answer
    end
    assert_equal(["503 refused", "200 answered"], lines.map { |line| line[/\A\d+ \w+/] })
    assert_includes metrics.text, "ringspun_http_requests_ended_total{happened=\"refused\"} 1\n"
  end

  # One that was answered, and whose body then cannot be read, is no second request.
  def test_a_body_that_breaks_behind_its_answer
    lines = happened do |connect|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n")
      client.answer
      client.close
    end
    assert_equal ["200 answered 6"], lines
  end

  def test_programs_that_fail
    app = lambda do |env|
      raise "no" if env["PATH_INFO"] == "/at_once"

      [200, { "content-length" => "9" }, Enumerator.new { |body| body << "ab" && raise("later") }]
    end
    lines = happened(app, lint: false) do |connect|
      client = connect.call
      client.get("/at_once")
      client.answer
      client = connect.call
      client.get("/")
      assert_raises(Ringspun::EndOfStreamError) { client.answer }
    end
    assert_equal ["500 failed 22", "200 failed 2"], lines
  end

  def test_a_client_that_goes_away
    body = ->(stream) { loop { stream << ("x" * 65_536) } }
    lines = happened(->(_env) { [200, {}, body] }, lint: false) do |connect|
      client = connect.call
      client.get("/")
      client.close
    end
    assert_equal ["200 gone"], lines.map { |line| line[/\A\d+ \w+/] }
  end

  def test_a_server_that_ends
    begun = Ringspun::Queue.new
    lines = happened(->(_env) { begun.push(true) && Ringspun::Machine.current.park }, lint: false) do |connect, server|
      connect.call.get("/")
      begun.pop
      server.stop(within: 0)
    end
    assert_equal ["- cancelled 0"], lines
  end

  def test_connections_that_the_program_takes_over
    taking = lambda do |env|
      env["rack.hijack"].call.close
      [-1, {}, []]
    end
    talking = ->(_env) { [101, { "connection" => "upgrade", "upgrade" => "x" }, ->(stream) { stream.write("abc") }] }
    { taking => "- hijacked 0", talking => "101 upgraded 3" }.each do |app, expected|
      lines = happened(app, lint: false) do |connect|
        client = connect.call
        client.get("/", "connection: upgrade", "upgrade: x")
        client.ended?
      end
      assert_equal [expected], lines
    end
  end

  def test_a_proc_may_leave_out_lines_and_one_that_fails_ends_no_request
    only_errors = ->(exchange) { "#{exchange.env["PATH_INFO"]} #{exchange.status}" if exchange.status >= 500 }
    app = ->(env) { [Integer(env["PATH_INFO"][1..]), TEXT.dup, []] }
    lines = logged(only_errors, app) do |connect|
      client = connect.call
      [200, 503].each { |status| client.get("/#{status}") && client.answer }
    end
    assert_equal ["/503 503\n"], lines

    failing = ->(_exchange) { raise "no line" }
    assert_empty(logged(failing) { |connect| connect.call.then { |client| client.get("/") && client.answer } })
    assert_match(/AccessLog has failed: .*no line \(RuntimeError\)/, @errors.string)
  end

  def test_a_proc_whose_values_are_no_lines
    values = [5, :x, nil, false, "a line"]
    lines = nil
    _, warned = capture_io do
      lines = logged(->(_exchange) { values.shift }) do |connect|
        client = connect.call
        values.size.times { client.get("/") && client.answer }
      end
    end
    assert_equal ["a line\n"], lines
    assert_equal 1, warned.scan("ringspun-http: access_log: takes a String for a line, and nil for none").size
    assert_includes warned, "has returned 5,"
  end

  def test_what_is_no_log
    error = assert_raises(Ringspun::UsageError) { HTTP::AccessLog.new(:short) }
    assert_match(/there is no access log :short; there are :common, :combined, :json/, error.message)
    assert_raises(Ringspun::UsageError) { HTTP::AccessLog.new(:common, to: 5) }
    assert_raises(Ringspun::UsageError) { HTTP::AccessLog.new(:common, to: "/nowhere/log") }
  end

  def test_a_file_that_was_moved_away
    Dir.mktmpdir do |folder|
      path = File.join(folder, "log")
      log = HTTP::AccessLog.new(:common, to: path)
      serving(HELLO, access_log: log) do |connect|
        client = connect.call
        client.get("/1") && client.answer
        log.flush
        File.rename(path, "#{path}.1")
        log.reopen
        client.get("/2") && client.answer
      end
      log.close
      assert_equal([%w[/1], %w[/2]], ["#{path}.1", path].map { |name| File.read(name).scan(%r{GET (\S+)}).flatten })
    end
  end
end
