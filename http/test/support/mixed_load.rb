# frozen_string_literal: true

require "socket"

# Clients of every kind, each in a thread, that ask a server again and again until they are told to stop: short requests and
# uploads on connections that stay, streams, events, connections that the program takes, and answers that are read slowly. Each
# looks at all that it gets.
class MixedLoad
  # How long a client waits for a server that does not answer.
  LIMIT_SECONDS = 45

  # What has gone wrong: `worker` is the pid of the one that had the connection; nil: none has said so yet.
  Failure = Data.define(:kind, :error, :worker)

  # A program for a file that a cluster loads.
  APP = <<~'RUBY'
    APP = lambda do |env|
      headers = { "x-worker" => Process.pid.to_s }
      machine = Ringspun::Machine.current
      case env["PATH_INFO"]
      when "/large" then [200, headers, ["x" * 2_000_000]]
      when "/upload" then [200, headers, [env["rack.input"].each.sum(&:bytesize).to_s]]
      when "/stream"
        [200, headers, ->(output) { 20.times { |number| output.write("#{number}\n") && machine.sleep(0.001) } }]
      when "/events"
        Ringspun::HTTP::SSE.answer(env, headers:) do |events|
          number = events.last_id.to_i
          loop { events.write(number.to_s, id: number += 1) && machine.sleep(0.001) }
        end
      when "/taken"
        io = env["rack.hijack"].call
        io.write("HTTP/1.1 101 Switching Protocols\r\nx-worker: #{Process.pid}\r\nconnection: upgrade\r\nupgrade: lines\r\n\r\n")
        Ringspun.spin do
          while (line = io.gets)
            io.write(line)
          end
        ensure
          io.close
        end
        [-1, {}, []]
      else [200, headers, ["hello\n"]]
      end
    end
  RUBY

  KINDS = %i[short upload stream events taken slow].freeze

  # @param port [Integer]
  # @param each [Integer] clients of each kind
  def initialize(port, each: 2)
    @port = port
    @failures = Thread::Queue.new
    @served = KINDS.to_h { |kind| [kind, Thread::Queue.new] }
    @threads = KINDS.flat_map { |kind| Array.new(each) { Thread.new { Client.new(port, kind).run(self) } } }
  end

  def stopped? = @stopped

  def served(kind) = @served.fetch(kind) << true
  def failed(*) = @failures << Failure.new(*)

  # Waits until each kind was served the given number of times more.
  def run(count)
    @served.each do |kind, queue|
      count.times { queue.pop(timeout: LIMIT_SECONDS) or raise "no #{kind} is served any more: #{failures}" }
    end
  end

  def stop
    @stopped = true
    @threads.each(&:join)
  end

  # @return [Array<Failure>] since the last call
  def failures = Array.new(@failures.size) { @failures.pop }

  # One of them.
  class Client
    UPLOAD = (["8000\r\n#{"x" * 0x8000}\r\n"] * 4 << "0\r\n\r\n").freeze

    def initialize(port, kind)
      @port = port
      @kind = kind
    end

    def run(load)
      until load.stopped?
        begin
          public_send(@kind, load)
          load.served(@kind)
        rescue SystemCallError, IOError, RuntimeError => error
          load.failed(@kind, error, @worker)
          close
        end
      end
    ensure
      close
    end

    def short(_load)
      ask("GET /")
      expect "hello\n", answer
    end

    def upload(_load)
      ask("POST /upload", "transfer-encoding: chunked")
      UPLOAD.each { |piece| @socket.write(piece) }
      expect (4 * 0x8000).to_s, answer
    end

    def stream(_load)
      ask("GET /stream")
      expect (0..19).map { |number| "#{number}\n" }.join, answer
    end

    # A connection that ends in order is none that has failed: the browser comes back.
    def events(load)
      ask("GET /events", "last-event-id: #{@last || 0}")
      head
      50.times do
        chunk = self.chunk or break close
        number = @last.to_i
        expect "id: #{number + 1}\ndata: #{number}\n\n", chunk
        @last = number + 1
        break if load.stopped?
      end
      close
    end

    # The rest of it waits in the server.
    def slow(_load)
      ask("GET /large", "connection: close")
      @socket.setsockopt(:SOCKET, :RCVBUF, 65_536)
      left = Integer(head.fetch("content-length"))
      while left.positive?
        left -= @socket.readpartial([left, 50_000].min).bytesize
        Thread.pass
      end
      close
    end

    def taken(_load)
      ask("GET /taken", "connection: upgrade", "upgrade: lines")
      head
      20.times do |number|
        @socket.write("#{number}\n")
        expect "#{number}\n", @socket.gets
      end
      close
    end

    private

    def ask(line, *fields)
      connect unless @socket
      @socket.write("#{line} HTTP/1.1\r\nhost: a\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n")
    end

    def connect
      @worker = nil
      @socket = Socket.tcp("127.0.0.1", @port)
    end

    def close
      @socket&.close
      @socket = nil
    end

    def head
      lines = []
      until (line = @socket.gets || raise(EOFError, "the head has no end: #{lines}")) == "\r\n"
        lines << line.chomp
      end
      raise "no answer but #{lines.first}" unless lines.first.match?(/ (200|101) /)

      lines.drop(1).to_h { |field| field.split(": ", 2) }.tap { |fields| @worker = Integer(fields.fetch("x-worker")) }
    end

    def answer
      fields = head
      body = fields.key?("content-length") ? @socket.read(Integer(fields["content-length"])) : chunks
      close if fields["connection"] == "close"
      body
    end

    def chunks
      body = +""
      while (chunk = self.chunk)
        body << chunk
      end
      body
    end

    def chunk
      size = Integer(@socket.gets || raise(EOFError, "the chunks have no end"), 16)
      chunk = @socket.read(size) if size.positive?
      expect "\r\n", @socket.read(2)
      chunk
    end

    def expect(expected, got)
      raise EOFError, "the answer has no end" if got.nil? || (got.bytesize < expected.bytesize && expected.start_with?(got))
      raise "expected #{expected.inspect[0, 100]}, got #{got.inspect[0, 100]}" unless got == expected
    end
  end
end
