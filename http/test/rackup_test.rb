# frozen_string_literal: true

require "http_helper"
require "net/http"
require "socket"
require "tmpdir"
require "rackup/handler/ringspun"

# rubies: all

# The ways in which others start servers.
class HTTPRackupTest < Minitest::Test
  include AnyBackend

  HELLO = ->(_env) { [200, { "content-type" => "text/plain" }, ["hello\n"]] }

  def test_the_handler_of_rackup_serves_until_it_is_told_to_end
    assert_same Rackup::Handler::Ringspun, Rackup::Handler.get("ringspun")
    got = nil
    Rackup::Handler::Ringspun.run(Rack::Lint.new(HELLO), Host: "127.0.0.1", Port: 0, quiet: true) do |server|
      Thread.new do
        got = Net::HTTP.get(URI("http://127.0.0.1:#{server.port}/"))
        Rackup::Handler::Ringspun.shutdown
      end
    end
    assert_equal "hello\n", got
  end

  # What is served does not hang on what is told.
  def test_a_full_standard_output
    full = File.open("/dev/full", "w")
    server = Ringspun::HTTP.const_get(:Foreground).new(HELLO, host: "127.0.0.1", port: 0, out: full)
    _out, said = capture_io { server.run { server.stop } }
    assert_match(/takes nothing .*No space left.*Listening on/, said)
  ensure
    assert_raises(Errno::ENOSPC) { full.close } # it tries once more
  end

  def test_a_connection_that_waits_for_its_next_request_has_no_strand
    seen = []
    app = ->(env) { HELLO.call(env).tap { seen.push(Fiber[:path]) && (Fiber[:path] = env["PATH_INFO"]) } }
    Rackup::Handler::Ringspun.run(app, Host: "127.0.0.1", Port: 0, quiet: true) do |server|
      Thread.new do
        idle = server.instance_variable_get(:@idle)
        TCPSocket.open("127.0.0.1", server.port) do |client|
          client.write(%w[/0 /1].map { |path| "GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n" }.join) # the second is there at once
          sleep(0.05) until idle.size == 1 # must pass
          client.write("GET /2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
          client.read
        end
        Rackup::Handler::Ringspun.shutdown
      end
    end
    assert_equal [nil, "/0", nil], seen
  end

  def test_nobody_looks_at_the_file_for_a_restart_where_there_is_no_place_for_a_strand
    Dir.mktmpdir do |folder|
      Dir.mkdir("#{folder}/tmp")
      Ringspun.run do |machine|
        machine.define_singleton_method(:spin) { raise Ringspun::LimitError, "no strand" }
        file = Ringspun::HTTP.const_get(:RestartFile)
        assert_nil(Dir.chdir(folder) { file.watch(machine, errors = StringIO.new).tap { @said = errors.string } })
      ensure
        machine.singleton_class.remove_method(:spin)
      end
    end
    assert_match(%r{nobody looks at tmp/restart.txt; use USR2 in its place: no strand}, @said)
  end

  # As threads of a program keep no other server.
  def test_what_requests_have_begun_keeps_no_server
    ended = nil
    begins = lambda do |env|
      machine = Ringspun::Machine.current
      machine.spin do
        machine.sleep
      ensure
        ended = true
      end
      HELLO.call(env)
    end
    Rackup::Handler::Ringspun.run(begins, Host: "127.0.0.1", Port: 0, quiet: true) do |server|
      Thread.new do
        Net::HTTP.get(URI("http://127.0.0.1:#{server.port}/"))
        Rackup::Handler::Ringspun.shutdown
      end
    end
    assert ended
  end

  # A name that some clients take for the one address, and some for the other.
  def test_localhost_is_all_that_it_means
    got = []
    out, = capture_io do
      Rackup::Handler::Ringspun.run(HELLO, Host: "localhost", Port: 0) do |server|
        Thread.new do
          got.concat(["127.0.0.1", "localhost"].map { |host| Net::HTTP.get(host, "/", server.port) })
          Rackup::Handler::Ringspun.shutdown
        end
      end
    end
    assert_equal ["hello\n"] * 2, got
    assert_match(%r{\A\* Listening on http://127\.0\.0\.1:\d+$}, out)
  end

  # The first TERM waits for the answer, and the second does not.
  def test_what_is_told_twice_to_end_ends
    entered = Thread::Queue.new
    never = ->(_env) { entered << true && Ringspun::Machine.current.sleep }
    client = nil
    Rackup::Handler::Ringspun.run(never, Host: "127.0.0.1", Port: 0, quiet: true) do |server|
      client = Thread.new do
        socket = TCPSocket.new("127.0.0.1", server.port)
        socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        entered.pop
        Process.kill(:TERM, Process.pid)
        Thread.pass until server.stopping?
        Process.kill(:TERM, Process.pid)
        socket.read
        socket.close
      end
    end
    client.join
    assert_equal "DEFAULT", trap(:TERM, "DEFAULT")
  end

  # Nobody tells the program to close it: ActionCable would have each Ctrl-C wait.
  def test_a_connection_that_the_program_has_taken_keeps_no_server
    taken = Thread::Queue.new
    takes = lambda do |env|
      taken << env["rack.hijack"].call
      [-1, {}, []]
    end
    run_in_this_process(takes) do |server|
      TCPSocket.open("127.0.0.1", server.port) do |socket|
        socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        @io = taken.pop
        Rackup::Handler::Ringspun.shutdown
      end
    end
    refute_predicate @io, :closed?
    @io.close
  end

  # HUP comes when its terminal is closed, and whoever was started by nohup does not hear it.
  def test_a_closed_terminal
    before = trap(:HUP, "DEFAULT")
    run_in_this_process { Process.kill(:HUP, Process.pid) }
    trap(:HUP, "IGNORE")
    run_in_this_process do |server|
      Process.kill(:HUP, Process.pid)
      assert_equal "hello\n", Net::HTTP.get("127.0.0.1", "/", server.port)
      Rackup::Handler::Ringspun.shutdown
    end
    assert_equal "IGNORE", trap(:HUP, before || "DEFAULT")
  end

  def run_in_this_process(app = HELLO, &block)
    client = nil
    Rackup::Handler::Ringspun.run(app, Host: "127.0.0.1", Port: 0, quiet: true) do |server|
      client = Thread.new { block.call(server) }
    end
    client.join
  end

  def test_what_is_told_to_end_before_it_serves_ends
    assert_raises(SystemExit) { Rackup::Handler::Ringspun.shutdown }
  end

  def test_workers_of_a_cluster
    Dir.mktmpdir do |folder|
      path = File.join(folder, "socket")
      ready, tell = IO.pipe
      pid = fork do
        made = -> { tell.write("r") && HELLO }
        Ringspun::HTTP.run(listen: path, workers: 2, logger: nil, &made)
        exit!(0)
      end
      ready.read(2)
      answer = UNIXSocket.open(path) do |socket|
        socket.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        socket.read
      end
      Process.kill(:TERM, pid)
      assert_equal [0, "hello\n"], [Process.wait2(pid).last.exitstatus, answer[/hello\n\z/]]
    ensure
      [ready, tell].each(&:close)
    end
  end
end
