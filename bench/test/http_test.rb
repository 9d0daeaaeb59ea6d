# frozen_string_literal: true

require_relative "test_helper"
require "socket"
require "bench/http/asking"
require "bench/http/served"

# What the tables of HTTP servers share: the clients, which compare each answer, and what counts the server's processes.
class BenchTest::HttpTest < Minitest::Test
  REQUEST = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
  HEAD = "HTTP/1.1 200 OK\r\n"

  def setup = @folder = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@folder)

  def test_each_connection_asks_as_often_as_it_is_to
    result = ask("#{HEAD}Content-Length: 5\r\n\r\nhello", connections: 3, each: 7)
    assert_equal 21, result[:answered]
    assert_operator result[:seconds], :>, 0
  end

  def test_an_answer_may_be_framed_in_each_way
    ["#{HEAD}content-length:5\r\n\r\nhello", "#{HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
     "#{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n", "#{HEAD}Connection: close\r\n\r\nhello",
     "#{HEAD}Connection: close\r\nContent-Length: 5\r\n\r\nhello"].each do |answer|
      closes = answer.include?("close")
      assert_equal 6, ask(answer, closes:, connections: 2, each: 3)[:answered], answer
    end
  end

  def test_a_wrong_answer_voids_the_run
    { "another body" => "#{HEAD}Content-Length: 5\r\n\r\nhullo", "too short" => "#{HEAD}Content-Length: 4\r\n\r\nhell",
      "too long" => "#{HEAD}Content-Length: 6\r\n\r\nhello!",
      "that nobody has asked for" => "#{HEAD}Content-Length: 5\r\n\r\nhello!",
      "another status" => "HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nhello",
      "broken chunk" => "#{HEAD}Transfer-Encoding: chunked\r\n\r\nx" }.each do |fault, answer|
      error = assert_raises(RuntimeError, answer) { ask(answer, connections: 1, each: 2) }
      assert_includes error.message, fault
    end
  end

  def test_a_server_that_closes_without_an_answer_voids_it_too
    error = assert_raises(RuntimeError) { ask("", closes: true, connections: 1, each: 2) }
    assert_match(/closed without an answer/, error.message)
  end

  def test_new_connections_are_timed
    result = ask("#{HEAD}Content-Length: 5\r\n\r\nhello", connections: 1, new_us: 2_000, ms: 60)
    assert_operator result[:new], :>, 0
    assert_operator result[:p99], :>=, result[:p50]
    assert_operator result[:answered], :>, result[:new]
    alone = ask("#{HEAD}Content-Length: 5\r\n\r\nhello", new_us: 2_000, ms: 60)
    assert_equal alone[:answered], alone[:new]
  end

  def test_of_a_large_answer_the_bytes_are_counted
    large = Random.new(1).bytes(3 << 20)
    result = ask("#{HEAD}Content-Length: #{large.bytesize}\r\n\r\n#{large}", body: large, connections: 2, each: 2, skim: 1)
    assert_equal 4, result[:answered]
  end

  def test_events_come_from_the_floor
    serve do |port, _|
      result = clients(port, BODY_OF_EVENT, connections: 5, events: 3, &:run)
      assert_equal 15, result[:answered]
    end
  end

  def test_a_family_is_all_that_a_process_has_started
    reader, writer = IO.pipe
    pid = spawn(RbConfig.ruby, "--disable-gems", "-e", "fork { $stdout.syswrite '.'; sleep }; sleep", out: writer)
    reader.readpartial(1)
    family = Bench::Http::Family.new(pid)
    assert_equal 2, family.pids.size
    assert_operator family.bytes, :>, 1 << 20
    spent = family.spent { nil }
    assert_equal %i[user system], spent.keys
    child = family.pids.last
    family.kill
    refute_path_exists "/proc/#{pid}"
    refute File.exist?("/proc/#{child}/exe")
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_server_that_does_not_start_says_why
    program = ->(_folder, _port) { [{}, RbConfig.ruby, "--disable-gems", "-e", "abort 'no such thing'"] }
    error = assert_raises(RuntimeError) { Bench::Http::Served.during(@folder, program) { flunk } }
    assert_match(/does not listen; the server's last words: no such thing/, error.message)
  end

  private

  BODY_OF_EVENT = "data: x\n\n"

  # The floor, as a server of events.
  def serve
    program = lambda do |folder, port|
      { "answer" => "#{HEAD}transfer-encoding: chunked\r\n\r\n", "event" => "9\r\n#{BODY_OF_EVENT}\r\n" }.each do |name, bytes|
        File.binwrite(File.join(folder, name), bytes)
      end
      [{}, Bench::FloorProgram.new("http_constant.c").path, port.to_s, "answer", "event", "1000"]
    end
    Bench::Http::Served.during(@folder, program) { |served| yield served.port, served }
  end

  def clients(port, body, **)
    asking = Bench::Http::Asking.new(@folder, port, REQUEST, body, **)
    asking.ready
    yield asking
  ensure
    asking&.close
  end

  # Clients of a server that answers each request with these bytes.
  def ask(answer, body: "hello", closes: false, **)
    server = TCPServer.new("127.0.0.1", 0)
    serving = Thread.new do
      loop { Thread.new(server.accept) { |socket| answer_all(socket, answer, closes) } }
    end
    clients(server.local_address.ip_port, body, **, &:run)
  ensure
    serving&.kill&.join
    server&.close
  end

  def answer_all(socket, answer, closes)
    while socket.gets("\r\n\r\n")
      socket.write(answer)
      break if closes
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  ensure
    socket.close
  end
end
