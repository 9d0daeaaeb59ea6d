# frozen_string_literal: true

require "http_helper"

# rubies: all

# A program for Rack behind a socket.
class HTTPServerTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  HELLO = ->(_env) { [200, TEXT.dup, ["hello\n"]] }

  # What the program sees of a request.
  def seen(request, **)
    env = nil
    answer_to(lambda { |given|
      env = given.dup
      HELLO.call(given)
    }, request, **)
    env
  end

  def test_hello
    answer = answer_to(HELLO, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_equal [200, "hello\n", "6", "text/plain"],
                 [answer.status, answer.body, answer["content-length"], answer["content-type"]]
    assert_match(/\A\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\z/, answer["date"])
  end

  def test_the_env_of_a_request
    env = seen("POST /a%20b?c=d&e HTTP/1.1\r\nHost: example.org:81\r\nCookie: a=1\r\ncookie: b=2\r\nX-One: 1\r\nx-one: 2\r\n" \
               "X_One: 3\r\ncontent-type: text/x\r\ncontent-length: 3\r\n\r\nabc")
    expected = { "REQUEST_METHOD" => "POST", "PATH_INFO" => "/a%20b", "QUERY_STRING" => "c=d&e", "SCRIPT_NAME" => "",
                 "SERVER_NAME" => "example.org", "SERVER_PORT" => "81", "SERVER_PROTOCOL" => "HTTP/1.1",
                 "HTTP_HOST" => "example.org:81", "HTTP_COOKIE" => "a=1; b=2", "HTTP_X_ONE" => "1, 2",
                 "CONTENT_TYPE" => "text/x", "CONTENT_LENGTH" => "3", "REMOTE_ADDR" => "127.0.0.1", "rack.url_scheme" => "http" }
    assert_equal expected, env.slice(*expected.keys)
  end

  # A name that programs know costs no String.
  def test_keys_of_two_requests_are_the_same_objects
    one, other = Array.new(2) { seen("GET / HTTP/1.1\r\nhost: a\r\nACCEPT: b\r\ncookie: c\r\ncontent-length: 0\r\n\r\n") }
    keys = other.keys.to_h { |key| [key, key] }
    %w[REQUEST_METHOD PATH_INFO HTTP_HOST HTTP_ACCEPT HTTP_COOKIE CONTENT_LENGTH rack.input].each do |name|
      assert_same one.keys.find { |key| key == name }, keys.fetch(name)
    end
  end

  def test_requests_on_one_connection_in_order
    serving(->(env) { [200, TEXT.dup, [env["PATH_INFO"]]] }) do |connect|
      client = connect.call
      client.send((1..100).map { |number| "GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n" }.join)
      assert_equal((1..100).map { |number| "/#{number}" }, Array.new(100) { client.answer.body })
      client.get("/last", "connection: close")
      assert_equal ["/last", true], [client.answer.body, client.ended?]
    end
  end

  def test_a_body_of_every_kind
    echo = ->(env) { [200, TEXT.dup, [env["rack.input"]&.read.to_s]] }
    serving(echo) do |connect|
      client = connect.call
      { "content-length: 0\r\n\r\n" => "", "content-length: 5\r\n\r\nabcde" => "abcde",
        "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n" => "abcde",
        "content-length: 200000\r\n\r\n#{"x" * 200_000}" => "x" * 200_000 }.each do |rest, body|
        client.send("POST / HTTP/1.1\r\nhost: a\r\n#{rest}")
        assert_equal body, client.answer.body
      end
    end
  end

  def test_a_body_that_the_program_does_not_read
    serving(HELLO) do |connect|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                  "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
      assert_equal [200, 200], [client.answer.status, client.answer.status]
    end
  end

  def test_a_client_that_expects_to_be_told_to_go_on
    serving(->(env) { [200, TEXT.dup, [env["rack.input"].read]] }) do |connect|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
      assert_equal 100, client.answer.status
      client.send("abc")
      assert_equal "abc", client.answer.body
    end
  end

  def test_a_client_that_expects_and_is_refused_at_once
    serving(->(_env) { [403, TEXT.dup, ["no"]] }) do |connect|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
      answer = client.answer
      assert_equal [403, "close", true], [answer.status, answer["connection"], client.ended?]
    end
  end

  def test_a_body_of_pieces_is_chunked_and_closed_once
    closed = 0
    body = Class.new do
      define_method(:each) { |&block| %w[a b c].each(&block) }
      define_method(:close) { closed += 1 }
    end.new
    answer = answer_to(->(_env) { [200, TEXT.dup, body] }, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_equal ["abc", "chunked", 1], [answer.body, answer["transfer-encoding"], closed]
  end

  def test_a_streaming_body
    body = lambda do |stream|
      stream << "one " << "two"
      stream.close
    end
    assert_equal "one two", answer_to(->(_env) { [200, TEXT.dup, body] }, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").body
  end

  def test_head_has_no_body
    serving(->(env) { [200, TEXT.dup, env["REQUEST_METHOD"] == "HEAD" ? [] : ["hello\n"]] }) do |connect|
      client = connect.call
      client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n")
      assert_equal [200, "hello\n"], [client.answer(head: true).status, client.answer.body]
    end
  end

  def test_what_is_no_request_is_refused_and_ends_the_connection
    { "GET / HTTP/1.1\r\n\r\n" => 400, "GET / HTTP/2.0\r\nhost: a\r\n\r\n" => 505, "GET /#{"x" * 9000} HTTP/1.1\r\n\r\n" => 414,
      "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n" => 400, "GET / HTTP/1.1\nhost: a\n\n" => 400,
      "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n" => 400 }.each do |request, status|
      serving(HELLO) do |connect|
        client = connect.call
        client.send(request, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        answer = client.answer
        assert_equal [status, "close", true], [answer.status, answer["connection"], client.ended?], request
      end
    end
  end

  def test_a_broken_body_is_the_clients_fault
    answer = answer_to(->(env) { [200, TEXT.dup, [env["rack.input"].read]] },
                       "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nx\r\n")
    assert_equal [400, "close", ""], [answer.status, answer["connection"], @errors.string]
  end

  def test_a_program_that_fails
    answer = answer_to(->(_env) { raise "no" }, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_equal [500, "Internal Server Error\n"], [answer.status, answer.body]
    assert_match(/no \(RuntimeError\)/, @errors.string)
  end

  # Those go to a disk that is full, or to a program that has ended.
  class Broken
    def puts(*) = raise(Errno::ENOSPC)
    def write(*) = raise(Errno::ENOSPC)
    def flush = raise(Errno::ENOSPC)
  end

  def test_errors_that_cannot_be_told_keep_nobody_from_an_answer
    app = lambda do |env|
      env["rack.response_finished"] << ->(*) { raise "in a callback" }
      case env["PATH_INFO"]
      when "/fails" then raise "no"
      when "/slow" then sleep
      else HELLO.call(env)
      end
    end
    looks_on = HTTP::AccessLog.new(->(_exchange) { raise "in a log" }, to: StringIO.new)
    _, told = capture_io do
      serving(app, errors: Broken.new, access_log: looks_on, request_timeout: 0.1) do |connect| # must pass
        client = connect.call
        statuses = %w[/ /slow /].map { |path| client.get(path) && client.answer.status }
        assert_equal [200, 503, 200], statuses
        client.get("/fails")
        assert_equal [500, true], [client.answer.status, client.ended?]
      end
    end
    assert_equal 1, told.scan("No space left on device").size
    assert_match(/errors: takes nothing.*in a callback/m, told)
  end

  def test_headers_that_would_be_more_than_one_are_refused_and_told
    app = ->(_env) { [200, { "x-a" => "b\r\nset-cookie: c" }, []] }
    answer = answer_to(app, "GET / HTTP/1.1\r\nhost: a\r\n\r\n", lint: false)
    assert_equal [500, nil], [answer.status, answer["set-cookie"]]
    assert_match(/the header x-a has a control character/, @errors.string)
  end

  def test_several_headers_of_one_name
    answer = answer_to(->(_env) { [200, { "set-cookie" => %w[a=1 b=2] }, []] }, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_equal %w[a=1 b=2], answer["set-cookie"]
  end

  def test_what_has_answered_is_told
    told = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(_env, status, _headers, error) { told << [1, status, error] }
      env["rack.response_finished"] << ->(_env, status, _headers, error) { told << [2, status, error] }
      HELLO.call(env)
    end
    answer_to(app, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert_equal [[2, 200, nil], [1, 200, nil]], told
  end

  def test_http_1_0
    answer = answer_to(->(_env) { [200, TEXT.dup, %w[a b].each] }, "GET / HTTP/1.0\r\n\r\n")
    assert_equal ["ab", "close", nil], [answer.body, answer["connection"], answer["transfer-encoding"]]
  end

  def test_a_program_that_takes_the_connection
    app = lambda do |env|
      io = env["rack.hijack"].call
      Thread.new do
        io.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n#{io.read(5)}")
        io.close
      end
      [-1, {}, []]
    end
    serving(app, lint: false) do |connect|
      client = connect.call
      client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\nab")
      client.send("cde")
      assert_equal ["abcde", true], [client.answer.body, client.ended?]
    end
  end

  def test_another_protocol
    echo = lambda do |stream|
      stream << stream.read(3) << stream.read(3)
      stream.close
    end
    app = ->(env) { [101, { "upgrade" => env["rack.protocol"].first, "connection" => "upgrade", "rack.hijack" => echo }, []] }
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/", "upgrade: echo", "connection: upgrade")
      answer = client.answer
      client.send("abcdef")
      assert_equal [101, "echo", "upgrade", "abcdef", true],
                   [answer.status, answer["upgrade"], answer["connection"], client.read(6), client.ended?]
    end
  end

  def test_a_client_that_goes_away_raises_in_who_writes
    raised = Thread::Queue.new
    body = lambda do |stream|
      loop { stream << ("x" * 65_536) }
    rescue StandardError => error
      raised << error
    end
    serving(->(_env) { [200, {}, body] }, lint: false) do |connect|
      client = connect.call
      client.get("/")
      client.close
    end
    assert_includes [Errno::EPIPE, Errno::ECONNRESET, Ringspun::HTTP::GoneError], raised.pop.class
    assert_equal "", @errors.string
  end

  # The length that it has said is not what it gives, and the client sees that the answer has not ended.
  def test_a_body_of_another_length_than_it_says_is_cut_and_told
    { "2" => "the body has more bytes than its content-length, 2", "9" => "the body has 3 bytes, and its content-length says 9" }
      .each do |length, message|
        serving(->(_env) { [200, { "content-length" => length }, %w[a b c].each] }, lint: false) do |connect|
          client = connect.call
          client.get("/")
          next assert_raises(Ringspun::EndOfStreamError) { client.answer } if length == "9"

          assert_equal ["ab", true], [client.answer.body, client.ended?]
        end
        assert_match(message, @errors.string)
      end
  end

  # It is the program's business, and neither the client's fault nor the end of the connection.
  def test_a_deadline_of_the_program_around_a_body_that_does_not_come
    app = lambda do |env|
      Ringspun::Machine.current.timeout(0.01) { env["rack.input"].read } # must pass
    rescue Ringspun::TimeoutError => error
      [503, TEXT.dup, [error.class.name]]
    end
    answer = answer_to(app, "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
    assert_equal [503, "Ringspun::TimeoutError"], [answer.status, answer.body]
  end

  def test_a_head_and_a_body_that_do_not_come_in_time
    { "GET / HTTP/1.1\r\n" => { head: 0.01 }, # must pass
      "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n" => { body: 0.01 } }.each do |request, limits| # must pass
      answer = answer_to(->(env) { [200, TEXT.dup, [env["rack.input"].read]] }, request, limits:)
      assert_equal [408, "close"], [answer.status, answer["connection"]]
    end
  end
end
