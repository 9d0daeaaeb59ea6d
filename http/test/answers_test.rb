# frozen_string_literal: true

require "http_helper"
require "tempfile"

# rubies: all

# Answers of each form, and what comes before and beside them.
class HTTPAnswersTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  HELLO = ->(_env) { [200, TEXT.dup, ["hello\n"]] }
  GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"

  # A body that is a file as well, as Rack::Files has them.
  class FileBody
    attr_reader :closed

    def initialize(path, each: nil)
      @path = path
      @each = each
      @closed = 0
    end

    def to_path = @path
    def each(&) = @each ? @each.each(&) : File.open(@path, "rb") { |file| yield file.read }
    def close = @closed += 1
  end

  def with_file(bytes)
    Tempfile.create do |file|
      file.write(bytes)
      file.flush
      yield file.path
    end
  end

  # --- files ---

  def test_files_of_every_size
    [0, 1, 32_768, 32_769, 3_000_000].each do |size|
      bytes = Random.new(size).bytes(size)
      with_file(bytes) do |path|
        body = FileBody.new(path)
        answer = answer_to(->(_env) { [200, TEXT.dup, body] }, GET)
        assert_equal [size.to_s, nil, 1], [answer["content-length"], answer["transfer-encoding"], body.closed]
        assert_equal bytes, answer.body.b
      end
    end
  end

  def test_files_on_one_connection_and_to_http_1_0
    bytes = Random.new(1).bytes(300_000)
    with_file(bytes) do |path|
      serving(->(_env) { [200, TEXT.dup, FileBody.new(path)] }) do |connect|
        client = connect.call
        3.times { client.get("/") }
        3.times { assert_equal bytes, client.answer.body }
        client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n")
        assert_equal "300000", client.answer(head: true)["content-length"]
        assert_equal [bytes, "close", true], [(answer = client.answer).body, answer["connection"], client.ended?]
      end
    end
  end

  # Its length is that of a part, and where the part is nobody knows but the body.
  def test_a_part_of_a_file_is_the_programs_business
    with_file("0123456789" * 10_000) do |path|
      headers = { "content-length" => "5", "content-range" => "bytes 2-6/100000" }
      answer = answer_to(->(_env) { [206, headers, FileBody.new(path, each: ["234", "56"])] }, GET)
      assert_equal [206, "23456"], [answer.status, answer.body]
    end
  end

  def test_a_file_that_is_none
    ["/nowhere/at/all", Dir.pwd, nil].each do |path|
      assert_equal "abc", answer_to(->(_env) { [200, TEXT.dup, FileBody.new(path, each: %w[a bc])] }, GET, lint: false).body
    end
  end

  # The client has been told another length.
  def test_a_file_that_is_cut_while_it_is_sent
    with_file("x" * 30_000_000) do |path|
      serving(->(_env) { [200, {}, FileBody.new(path)] }) do |connect|
        client = connect.call
        client.get("/")
        client.read(100_000)
        File.truncate(path, 100_000)
        assert_operator client.rest.bytesize, :<, 29_000_000
        assert_match(/content-length says 30000000/, @errors.string)
      end
    end
  end

  def test_a_client_that_goes_away_in_the_middle_of_a_file
    with_file("x" * 30_000_000) do |path|
      body = FileBody.new(path)
      serving(->(_env) { [200, {}, body] }) do |connect, server|
        client = connect.call
        client.get("/")
        client.read(100_000)
        client.close
        server.stop
        assert_equal [1, ""], [body.closed, @errors.string]
      end
    end
  end

  # --- what comes before an answer ---

  HINTS = lambda do |env|
    env["rack.early_hints"]&.call("link" => ["</a.css>; rel=preload", "</b.js>; rel=preload"], "x-a" => "b")
    HELLO.call(env)
  end

  def test_early_hints
    serving(HINTS, early_hints: true) do |connect|
      client = connect.call
      client.send(GET, "GET / HTTP/1.0\r\n\r\n")
      hints = client.answer
      assert_equal [103, { "link" => ["</a.css>; rel=preload", "</b.js>; rel=preload"], "x-a" => "b" }],
                   [hints.status, hints.headers]
      assert_equal [200, "hello\n"], client.answer.then { |answer| [answer.status, answer.body] }
      assert_equal 200, client.answer.status
    end
  end

  def test_no_early_hints_unless_asked
    assert_equal 200, answer_to(HINTS, GET).status
  end

  def test_early_hints_that_cannot_be_sent
    app = lambda do |env|
      env["rack.early_hints"].call("x-a" => "b\r\nc: d")
      HELLO.call(env)
    end
    assert_equal 500, answer_to(app, GET, lint: false, early_hints: true).status
    assert_match(/the header x-a has a control character/, @errors.string)
    late = ->(env) { [200, {}, ->(_output) { env["rack.early_hints"].call({}) }] }
    assert_equal 500, answer_to(late, GET, lint: false, early_hints: true).status
    assert_match(/an early hint does not come now/, @errors.string)
  end

  # --- trailers ---

  def test_trailers_are_apart_from_headers
    app = lambda do |env|
      trailers = env["ringspun.trailers"]
      before = trailers.call
      body = env["rack.input"].read
      [200, TEXT.dup, [[before, body, trailers.call, env["HTTP_X_SUM"]].inspect]]
    end
    request = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n"
    assert_equal [nil, "abc", { "x-sum" => "1, 2" }, nil].inspect, answer_to(app, request).body
  end

  def test_no_trailers_where_there_can_be_none
    app = ->(env) { [200, TEXT.dup, [env.key?("ringspun.trailers").to_s]] }
    assert_equal "false", answer_to(app, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\na").body
  end

  # --- limits ---

  def test_a_body_is_too_long_with_its_length_and_without
    app = ->(env) { [200, TEXT.dup, [env["rack.input"].read]] }
    { "content-length: 11\r\n\r\n" => 413, "content-length: 11\r\nexpect: 100-continue\r\n\r\n" => 413,
      "content-length: 10\r\n\r\n0123456789" => 200,
      "transfer-encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n" => 200,
      "transfer-encoding: chunked\r\n\r\n5\r\n01234\r\n6\r\n567890\r\n0\r\n\r\n" => 413,
      "transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n" => 413 }.each do |rest, status|
      assert_equal status, answer_to(app, "POST / HTTP/1.1\r\nhost: a\r\n#{rest}", limits: { body_max: 10 }).status, rest
    end
  end

  def test_more_requests_than_may_be_at_once
    gate = Ringspun::Condition.new
    app = ->(env) { (env["PATH_INFO"] == "/" ? HELLO.call(env) : gate.wait && HELLO.call(env)) }
    serving(app, max_requests: 2) do |connect|
      clients = Array.new(3) { connect.call }
      clients.first(2).each { |client| client.get("/slow") }
      Ringspun::Machine.current.yield until gate.waiting == 2
      clients.last.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc")
      answer = clients.last.answer
      assert_equal [503, "1", nil], [answer.status, answer["retry-after"], answer["connection"]]
      gate.broadcast
      clients.first(2).each { |client| assert_equal 200, client.answer.status }
      clients.last.get("/")
      assert_equal 200, clients.last.answer.status
    end
  end

  def post(fields, *pieces) = ["POST / HTTP/1.1\r\nhost: a\r\n#{fields}\r\n\r\n", *pieces]

  # A body of each form, small ones and those that go to a disk: its head, its first half and its second.
  def halves_of_bodies
    [["a", "b"], ["a" * 50_000, "b" * 50_000], ["a" * 400_000, "b" * 600_000]].flat_map do |one, other|
      length = "content-length: #{one.bytesize + other.bytesize}"
      chunks = [one, other].map { |data| "#{data.bytesize.to_s(16)}\r\n#{data}\r\n" }
      [post(length, one, other), post("#{length}\r\nexpect: 100-continue", one, other),
       post("transfer-encoding: chunked", chunks.first, "#{chunks.last}0\r\n\r\n")].map { |parts| [parts, one + other] }
    end
  end

  ECHO = ->(env) { [200, TEXT.dup, [env["rack.input"]&.read.to_s]] }

  # Others are served while it comes.
  def test_a_body_that_comes_slowly_takes_no_place
    serving(ECHO, max_requests: 1) do |connect|
      halves_of_bodies.each do |(head, first, second), body|
        slow, other = connect.call, connect.call
        slow.send(head, first)
        2.times { |number| assert_equal 200, other.get("/#{number}") && other.answer.status }
        slow.send(second)
        assert_equal 100, slow.answer.status if head.include?("expect")
        assert_equal body, slow.answer.body
        assert_equal 200, slow.get("/") && slow.answer.status
      end
    end
  end

  def test_a_client_that_expects_to_be_told_to_go_on_where_there_is_no_place
    gate = Ringspun::Condition.new
    serving(->(env) { gate.wait && HELLO.call(env) }, max_requests: 1) do |connect|
      first, second = connect.call, connect.call
      first.get("/")
      Ringspun::Machine.current.yield until gate.waiting == 1
      second.send(*post("content-length: 100000\r\nexpect: 100-continue"))
      assert_equal 503, second.answer.status
      gate.broadcast
      assert_equal 200, first.answer.status
    end
  end

  # What was spooled has no name, is the program's until it has answered, and can be read as any IO.
  def test_a_body_on_disk
    kept = nil
    app = lambda do |env|
      kept = env["rack.input"]
      [200, TEXT.dup, [[kept.gets, kept.read(2), kept.read(3, +""), kept.each.map(&:bytesize), kept.read].inspect]]
    end
    Dir.mktmpdir do |folder|
      with_env("TMPDIR" => folder) do
        body = "abc\n#{"x" * 100_000}\n\xff"
        answer = answer_to(app, post("content-length: #{body.bytesize}", body).join, max_requests: 1, lint: false)
        assert_equal ["abc\n", "xx", "xxx", [99_996, 1], ""].inspect, answer.body
        assert_predicate kept, :closed?
        assert_empty Dir.children(folder)
      end
    end
  end

  def test_a_body_that_breaks_on_its_way_to_the_disk
    Dir.mktmpdir do |folder|
      with_env("TMPDIR" => folder) do
        serving(ECHO, max_requests: 1) do |connect, server|
          client = connect.call
          client.send(*post("transfer-encoding: chunked", "18000\r\n#{"x" * 0x18000}\r\nno\r\n"))
          assert_equal 400, client.answer.status
          connect.call.send(*post("content-length: 200000", "x" * 100_000))
          Ringspun::Machine.current.yield until files_open.any?
          server.stop(within: 0)
        end
        assert_equal ["ringspun-http: POST / has no whole answer: the server has stopped\n", []], [@errors.string, files_open]
      end
    end
  end

  # Those of this process that have no name any more.
  def files_open = Dir.glob("/proc/self/fd/*").filter_map { |link| name_of(link) }.grep(/ringspun-http-.*deleted/)

  def name_of(link)
    File.readlink(link)
  rescue Errno::ENOENT
    nil # that of the glob
  end

  def test_a_body_for_which_there_is_no_place_on_disk
    usual = Tempfile.method(:create)
    in_place_of_create { |*| raise Errno::ENOSPC }
    answer = answer_to(ECHO, post("content-length: 70000", "x" * 70_000).join, max_requests: 1)
    assert_equal [500, "close"], [answer.status, answer["connection"]]
    assert_match(/the body of a request finds no place on disk \(No space left on device\): set TMPDIR/, @errors.string)
  ensure
    in_place_of_create(&usual)
  end

  # Its last piece is so small that Ruby would keep it until the file is closed.
  def test_a_body_whose_last_piece_finds_no_room
    usual = Tempfile.method(:create)
    folder = Dir.mktmpdir
    in_place_of_create do |*|
      File.symlink("/dev/full", link = File.join(folder, "full"))
      File.open(link, "r+b")
    end
    answer = answer_to(ECHO, post("content-length: 65637", "x" * 65_637).join, max_requests: 1)
    assert_equal 500, answer.status
    assert_match(/finds no place on disk \(No space left on device/, @errors.string)
  ensure
    in_place_of_create(&usual)
    FileUtils.remove_entry(folder)
  end

  def in_place_of_create(&)
    Tempfile.singleton_class.remove_method(:create)
    Tempfile.define_singleton_method(:create, &)
  end

  def with_env(values)
    before = values.to_h { |name, _| [name, ENV.fetch(name, nil)] }
    ENV.update(values)
    yield
  ensure
    ENV.update(before)
  end

  def test_options_that_are_none
    { max_requests: [0, -1, 1.5, "1"], request_timeout: [0, -1, "1", Float::INFINITY, 1i] }.each do |name, values|
      values.each do |value|
        error = assert_raises(Ringspun::UsageError) { HTTP.listen(HELLO, "127.0.0.1", 0, name => value) }
        assert_match(/#{name} must be/, error.message)
      end
    end
    %i[first_byte keep_alive head body write leaving].each do |name|
      [0, "1", -1, 1i].each do |value|
        error = assert_raises(Ringspun::UsageError) { HTTP.listen(HELLO, "127.0.0.1", 0, limits: { name => value }) }
        assert_match(/\Alimits: #{name} must be seconds above 0, or nil/, error.message)
      end
    end
  end

  # --- other strands beside it ---

  # Each piece is a chunk of its own, whatever waits in between.
  def test_two_strands_that_write
    body = lambda do |output|
      Ringspun.scope do |scope|
        %w[a b].each { |letter| scope.spin { 20.times { output.write(letter * 300_000) } } }
      end
    end
    serving(->(_env) { [200, TEXT.dup, body] }) do |connect|
      client = connect.call
      client.get("/")
      body = client.answer.body
      assert_equal [6_000_000, 6_000_000], [body.count("a"), body.count("b")]
    end
  end

  # --- what a program raises ---

  def test_errors_that_are_no_standard_errors
    [NotImplementedError, SystemStackError, NoMemoryError].each do |error|
      assert_equal 500, answer_to(->(_env) { raise error, "no" }, GET).status
      assert_match(/no \(#{error}\)/, @errors.string)
    end
  end

  def test_a_body_is_closed_whatever_is_wrong_with_the_answer
    { [nil, {}] => 500, [200, { "a b" => "c" }] => 500, [200, 7] => 500 }.each do |(status, headers), expected|
      [FileBody.new("/nowhere", each: ["a"]), FileBody.new(__FILE__)].each do |body|
        assert_equal expected, answer_to(->(_env) { [status, headers, body] }, GET, lint: false).status
        assert_equal 1, body.closed
      end
    end
  end

  # What has no length ends with the connection, so an end that is none must not look like one.
  def test_an_answer_to_http_1_0_that_fails
    app = ->(_env) { [200, TEXT.dup, ->(output) { output.write("begun").then { output.flush } && raise("no") }] }
    serving(app) do |connect|
      client = connect.call
      client.send("GET / HTTP/1.0\r\n\r\n")
      assert_raises(Errno::ECONNRESET) { client.rest }
    end
  end

  def test_an_answer_to_http_1_0_that_is_cut_by_a_stop
    app = ->(_env) { [200, TEXT.dup, ->(output) { output.write("begun") && output.flush && Ringspun::Machine.current.sleep }] }
    serving(app) do |connect, server|
      client = connect.call
      client.send("GET / HTTP/1.0\r\n\r\n")
      assert_includes client.some(1000), "HTTP/1.1 200 OK"
      assert_equal 1, server.stop(within: 0)
      assert_raises(Errno::ECONNRESET) { client.rest }
    end
  end

  # --- upgrades ---

  def test_a_protocol_that_the_program_chooses
    echo = ->(stream) { stream.write(stream.read(3), stream.readpartial(100)) }
    app = ->(env) { [200, { "rack.protocol" => env["rack.protocol"].last }, echo] }
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/", "upgrade: other, echo", "connection: upgrade")
      answer = client.answer
      client.send("abcd")
      assert_equal [101, "echo", "upgrade", nil, "abcd", true],
                   [answer.status, *answer.headers.values_at("upgrade", "connection", "content-length"), client.read(4),
                    client.ended?]
    end
  end

  def test_a_protocol_that_nobody_has_asked_for
    assert_equal 500, answer_to(->(_env) { [200, { "rack.protocol" => "echo" }, []] }, GET, lint: false).status
    assert_match(/the header rack.protocol says "echo"/, @errors.string)
  end

  # --- turns ---

  # Its requests are all there, and those of others have their turn nevertheless.
  def test_a_client_that_sends_many_requests_at_once
    served = []
    gate = Ringspun::Condition.new
    app = lambda do |env|
      gate.wait if env["PATH_INFO"] == "/first"
      served << env["PATH_INFO"]
      HELLO.call(env)
    end
    serving(app) do |connect|
      greedy = connect.call
      greedy.send("GET /first HTTP/1.1\r\nhost: a\r\n\r\n", "GET /greedy HTTP/1.1\r\nhost: a\r\n\r\n" * 1000)
      Ringspun::Machine.current.yield until gate.waiting == 1
      other = connect.call
      other.get("/other")
      gate.broadcast
      assert_equal "hello\n", other.answer.body
      assert_operator served.index("/other"), :<, 200
      1001.times { greedy.answer }
    end
  end
end
