# frozen_string_literal: true

require "http_helper"

# What is said of the connection: by a program in `connection`, `upgrade` and with a 101, by the server where a body is left
# unread, and by a client in its version and in a target with a host.
class HTTPConnectionFieldsTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"
  UPGRADE = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: other, echo\r\n\r\n"

  def program(status, headers, body = []) = ->(_env) { [status, headers.dup, body] }

  # --- options of the connection ---

  # https://www.rfc-editor.org/rfc/rfc9110#section-7.8 and #section-7.6.1
  def test_what_a_program_says_of_the_connection
    {
      { "upgrade" => "TLS/1.0" } => "upgrade", { "upgrade" => "TLS/1.0", "connection" => "upgrade" } => "upgrade",
      { "Upgrade" => "a", "Connection" => "Upgrade, X-Foo" } => "Upgrade, X-Foo", { "connection" => "x-foo" } => "x-foo",
      { "connection" => %w[x-foo x-bar], "upgrade" => %w[a b] } => "x-foo, x-bar, upgrade",
      { "connection" => "close" } => "close", { "connection" => "x-foo,close" } => "x-foo, close",
      { "connection" => "close", "upgrade" => "a" } => "upgrade, close", { "connection" => "x-close" } => "x-close",
      { "connection" => "keep-alive" } => nil, { "connection" => "Keep-Alive, , x-foo" } => "x-foo",
      { "connection" => "" } => nil,
      { "connection" => "content-length, transfer-encoding, a b" } => nil
    }.each do |headers, expected|
      answer = answer_to(program(426, TEXT.merge(headers)), GET, lint: false)
      assert_equal [426, expected], [answer.status, answer["connection"]], headers
    end
  end

  def test_the_same_for_a_client_of_http_1_0
    { "" => "upgrade, close", "connection: keep-alive\r\n" => "upgrade, keep-alive" }.each do |field, expected|
      answer = answer_to(program(426, TEXT.merge("upgrade" => "a")), "GET / HTTP/1.0\r\n#{field}\r\n")
      assert_equal expected, answer["connection"]
    end
  end

  def test_an_early_hint_says_so_too
    app = lambda do |env|
      env["rack.early_hints"].call({ "upgrade" => "a", "link" => "b" })
      [200, TEXT.dup, []]
    end
    answer = answer_to(app, GET, early_hints: true)
    assert_equal [103, "a", "upgrade"], [answer.status, *answer.headers.values_at("upgrade", "connection")]
  end

  # --- a switch to another protocol ---

  # https://www.rfc-editor.org/rfc/rfc9110#section-15.2.2 and #section-7.8
  def test_a_101_that_was_not_asked_for
    bare = { "connection" => "upgrade" }
    [[GET, {}], [GET, bare.merge("upgrade" => "echo")], [UPGRADE, {}], [UPGRADE, bare],
     [UPGRADE, bare.merge("upgrade" => "third")], [UPGRADE, { "upgrade" => "echo, third" }], [UPGRADE, { "upgrade" => "" }],
     ["GET / HTTP/1.1\r\nhost: a\r\nupgrade: echo\r\n\r\n", { "upgrade" => "echo" }],
     ["GET / HTTP/1.0\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n", { "upgrade" => "echo" }]].each do |request, headers|
      answer = answer_to(program(101, headers), request, lint: false)
      assert_equal [500, "close"], [answer.status, answer["connection"]], "#{request} #{headers}"
      assert_match(/a 101 .*upgrade.*AnswerError/, @errors.string)
    end
  end

  def test_a_101_says_what_it_must
    { { "upgrade" => "echo" } => "echo", { "upgrade" => "ECHO", "connection" => "upgrade" } => "ECHO",
      { "upgrade" => "echo,other" } => "echo,other" }.each do |headers, upgrade|
      answer = answer_to(program(101, headers, ->(output) { output.close }), UPGRADE, lint: false)
      assert_equal [101, upgrade, "upgrade"], [answer.status, *answer.headers.values_at("upgrade", "connection")]
      assert_equal "", @errors.string
    end
  end

  # The next request of a connection is another one.
  def test_what_one_request_has_asked_for_is_not_asked_for_by_the_next
    asked = true
    app = ->(_env) { asked ? [200, TEXT.dup, []] : [101, { "upgrade" => "echo" }, []] }
    serving(app, lint: false) do |connect|
      client = connect.call
      client.send(UPGRADE)
      client.answer
      asked = false
      client.get("/")
      assert_equal 500, client.answer.status
    end
  end

  # --- a body that is left unread ---

  def chunked(*sizes, ends: true)
    chunks = sizes.map { |size| "#{size.to_s(16)}\r\n#{"x" * size}\r\n" }.join
    "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n#{chunks}#{"0\r\nx-sum: 1\r\n\r\n" if ends}"
  end

  # Whether a server will read what is left, a client is to know: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
  def test_chunks_that_are_left_unread
    { chunked(3, 4) => nil, chunked(3, ends: false) => "close", chunked(*[1000] * 100) => "close",
      chunked(100_000, ends: false) => "close" }.each do |request, expected|
      serving(->(_env) { [200, TEXT.dup, ["all"]] }) do |connect|
        client = connect.call
        client.send(request)
        answer = client.answer
        assert_equal ["all", expected], [answer.body, answer["connection"]]
        if expected
          client.close_write
          assert_predicate client, :ended?
        else
          client.get("/")
          assert_equal 200, client.answer.status
        end
      end
    end
  end

  # What was looked at is still read, and its trailers are where they were.
  def test_chunks_that_are_read_behind_the_head
    read = []
    app = lambda do |env|
      input = env["rack.input"]
      body = lambda do |output|
        output.write("begun")
        output.flush
        read << input.read(1) << input.read << env["ringspun.trailers"].call
      end
      [200, TEXT.dup, body]
    end
    serving(app, lint: false) do |connect|
      client = connect.call
      2.times { client.send(chunked(3, 4)) && assert_equal("begun", client.answer.body) }
    end
    assert_equal ["x", "x" * 6, { "x-sum" => "1" }] * 2, read
  end

  # --- the host ---

  # https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2
  def test_the_host_in_a_target_counts
    app = lambda do |env|
      [200, TEXT.dup, [env.values_at("HTTP_HOST", "SERVER_NAME", "PATH_INFO", "QUERY_STRING", "rack.url_scheme").join(" "),
                       " #{env["SERVER_PORT"] if env["SERVER_NAME"] == "a"}"]]
    end
    { "GET http://a:81/x?y HTTP/1.1\r\nhost: b:82\r\n\r\n" => "a:81 a /x y http 81",
      "GET http://A HTTP/1.1\r\nhost: b\r\n\r\n" => "A A /  http ",
      "GET http://a:81/ HTTP/1.0\r\n\r\n" => "a:81 a /  http 81", "GET /x HTTP/1.1\r\nhost: b\r\n\r\n" => "b b /x  http " }
      .each { |request, expected| assert_equal expected, answer_to(app, request).body, request }
  end

  def test_what_is_refused_of_hosts_all_the_same
    ["GET http://a/ HTTP/1.1\r\n\r\n", "GET http://a/ HTTP/1.1\r\nhost:\r\n\r\n",
     "GET http://a/ HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nhost: b:1\r\n\r\n"].each do |request|
      assert_equal 400, answer_to(->(_env) { flunk }, request).status, request
    end
  end

  # --- the version ---

  def test_a_version_to_come
    app = ->(env) { [200, TEXT.dup, [env["SERVER_PROTOCOL"]]] }
    answer = answer_to(app, "GET / HTTP/1.2\r\nhost: a\r\n\r\n")
    assert_equal ["HTTP/1.1", nil], [answer.body, answer["connection"]]
  end
end
