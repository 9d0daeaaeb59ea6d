# frozen_string_literal: true

require "http_helper"

# Bodies that fail before anything of the answer was sent, and those that have to be careful not to.
class HTTPFailingBodiesTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze

  # A body that counts how often it is closed.
  class Counted
    attr_reader :closes

    def initialize(&pieces)
      @pieces = pieces
      @closes = 0
    end

    def each(&) = @pieces.call(&)
    def close = @closes += 1
  end

  # A body whose file has gone, as a program gives that has looked before.
  class Gone < Counted
    def to_path = "/nowhere/at/all"
  end

  # A streaming one.
  class Streaming
    attr_reader :closes

    def initialize(&body)
      @body = body
      @closes = 0
    end

    def call(output) = @body.call(output)
    def close = @closes += 1
  end

  BODIES = {
    "an each" => -> { Counted.new { raise "no" } },
    "an each that waits before" => -> { Counted.new { Ringspun::Machine.current.yield || raise("no") } },
    "an each with an empty piece before" => -> { Counted.new { |&piece| piece.call("") || raise("no") } },
    "an each whose first piece is none" => -> { Counted.new { |&piece| piece.call(5) } },
    "an each that ends the process" => -> { Counted.new { exit } },
    "an each that is broken by its pipe" => -> { Counted.new { raise Errno::ENOENT, "a file" } },
    "a file that has gone" => -> { Gone.new { File.open("/nowhere/at/all") } },
    "a streaming body" => -> { Streaming.new { raise "no" } },
    "a streaming body that closes before" => -> { Streaming.new { |output| output.close || raise("no") } }
  }.freeze

  # A program with such a body, and what it is told behind the answer.
  def app_of(body, headers, told)
    lambda do |env|
      env["rack.response_finished"] << ->(_env, *given) { told << given }
      [200, { **TEXT, "x-a" => "of the program", **headers }, body]
    end
  end

  # What a client gets, what the log says, and what was told behind it.
  def outcome(body, headers: {}, version: "1.1")
    log = StringIO.new
    told = []
    line = ->(exchange) { [exchange.status || "-", exchange.happened, exchange.bytes].join(" ") }
    answer = serving(app_of(body, headers, told), lint: false, access_log: HTTP::AccessLog.new(line, to: log)) do |connect|
      client = connect.call
      client.send("GET / HTTP/#{version}\r\nhost: a\r\n\r\n")
      client.answer.tap { assert client.ended? }
    end
    [answer, log.string, told]
  end

  def test_one_that_fails_before_its_first_piece
    BODIES.each do |name, make|
      body = make.call
      answer, line, told = outcome(body)
      assert_equal [500, "Internal Server Error\n", nil, "close"],
                   [answer.status, answer.body, answer["x-a"], answer["connection"]], name
      assert_equal ["500 failed 22\n", 1], [line, body.closes], name
      assert_equal [[nil, nil]], told.map { |given| given.take(2) }, name
      assert_kind_of Exception, told.first.last
      assert_match(/ringspun-http: /, @errors.string, name)
    end
  end

  def test_the_same_for_a_client_of_http_1_0
    answer, line, = outcome(BODIES["an each"].call, version: "1.0")
    assert_equal [500, "500 failed 22\n"], [answer.status, line]
  end

  # What the head promises is known before it is sent.
  def test_one_that_has_another_length_than_it_says
    [Counted.new { nil }, Counted.new { |&piece| piece.call("abc") }, Streaming.new { nil }].each do |body|
      answer, line, = outcome(body, headers: { "content-length" => "2" })
      assert_equal [500, "500 failed 22\n", 1], [answer.status, line, body.closes]
    end
    assert_match(/the body has 0 bytes, and its content-length says 2/, @errors.string)
  end

  # What was to happen to the head of an answer at the end of the tick is nothing for that of the next one.
  def test_one_behind_an_answer_whose_head_had_to_leave
    bodies = { "/a" => ->(output) { output << "a" },
               "/b" => Counted.new { Ringspun::Machine.current.sleep(0.001) && raise("no") } }
    serving(->(env) { [200, TEXT.dup, bodies.fetch(env["PATH_INFO"])] }, lint: false) do |connect|
      client = connect.call
      client.send("GET /a HTTP/1.1\r\nhost: a\r\n\r\nGET /b HTTP/1.1\r\nhost: a\r\n\r\n")
      assert_equal [200, 500], [client.answer.status, client.answer.status]
    end
  end

  # The client asks for a protocol, and gets an answer of HTTP.
  def test_a_protocol_that_fails_before_its_first_byte
    app = ->(_env) { [101, { "connection" => "upgrade", "upgrade" => "x" }, ->(_output) { raise "no" }] }
    answer = answer_to(app, "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", lint: false)
    assert_equal [500, nil], [answer.status, answer["upgrade"]]
  end

  # What the client has sent is its own fault, also where only the body of the answer reads it.
  def test_one_that_finds_the_body_of_the_request_broken
    app = ->(env) { [200, TEXT.dup, Counted.new { env["rack.input"].read }] }
    answer = answer_to(app, "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", lint: false)
    assert_equal 400, answer.status
  end

  def test_one_that_takes_too_long_for_its_first_piece
    body = Counted.new { sleep }
    answer = answer_to(->(_env) { [200, TEXT.dup, body] }, "GET / HTTP/1.1\r\nhost: a\r\n\r\n", # must pass
                       lint: false, request_timeout: 0.01)
    assert_equal [503, 1], [answer.status, body.closes]
  end

  # --- heads that do not wait for a piece ---

  # As a stream of events has to, whose first one may come late.
  def test_a_streaming_body_that_waits_has_sent_its_head
    gate = Ringspun::Channel.new(1)
    app = ->(_env) { [200, TEXT.dup, ->(output) { output << gate.pop }] }
    serving(app) do |connect|
      client = connect.call
      client.get("/")
      head = client.some(15)
      assert_equal "HTTP/1.1 200 OK", head
      gate.push("late")
      assert_match(/4\r\nlate\r\n0\r\n\r\n\z/, read_to_the_last_chunk(client))
    end
  end

  # And one that fails then can only be cut.
  def test_a_streaming_body_that_fails_behind_its_head_is_cut
    gate = Ringspun::Channel.new(1)
    { "a wait" => ->(_output) { gate.pop && raise("no") }, "a flush" => ->(output) { output.flush && gate.pop && raise("no") } }
      .each do |name, body|
        told = []
        serving(app_of(body, {}, told), lint: false) do |connect|
          client = connect.call
          client.get("/")
          assert_equal "HTTP/1.1 200 OK", client.some(15), name
          gate.push(true)
          refute_match(/0\r\n\r\n\z/, client.rest, name)
        end
        assert_equal [200], told.map(&:first), name
      end
  end

  # A client that waits for a 100 sends nothing before, and gets the answer behind it.
  def test_a_body_of_the_request_that_is_read_by_that_of_the_answer
    app = ->(env) { [200, TEXT.dup, Counted.new { |&piece| piece.call(env["rack.input"].read) }] }
    serving(app, lint: false) do |connect|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
      assert_equal 100, client.answer.status
      client.send("abc")
      assert_equal [200, "abc"], client.answer.then { |answer| [answer.status, answer.body] }
    end
  end

  # Each request of a connection has a head of its own, whatever becomes of the one before.
  def test_requests_behind_one_whose_head_was_held
    app = ->(env) { [200, TEXT.dup, env["PATH_INFO"] == "/none" ? [].each : ->(output) { output << "a" }] }
    serving(app) do |connect|
      client = connect.call
      %w[/none /a /none].each { |path| client.get(path) }
      assert_equal(["", "a", ""], Array.new(3) { client.answer.body })
    end
  end

  private

  def read_to_the_last_chunk(client)
    text = +""
    text << client.some(1024) until text.end_with?("0\r\n\r\n")
    text
  end
end
