# frozen_string_literal: true

# Tests that have a server, and clients that send what they like.
module OnServer
  HTTP = Ringspun::HTTP

  # What a server has answered, taken apart without our own code.
  Answer = Struct.new(:status, :headers, :body) do
    def [](name) = headers[name]
  end

  # A client of bytes, in a strand.
  class Client
    def initialize(stream)
      @stream = stream
    end

    def send(*texts) = texts.each { |text| @stream.write(text) }

    def get(path, *fields)
      send("GET #{path} HTTP/1.1\r\n", *["host: example.org", *fields].map { |field| "#{field}\r\n" }, "\r\n")
    end

    def read(length) = @stream.read(length)

    # @return [String, nil] what has come; nil: the server has closed the connection
    def some(most) = @stream.read_partial(most)

    # @return [String] all that comes until the server closes the connection
    def rest = @stream.read

    def close = @stream.close

    def close_write = @stream.close_write

    # @return [Answer, nil] nil: the server has closed the connection
    def answer(head: false)
      first = @stream.read_line(chomp: true) or return
      status = Integer(first[%r{\AHTTP/1\.1 (\d{3}) }, 1])
      headers = read_headers
      Answer.new(status, headers, head || [204, 304].include?(status) || status / 100 == 1 ? "" : read_body(headers))
    end

    # @return [String, nil] the next piece of a chunked answer; nil: that was all
    def chunk
      @in_body ||= @stream.read_line && read_headers
      piece = next_chunk
      @in_body = nil unless piece
      piece
    end

    def ended? = @stream.eof?

    # Closes the connection by a reset.
    def reset
      over = @stream.__send__(:over)
      Ringspun::Machine.current.setsockopt(over, ::Socket::SOL_SOCKET, ::Socket::SO_LINGER, [1, 0].pack("ii"))
      @stream.__send__(:close_at_once) # with TLS a client that resets says no goodbye
    end

    private

    def read_headers
      headers = {}
      until (line = @stream.read_line(chomp: true)).empty?
        name, value = line.split(": ", 2)
        headers[name] = headers.key?(name) ? [*headers[name], value] : value
      end
      headers
    end

    def read_body(headers)
      return read_chunks if headers["transfer-encoding"] == "chunked"
      return @stream.read(Integer(headers["content-length"])) || +"" if headers["content-length"]

      @stream.read
    end

    def read_chunks
      body = +""
      while (piece = next_chunk)
        body << piece
      end
      body
    end

    def next_chunk
      size = Integer(@stream.read_line(chomp: true) || raise(Ringspun::EndOfStreamError, "the chunks have no end"), 16)
      piece = @stream.read(size) if size.positive?
      raise "no end of a chunk" unless @stream.read(2) == "\r\n"

      piece
    end
  end

  # @return [Object] of the block, which gets a client for each call of the first argument
  def serving(app, lint: true, host: "127.0.0.1", **options)
    @tls = options[:tls] && Certificate.client_context
    @errors = StringIO.new
    lost = []
    value = Ringspun.run do
      options = { errors: @errors, on_error: ->(error, _) { lost << error }, **options }
      server = HTTP.listen(lint ? Rack::Lint.new(app) : app, host, 0, **options)
      yield -> { connect(server) }, server
    ensure
      @clients&.each(&:close)
      server&.stop
    end
    assert_empty lost, "errors that are nobody's"
    value
  end

  def connect(server)
    stream = Ringspun.connect_tcp(server.address.ip_address, server.port, **(@tls ? { tls: @tls } : {}))
    (@clients ||= []) << stream
    Client.new(stream)
  end

  # @return [Answer] to one request
  def answer_to(app, request, **)
    serving(app, **) do |connect|
      client = connect.call
      client.send(request)
      client.answer
    end
  end
end
