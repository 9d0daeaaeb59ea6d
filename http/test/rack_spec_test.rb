# frozen_string_literal: true

require "http_helper"
require "support/certificate"
require "zlib"

# rubies: all
# inputs: http, Gemfile.lock

# What a server owes to a program by the specification of Rack: rack_spec.tsv names for each of its sentences the test here, or
# why there is none. Rack::Lint stands around every program.
class HTTPRackSpecTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  GET = "GET / HTTP/1.1\r\nhost: example.org\r\n\r\n"
  # Of sentences that a server cannot break.
  REASONS = ["words", "the program's", "middleware's", "HTTP/2"].freeze

  # --- the table ---

  # The bytes of a sentence are not repeated here, only their sum.
  def sentences
    text = File.read("#{Gem.loaded_specs.fetch("rack").full_gem_path}/SPEC.rdoc")
    text.split(/^=+ Thanks/).first.each_line.reject { |line| line.strip.empty? || line.start_with?("=") }.flat_map do |line|
      line.strip.delete_prefix("* ").split(/(?<=[.:;])\s+(?=[A-Z<])/)
    end
  end

  def test_the_table_has_every_sentence
    rows = File.readlines("#{__dir__}/rack_spec.tsv", chomp: true).reject { |line| line.start_with?("#") }
               .map { |line| line.split("\t") }
    sums = sentences.map { |sentence| format("%08x", Zlib.crc32(sentence)) }
    missing = sentences.zip(sums).reject { |_, sum| rows.assoc(sum) }.map(&:first)
    assert_empty missing, "sentences of the specification that rack_spec.tsv does not have"
    assert_empty rows.map(&:first) - sums, "rows of rack_spec.tsv of which the specification has no sentence"
    rows.each { |_, *judges| judges.each { |judge| assert_includes REASONS, judge unless respond_to?(judge) } }
  end

  # --- the environment ---

  # @return [Hash] what the program has been given
  def seen(request, **)
    env = nil
    answer_to(lambda { |given|
      env = given
      [200, TEXT.dup, []]
    }, request, **)
    env
  end

  def test_the_environment
    env = seen(GET)
    assert_instance_of Hash, env
    refute env.frozen?
    assert env.keys.all? { |key| key.instance_of?(String) }
  end

  def test_each_request_has_an_environment_of_its_own
    envs = []
    app = lambda do |env|
      envs << env
      env["my.own"] = env["rack.input"] = nil
      env["PATH_INFO"] << "x"
      [200, TEXT.dup, []]
    end
    serving(app) do |connect|
      client = connect.call
      2.times { client.get("/a") && client.answer }
      refute_same(*envs)
      assert_equal(["/ax"] * 2, envs.map { |env| env["PATH_INFO"] })
    end
  end

  def test_values_of_cgi
    env = seen("GET /%C3%A4?b HTTP/1.1\r\nhost: a\r\nx-a: \xc3\xbc\r\n\r\n".b)
    values = env.reject { |key, _| key.include?(".") }.values
    assert values.all?(String)
    assert_equal [Encoding::BINARY, "\xc3\xbc".b], [env["HTTP_X_A"].encoding, env["HTTP_X_A"]]
    assert_empty(env.keys.select { |key| key.include?(".") }.grep_v(/\A(?:rack|ringspun)\./))
  end

  def test_methods
    %w[GET POST BREW].each do |method|
      assert_equal method, seen("#{method} / HTTP/1.1\r\nhost: a\r\n\r\n")["REQUEST_METHOD"]
    end
  end

  def test_paths
    { "/" => ["/", ""], "/a?b=c" => ["/a", "b=c"], "/%20/?" => ["/%20/", ""], "http://example.org" => ["/", ""],
      "http://example.org/a?b" => ["/a", "b"] }.each do |target, (path, query)|
      env = seen("GET #{target} HTTP/1.1\r\nhost: example.org\r\n\r\n")
      assert_equal ["", path, query], env.values_at("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING"), target
    end
    { "OPTIONS *" => "*", "OPTIONS http://example.org/a" => "/a", "CONNECT example.org:80" => "example.org:80" }
      .each do |line, path|
      host = line.start_with?("CONNECT") ? "example.org:80" : "example.org"
      assert_equal path, seen("#{line} HTTP/1.1\r\nhost: #{host}\r\n\r\n")["PATH_INFO"], line
    end
    ["GET *", "GET example.org:80", "CONNECT /a", "GET /a#b", "GET a"].each do |line|
      assert_equal 400, answer_to(->(_env) { flunk }, "#{line} HTTP/1.1\r\nhost: example.org\r\n\r\n").status, line
    end
  end

  def test_hosts
    { "host: example.org" => "example.org", "host: [::1]:81" => "[::1]", "host: 127.0.0.1" => "127.0.0.1" }.each do |field, name|
      env = seen("GET / HTTP/1.1\r\n#{field}\r\n\r\n")
      assert_equal [name, field.delete_prefix("host: ")], env.values_at("SERVER_NAME", "HTTP_HOST")
      assert_match(/\A\d+\z/, env["SERVER_PORT"])
    end
    assert_equal ["127.0.0.1", nil], seen("GET / HTTP/1.0\r\n\r\n").values_at("SERVER_NAME", "HTTP_HOST")
    return unless Socket.ip_address_list.any?(&:ipv6_loopback?)

    assert_equal "[::1]", seen("GET / HTTP/1.0\r\n\r\n", host: "::1")["SERVER_NAME"]
  end

  def test_ports
    serving(->(env) { [200, TEXT.dup, [env["SERVER_PORT"]]] }) do |connect, server|
      client = connect.call
      ["", ":80", ":65535"].each do |port|
        client.send("GET / HTTP/1.1\r\nhost: example.org#{port}\r\n\r\n")
        assert_equal port.empty? ? server.port.to_s : port.delete(":"), client.answer.body
      end
    end
  end

  def test_versions
    assert_equal "HTTP/1.1", seen(GET)["SERVER_PROTOCOL"]
    assert_equal "HTTP/1.0", seen("GET / HTTP/1.0\r\nhost: a\r\n\r\n")["SERVER_PROTOCOL"]
  end

  def test_fields
    env = seen("POST / HTTP/1.1\r\nhost: a\r\ncontent-type: a/b\r\ncontent-length: 3\r\nx-a-b: c\r\nx-empty:\r\n\r\nabc")
    assert_equal ["a/b", "3", "c", ""], env.values_at("CONTENT_TYPE", "CONTENT_LENGTH", "HTTP_X_A_B", "HTTP_X_EMPTY")
    refute env.key?("HTTP_CONTENT_TYPE") || env.key?("HTTP_CONTENT_LENGTH") || env.key?("HTTP_X_C")
    refute seen(GET).key?("CONTENT_TYPE") || seen(GET).key?("CONTENT_LENGTH")
  end

  # By the last hop, whatever a proxy says of the one before.
  def test_schemes
    assert_equal "http", seen("GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-proto: https\r\n\r\n")["rack.url_scheme"]
    scheme = nil
    app = ->(env) { (scheme = env["rack.url_scheme"]) && [200, TEXT.dup, []] }
    Ringspun.run do
      server = HTTP.listen(Rack::Lint.new(app), "127.0.0.1", 0, tls: Certificate.server_context)
      Ringspun.connect_tcp("127.0.0.1", server.port, tls: Certificate.client_context) do |stream|
        stream.write(GET)
        assert_match(/ 200 /, stream.read_line)
      end
      server.stop
    end
    assert_equal "https", scheme
  end

  def test_protocols_that_a_client_offers
    assert_equal %w[a b/1], seen("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: a, b/1\r\n\r\n")["rack.protocol"]
    refute seen(GET).key?("rack.protocol")
  end

  def test_what_a_server_has_not
    assert_empty %w[rack.session rack.logger rack.multipart.buffer_size rack.multipart.tempfile_factory] & seen(GET).keys
  end

  # --- the input ---

  # One that is read ahead, and one that is read as it comes.
  BODIES = ["content-length: 9\r\n\r\nab\ncd\n\nef",
            "transfer-encoding: chunked\r\n\r\n4\r\nab\nc\r\n5\r\nd\n\nef\r\n0\r\n\r\n"].freeze

  # @return [Array] what the block makes of the input, of each kind that there is
  def inputs
    BODIES.map do |rest|
      got = nil
      answer = answer_to(lambda { |env|
        got = yield env["rack.input"]
        [200, TEXT.dup, []]
      }, "POST / HTTP/1.1\r\nhost: a\r\n#{rest}")
      assert_equal 200, answer.status, @errors.string
      got
    end
  end

  def test_input_by_lines
    assert_equal [["ab\n", "cd\n", "\n", "ef", nil, nil]] * 2, inputs { |input| Array.new(6) { input.gets } }
  end

  def test_input_by_pieces
    assert_equal ["ab\ncd\n\nef"] * 2, inputs { |input| [].tap { |all| input.each { |piece| all << piece } }.join }
  end

  def test_input_at_once
    inputs { |input| [input.read, input.read, input.read(nil), input.read(1), input.read(0)] }.each do |got|
      assert_equal ["ab\ncd\n\nef", "", "", nil, ""], got
      assert_equal [Encoding::BINARY], got.compact.first(1).map(&:encoding)
    end
  end

  def test_input_by_lengths
    assert_equal [["ab\n", "", "cd\n\nef", nil]] * 2,
                 inputs { |input| [input.read(3), input.read(0), input.read(100), input.read(1)] }
  end

  def test_input_into_a_buffer
    inputs do |input|
      buffer = +"before"
      first = input.read(4, buffer)
      assert_equal ["ab\nc", true], [buffer, first.equal?(buffer)]
      rest = input.read(nil, buffer)
      assert_equal ["d\n\nef", true], [buffer, rest.equal?(buffer)]
      assert_nil input.read(1, buffer)
      assert_empty buffer
    end
  end

  def test_input_that_is_closed
    inputs(&:close)
  end

  def test_input_of_a_request_without_a_body
    got = nil
    answer_to(lambda { |env|
      input = env["rack.input"]
      got = [input.read, input.read(1), input.gets, [].tap { |all| input.each { |piece| all << piece } }]
      [200, TEXT.dup, []]
    }, GET)
    assert_equal ["", nil, nil, []], got
  end

  def test_errors
    answer_to(lambda { |env|
      errors = env["rack.errors"]
      errors.puts(:one)
      errors.write("two")
      errors.flush
      [200, TEXT.dup, []]
    }, GET)
    assert_equal "one\ntwo", @errors.string
    refute @errors.closed?
  end

  # --- behind the answer ---

  def test_what_is_called_when_the_answer_was_sent
    calls = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(*given) { calls << [1, *given] } << ->(*given) { calls << [2, *given] }
      [201, TEXT.dup, ["a"]]
    end
    serving(app) do |connect|
      client = connect.call
      client.get("/", "connection: close")
      client.answer
      assert client.ended?
    end
    assert_equal [2, 1], calls.map(&:first)
    calls.each do |_, env, status, headers, error|
      assert_equal ["/", 201, TEXT, nil], [env["PATH_INFO"], status, headers, error]
    end
  end

  def test_what_is_called_when_something_fails
    calls = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(*given) { calls << given } << ->(*) { raise "its own" }
      env["PATH_INFO"] == "/a" ? raise("before") : [200, TEXT.dup, ->(output) { output << "a" && raise("within") }]
    end
    serving(app) do |connect|
      %w[/a /b].each do |path|
        client = connect.call
        client.get(path)
        assert_raises(StandardError) { client.answer } if path == "/b"
        client.answer if path == "/a"
      end
    end
    assert_equal([[nil, "before"], [200, "within"]], calls.map { |_, status, _, error| [status, error.message] })
    assert_match(/in rack.response_finished: .*its own/, @errors.string)
  end

  # --- hijacking ---

  def test_a_full_hijack
    io = nil
    app = lambda do |env|
      io = env["rack.hijack"].call
      [404, TEXT.dup, ["this is not sent"]]
    end
    serving(app) do |connect, server|
      client = connect.call
      client.send(GET, "more")
      Ringspun::Machine.current.yield until server.connections.zero? && io
      assert_kind_of IO, io
      assert_equal "more", io.read_nonblock(4)
      io.write("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc")
      assert_equal [200, "abc"], client.answer.then { |answer| [answer.status, answer.body] }
      client.send("still")
      assert_equal "still", io.read(5)
      io.close
      assert client.ended?
    end
  end

  # With TLS it is an IO as well, and what goes through it is what the two say to each other.
  def test_a_full_hijack_of_a_connection_with_tls
    io = nil
    lost = []
    app = lambda do |env|
      io = env["rack.hijack"].call
      io.write("HTTP/1.1 200 OK\r\n\r\n", io.readpartial(100))
      [404, TEXT.dup, ["this is not sent"]]
    end
    Ringspun.run do
      server = HTTP.listen(Rack::Lint.new(app), "127.0.0.1", 0, tls: Certificate.server_context,
                                                                on_error: ->(error, _) { lost << error })
      Ringspun.connect_tcp("127.0.0.1", server.port, tls: Certificate.client_context) do |stream|
        stream.write(GET, "more")
        assert_equal "HTTP/1.1 200 OK\r\n\r\nmore", stream.read(23)
        assert_kind_of IO, io
        stream.write("x" * 300_000)
        assert_equal 300_000, io.read(300_000).bytesize
        io.close_write
        assert_predicate stream, :eof?
        stream.write("still read")
        assert_equal "still read", io.read(10)
        io.close
      end
      assert_equal 0, server.stop(within: 30)
    end
    assert_empty lost
  end

  class Closed < Array
    def each(&) = raise("the body must not be used")
    def to_ary = raise("the body must not be used")
    def closed? = @closed
    def close = @closed = true
  end

  def test_a_partial_hijack
    ignored = Closed.new
    seen = nil
    app = lambda do |env|
      seen = env["rack.hijack?"]
      call = ->(stream) { stream.write("sent") && stream.close }
      [200, TEXT.merge("rack.hijack" => call), ignored]
    end
    answer = answer_to(app, GET, lint: false)
    assert_equal [true, "sent", nil, true], [seen, answer.body, answer["rack.hijack"], ignored.closed?]
    call = ->(stream) { stream.write("sent") && stream.close }
    assert_equal "sent", answer_to(->(_env) { [200, TEXT.merge("rack.hijack" => call), []] }, GET).body
  end

  # It ends when the program says so, and not when the call returns.
  def test_a_partial_hijack_that_goes_on_in_another_strand
    call = lambda do |stream|
      Ringspun.spin { %w[a b c].each { |letter| stream.write(letter) && Ringspun::Machine.current.yield } && stream.close }
    end
    serving(->(_env) { [200, TEXT.merge("rack.hijack" => call), []] }) do |connect|
      client = connect.call
      2.times { client.get("/") }
      2.times { assert_equal "abc", client.answer.body }
    end
  end

  def test_what_a_program_keeps_is_of_no_use_any_more
    output = input = nil
    app = lambda do |env|
      input ||= env["rack.input"]
      [200, TEXT.dup, ->(stream) { output ||= stream }]
    end
    serving(app) do |connect|
      client = connect.call
      2.times do
        client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
        client.answer
      end
      assert_raises(IOError) { output.write("x") }
      assert_raises(IOError) { input.read(1) }
    end
  end

  def test_a_partial_hijack_in_both_directions
    call = ->(stream) { (stream << stream.read(3).upcase << stream.read.upcase) && stream.close }
    app = ->(_env) { [200, TEXT.merge("rack.hijack" => call), []] }
    serving(app) do |connect|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
      assert_equal "ABC", client.chunk
      client.send("2\r\nde\r\n0\r\n\r\n")
      assert_equal "DE", client.chunk
    end
  end

  def test_early_hints
    app = lambda do |env|
      env["rack.early_hints"].call("link" => "</a.css>; rel=preload")
      [200, TEXT.dup, []]
    end
    answer = answer_to(app, GET, early_hints: true)
    assert_equal [103, "</a.css>; rel=preload"], [answer.status, answer["link"]]
  end

  # --- answers ---

  def test_statuses
    [200, 204, 404, 599].each do |status|
      headers = status == 204 ? {} : TEXT.dup
      assert_equal status, answer_to(->(_env) { [status, headers, []] }, GET).status
    end
    [99, 1000, "x", nil].each do |status|
      assert_equal 500, answer_to(->(_env) { [status, TEXT.dup, []] }, GET, lint: false).status
    end
  end

  def test_headers
    headers = TEXT.merge("x-a" => "b", "set-cookie" => %w[c=d e=f], "rack.own" => "x")
    answer = answer_to(->(_env) { [200, headers, ["abc"]] }, GET)
    assert_equal ["b", %w[c=d e=f], nil], [answer["x-a"], answer["set-cookie"], answer["rack.own"]]
    [{ "a b" => "c" }, { "a\r\n" => "c" }, { "a" => "b\nc" }, { "a" => "b\0" }, { "a" => ["b", "c\r"] }, { 1 => "a" },
     { "a" => 1.5 }]
      .each { |wrong| assert_equal 500, answer_to(->(_env) { [200, wrong, ["abc"]] }, GET, lint: false).status, wrong }
  end

  def test_an_answer_without_a_body_says_nothing_of_one
    [204, 304].each do |status|
      answer = answer_to(->(_env) { [status, {}, []] }, GET)
      assert_equal status, answer.status
      assert_empty answer.headers.keys & %w[content-type content-length transfer-encoding]
    end
  end

  def test_a_change_of_protocol
    echo = ->(stream) { stream.write(stream.read(3)) && stream.close }
    serving(->(env) { [101, { "rack.protocol" => env["rack.protocol"].first }, echo] }) do |connect|
      client = connect.call
      client.get("/", "upgrade: echo", "connection: upgrade")
      answer = client.answer
      client.send("abc")
      assert_equal [101, "echo", "upgrade", nil, "abc"],
                   [answer.status, answer["upgrade"], answer["connection"], answer["rack.protocol"], client.read(3)]
    end
  end

  # --- bodies ---

  # Notes what it is asked for.
  class Noted
    attr_reader :calls

    def initialize(*able)
      @calls = []
      able.each { |name| define_singleton_method(name) { |*given, &block| note(name, given, block) } }
    end

    def note(name, given, block)
      @calls << name
      case name
      when :each then block.call("each")
      when :to_ary then %w[to ary].tap { close if respond_to?(:close) }
      when :call then given.first.write("call") && given.first.close
      when :to_path then nil
      end
    end
  end

  def test_bodies
    { %i[each] => "each", %i[call] => "call", %i[each call] => "each", %i[each to_ary] => "toary", %i[each to_path] => "each",
      %i[each close] => "each", %i[call close] => "call", %i[each call close] => "each", %i[each to_ary close] => "toary",
      %i[each call to_path to_ary close] => "toary" }.each do |able, expected|
      body = Noted.new(*able)
      assert_equal expected, answer_to(->(_env) { [200, TEXT.dup, body] }, GET, lint: false).body, able
      assert_equal able.include?(:close) ? 1 : 0, body.calls.count(:close), able
      assert_equal 1, (body.calls & %i[each call to_ary]).size, able
      assert_equal :close, body.calls.last if able.include?(:close)
    end
  end

  def test_bodies_that_are_not_sent_are_closed
    { "HEAD / HTTP/1.1\r\nhost: a\r\n\r\n" => 200, GET => 204 }.each do |request, status|
      [%i[each close], %i[call close]].each do |able|
        body = Noted.new(*able)
        serving(->(_env) { [status, {}, body] }, lint: false) do |connect|
          client = connect.call
          client.send(request)
          client.answer(head: true)
        end
        assert_equal [:close], body.calls
      end
    end
  end

  def test_files
    file = Class.new(Noted) { define_method(:to_path) { __FILE__ } }.new(:each, :close)
    assert_equal File.binread(__FILE__), answer_to(->(_env) { [200, TEXT.dup, file] }, GET, lint: false).body.b
    assert_equal [:close], file.calls
  end

  def test_the_stream_of_a_streaming_body
    methods = said = nil
    body = lambda do |stream|
      methods = %i[read write << flush close close_read close_write closed?].select { |name| stream.respond_to?(name) }
      said = [stream.closed?, stream.write("a", :b), stream.flush.equal?(stream), (stream << "c").equal?(stream)]
      said << stream.read << stream.read(1)
      stream.close_read
      said << stream.read(1) << stream.closed?
      stream.close_write
      said << stream.closed? << (stream.write("x") rescue $!.class)
      stream.close
    end
    assert_equal "abc", answer_to(->(_env) { [200, TEXT.dup, body] }, GET, lint: false).body
    assert_equal [false, 2, true, true, "", nil, nil, false, true, IOError], said
    assert_equal 8, methods.size
  end
end
