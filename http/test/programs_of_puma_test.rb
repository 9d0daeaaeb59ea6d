# frozen_string_literal: true

require "http_helper"
require "tempfile"

# What programs do that have run under another server for years, and that Rack::Lint would refuse.
class HTTPProgramsOfPumaTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"

  # A file's path, and another body where that is not used.
  WithPath = Struct.new(:to_path) do
    def each = yield("each")
  end

  # @return [Answer] to GET / of a program that Rack::Lint need not like
  def get(headers: {}, body: ["hello"], status: 200, **)
    answer_to(->(_env) { [status, { **TEXT, **headers }, body] }, GET, lint: false, **)
  end

  # --- headers ---

  def test_values_that_are_no_strings
    answer = get(headers: { "x-number" => 5, "x-big" => 2**80, "x-word" => :word, "x-true" => true, "x-false" => false })
    assert_equal ["5", (2**80).to_s, "word", "true", "false"],
                 answer.headers.values_at("x-number", "x-big", "x-word", "x-true", "x-false")
    answer = get(headers: { "x-nil" => nil, "x-all" => [1, :two], "content-length" => 5, "x-name": "of a Symbol" })
    assert_equal [200, nil, %w[1 two], "5", "of a Symbol"],
                 [answer.status, *answer.headers.values_at("x-nil", "x-all", "content-length", "x-name")]
  end

  def test_values_that_nobody_can_send
    [Object.new, 1.5, [nil], { a: 1 }].each { |value| assert_equal 500, get(headers: { "x-a" => value }).status }
    assert_match(/the header x-a must be a String/, @errors.string)
  end

  # --- statuses and bodies ---

  # The client would wait for the answer that comes after a 100.
  def test_a_status_that_is_none_of_an_answer
    [100, 102, 103, 199].each { |status| assert_equal 500, get(status:).status }
    assert_match(/the status 199 is none of an answer/, @errors.string)
  end

  def test_what_is_no_body
    { "text" => "got String; put it into an Array", 7 => "got Integer", nil => "got NilClass" }.each do |body, message|
      assert_equal 500, get(body:).status
      assert_includes @errors.string, message
    end
    assert_equal [204, 304], [204, 304].map { |status| get(status:, body: nil).status }
  end

  # What a program says of its length may be that of no bytes, and whatever it gives would be taken for the next answer.
  def test_nothing_follows_the_head_where_nothing_may
    bodies = { "/" => %w[a], "/each" => %w[a].each }
    app = ->(env) { [Integer(env["QUERY_STRING"]), { "content-length" => "0" }, bodies[env["PATH_INFO"]]] }
    serving(app, lint: false) do |connect|
      client = connect.call
      ["HEAD /?200", "HEAD /each?200", "GET /?304", "HEAD /?204", "HEAD /?205"].each do |line|
        client.send("#{line} HTTP/1.1\r\nhost: a\r\n\r\n")
        assert_equal line[/\d+/], client.answer(head: true).status.to_s
      end
      client.send("GET /?200 HTTP/1.1\r\nhost: a\r\n\r\n")
      assert_equal 500, client.answer.status
    end
  end

  # Its size is 0, and it has bytes all the same.
  def test_a_file_of_proc
    app = ->(_env) { [200, TEXT.dup, WithPath.new("/proc/self/status")] }
    %w[GET HEAD].each do |method|
      answer = answer_to(app, "#{method} / HTTP/1.1\r\nhost: a\r\n\r\n")
      assert_equal [200, "0", ""], [answer.status, answer["content-length"], answer.body]
    end
  end

  def test_a_length_of_a_file_whatever_its_form_is
    Tempfile.create do |file|
      file.write("x" * 100_000)
      file.flush
      [{ "Content-Length" => "4" }, { "content-length" => 4 }, { "Content-Length": 4 }].each do |headers|
        answer = get(headers:, body: WithPath.new(file.path))
        assert_equal [200, "4", "each"], [answer.status, answer["content-length"], answer.body]
      end
    end
  end
end
