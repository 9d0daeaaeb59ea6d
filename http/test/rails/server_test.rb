# frozen_string_literal: true

require "http_helper"
require "json"
require "net/http"
require "support/crowd"
require "support/rails_site"
require "support/web_socket"

RailsSite.folder # before the first test, for a test's time is limited

# A generated application in production, served by `bin/rails server -u ringspun`: one process, one thread.
class RailsServerTest < Minitest::Test
  include AnyBackend

  REQUESTS = 50 # as many as the pool has connections

  class << self
    # One server for all tests of this class.
    def server
      @server ||= RailsSite.server("-b", "127.0.0.1", "--early-hints").tap do |command, _|
        Minitest.after_run { command.close }
      end
    end
  end

  # Before the leak checks look.
  def before_setup
    _, @port = self.class.server
    super
  end

  def setup
    super
    @crowd = Crowd.new("#{RailsSite.data}/crowd")
  end

  def teardown
    @crowd.close
    super
  end

  def get(path, **headers) = Net::HTTP.get_response(URI("http://127.0.0.1:#{@port}#{path}"), headers.transform_keys(&:to_s))

  # What the application has logged since.
  def logged
    log = "#{RailsSite.folder}/log/production.log"
    from = File.exist?(log) ? File.size(log) : 0
    yield
    File.open(log) { |file| file.seek(from) && file.readlines(chomp: true) }
  end

  def test_up
    assert_equal "200", get("/up").code
  end

  def test_early_hints
    TCPSocket.open("127.0.0.1", @port) do |socket|
      socket.write("GET /hints HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      assert_match(%r{\AHTTP/1\.1 103 .*\r\nlink: </a\.css>; rel=preload\r\n\r\nHTTP/1\.1 200 .*\r\n\r\none\z}m, socket.read)
    end
  end

  # What each should see is told by its number alone.
  def expected(number)
    role = number.odd? ? "reading" : "writing"
    [number, number, %w[en de fr][number % 3], %w[UTC Berlin Tokyo Lima][number % 4], role,
     number.odd? ? "replica" : "primary"]
  end

  def test_requests_at_once_do_not_see_each_others_state_nor_mix_their_lines
    answers = nil
    lines = logged do
      answers = crowd_of(Array.new(REQUESTS) { |number| "/state/#{number}" })
    end
    answers.each_with_index do |answer, number|
      seen = JSON.parse(answer.body).map { |state| state.first(6) }
      assert_equal [expected(number)] * 2, seen
    end
    assert_lines_of_requests lines
  end

  # All wait in the application at the same time, and then go on.
  def crowd_of(paths, times: 1)
    Ringspun.run do |machine|
      asked = paths.map { |path| machine.spin { get(path) } }
      times.times do
        @crowd.gather(paths.size)
        @crowd.go
      end
      asked.map(&:await)
    end
  end

  # Before Rails 8.0 time and process come first.
  LINE = /\A(?:I, \[[^\]]+\]  INFO -- : )?\[(?<id>\h{8}(?:-\h{4}){3}-\h{12})\] (?<text>.*)\z/

  # Each line is whole, and has the tag of its own request. The thread of a stream, which has no tag, may still log its end.
  def assert_lines_of_requests(lines)
    tagged = lines.filter_map { |line| line.match(LINE) }
    texts_of_each = tagged.group_by { |line| line[:id] }.values.map { |own| own.map { |line| line[:text] } }
    assert_equal REQUESTS, texts_of_each.size
    texts_of_each.each do |texts|
      number = texts.grep(/\AStarted GET/).first[%r{/state/(\d+)}, 1]
      assert_equal ["before #{number}", "after #{number}"], texts.grep(/\A(?:before|after) /)
      assert_equal 1, texts.grep(/\ACompleted 200/).size
    end
  end

  def test_a_request_keeps_its_connection_to_the_database_across_waits
    answers = crowd_of(["/connection"] * REQUESTS, times: 2).map { |answer| JSON.parse(answer.body) }
    assert_empty(answers.reject { |first, second| first == second })
    assert_equal REQUESTS, answers.map(&:first).uniq.size
  end

  # A form that Rails reads and that has no file in it.
  FORM = "POST /uploads HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\n" \
         "content-length: 70000\r\n\r\n".freeze

  # They are as many as there are turns, and have none while their bodies come.
  def test_slow_uploads_keep_nobody_waiting
    Ringspun.run do
      uploads = Array.new(REQUESTS) { Ringspun.connect_tcp("127.0.0.1", @port) }
      uploads.each { |stream| stream.write(FORM, "x" * 69_999) && stream.flush }
      assert_equal "200", get("/up").code
      uploads.each { |stream| stream.write("x") }
      assert_equal(["400"] * REQUESTS, uploads.map { |stream| stream.read[/ (\d{3}) /, 1] })
    ensure
      uploads&.each(&:close)
    end
  end

  # As the pool has connections; the others come when these have left.
  def test_more_requests_than_there_are_turns
    more = 20
    answers = Ringspun.run do |machine|
      asked = Array.new(REQUESTS + more) { machine.spin { get("/connection") } }
      2.times { @crowd.gather(REQUESTS) && @crowd.go }
      2.times { @crowd.gather(more) && @crowd.go }
      asked.map(&:await)
    end
    assert_equal ["200"], answers.map(&:code).uniq
  end

  def test_the_inspector_has_the_route
    assert_includes get("/strands/7").body, "\"GET /strands/7 (/strands/:number(.:format))\""
  end

  def test_events
    answer = get("/events", "Last-Event-ID": "6")
    assert_equal ["text/event-stream", "no-cache"], [answer.content_type, answer["cache-control"]]
    assert_match(/\Aid: 7\ndata: \d+ notes\n\n\z/, answer.body)
  end

  def test_action_controller_live
    assert_match(/\Aevent: count\ndata: \d+ notes\n\ndata: more\n\n\z/, live_events)
    assert_includes %w[ActionController::Live::ClientDisconnected IOError], word_of_who_writes_on
  end

  # Two events; then the client goes away.
  def live_events
    events = +""
    Ringspun.run do
      Ringspun.connect_tcp("127.0.0.1", @port) do |stream|
        stream.write("GET /live HTTP/1.1\r\nhost: a\r\n\r\n")
        @crowd.gather(1)
        @crowd.go
        head = stream.read_until("\r\n\r\n")
        assert_match(%r{^content-type: text/event-stream}i, head)
        events << chunk(stream) until events.include?("more")
      end
    end
    events
  end

  def chunk(stream)
    bytes = stream.read(Integer(stream.read_line(chomp: true), 16))
    stream.read(2)
    bytes
  end

  # Until the application sees that the client has gone: its first writes go into the buffers of the kernel.
  def word_of_who_writes_on
    loop do
      word = @crowd.gather(1).first
      @crowd.go
      return word unless word == "here"
    end
  end

  def test_action_cable
    WebSocketClient.open("127.0.0.1", @port, "/cable") do |one|
      assert_equal "welcome", one.message.fetch("type")
      room = JSON.generate(channel: "RoomChannel")
      one.tell(command: "subscribe", identifier: room)
      assert_equal "confirm_subscription", one.message_but("ping").fetch("type")
      one.tell(command: "message", identifier: room, data: JSON.generate(action: "say", text: "ä" * 10_000))
      said = one.message_but("ping").fetch("message")
      assert_equal [10_000, true], [said["said"].size, said["notes"] >= 3]
    end
  end

  def test_files
    robots = File.binread("#{RailsSite.folder}/public/robots.txt")
    assert_equal robots, get("/file").body
    assert_equal robots, get("/robots.txt").body
    part = get("/robots.txt", Range: "bytes=2-5")
    assert_equal ["206", robots[2..5], "bytes 2-5/#{robots.bytesize}"], [part.code, part.body, part["content-range"]]
  end

  def test_active_storage
    bytes = Random.new(1).bytes(300_000)
    answer = upload(bytes)
    assert_equal ["200", bytes.bytesize], [answer.code, JSON.parse(answer.body).fetch("bytes")]
    paths = JSON.parse(answer.body).values_at("path", "redirect")
    assert_equal bytes, get(paths.first).body
    location = URI(get(paths.last)["location"])
    assert_equal bytes, get(location.request_uri).body
  end

  def upload(bytes)
    uri = URI("http://127.0.0.1:#{@port}/uploads")
    request = Net::HTTP::Post.new(uri)
    request.set_form([["file", StringIO.new(bytes), { filename: "a.bin" }]], "multipart/form-data")
    Net::HTTP.start(uri.host, uri.port) { |http| http.request(request) }
  end
end
