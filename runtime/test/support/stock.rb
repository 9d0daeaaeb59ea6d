# frozen_string_literal: true

require "rbconfig"
require "socket"
require_relative "strands"

# What tests of stock Ruby code share. `parked` is how they assert that another strand goes on: it comes back only when the
# strand that it has made waits, and a call that holds the thread instead never lets it.
module Stock
  include Strands

  def setup
    super
    GC.stress = false # most of what runs here is not ours; what is has tests of its own
  end

  private

  # Without printing them.
  def assert_same_bytes(expected, bytes) = assert(expected.b == bytes.b, "#{bytes.bytesize} other bytes")

  # Yields the port of an HTTP server of the run: a strand for each connection, which calls `answer` with the first line of each
  # request. What that returns is the body.
  def http_server(answer, wrap: ->(socket) { socket })
    listener = TCPServer.new("127.0.0.1", 0)
    machine.scope do |scope|
      scope.spin do
        loop do
          socket = listener.accept
          scope.spin { serve_http(wrap.call(socket), answer) }
        end
      end
      yield listener.addr[1]
      scope.cancel
    end
  ensure
    listener.close
  end

  def serve_http(socket, answer)
    while (request = socket.gets)
      nil until socket.gets == "\r\n"
      body = answer.call(request.chomp)
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: #{body.bytesize}\r\n\r\n", body)
    end
  rescue EOFError, SystemCallError
    nil # the client is gone
  ensure
    socket.close
  end

  # Yields the port of a listener that has no place for one more.
  def with_full_listener
    listener = Socket.new(:INET, :STREAM)
    listener.bind(Addrinfo.tcp("127.0.0.1", 0))
    listener.listen(0)
    waiting = Array.new(3) do
      Socket.new(:INET, :STREAM).tap { |socket| socket.connect_nonblock(listener.local_address, exception: false) }
    end
    yield listener.local_address.ip_port
  ensure
    [listener, *waiting].each(&:close)
  end

  # Runs a server, which Ruby code makes, in a process that ends when we do, and yields its port. `answer`, which the code is
  # called with, answers for the path /meet when a second request for it has come: who gets both has had two under way.
  def server_process(code)
    reader, writer = IO.pipe
    outside, stop = IO.pipe
    pid = spawn("setpriv", "--pdeathsig=KILL", RbConfig.ruby, "-W0", "-rbundler/setup", "-e", SERVER, code,
                in: outside, out: writer)
    [writer, outside].each(&:close)
    yield Integer(reader.gets)
  ensure
    [reader, stop].each(&:close)
    wait_for(pid, 30) { flunk "the server does not end" }
  end

  # For server_process.
  WEBRICK = <<~'RUBY'
    require "webrick"
    lambda do |answer, &ready|
      quiet = WEBrick::Log.new(File::NULL)
      server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 0, Logger: quiet, AccessLog: [])
      server.mount_proc("/") { |request, response| response.body = answer.call(request.path) }
      ready.call(server.listeners.first.addr[1])
      server.start
    end
  RUBY

  PUMA = <<~'RUBY'
    require "puma"
    require "puma/server"
    lambda do |answer, &ready|
      server = Puma::Server.new(->(env) { [200, {}, [answer.call(env["PATH_INFO"])]] }, nil, min_threads: 0, max_threads: 50)
      ready.call(server.add_tcp_listener("127.0.0.1", 0).addr[1])
      server.run.join
    end
  RUBY

  SERVER = <<~'RUBY'
    require "socket"
    $stdout.sync = true
    waiting = Thread::Queue.new
    answer = lambda do |path|
      next "you asked for #{path}" unless path == "/meet"

      turn = Thread::Queue.new
      waiting << turn
      waiting.pop.push("met").then { waiting.pop << "met" } if waiting.size == 2
      turn.pop
    end
    serve = eval(ARGV.fetch(0))
    Thread.new { $stdin.read && exit!(true) }
    serve.call(answer) { |port| puts port }
  RUBY
end
