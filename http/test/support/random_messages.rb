# frozen_string_literal: true

# Messages drawn from a seed: most are right, others have something in them that a reader may take in two ways.
class RandomMessages
  METHODS = (%w[GET POST] * 5 + %w[PUT HEAD DELETE OPTIONS PATCH CONNECT TRACE BREW get]).freeze
  TARGETS = [*["/", "/a/b?c=d"] * 12, "/?", "//h/", "/a|b\"c", "*", "h:80", "h", "http://h/", "http://H:80/x?y", "https://h",
             "http://i/", "http://u@h/", "/a#b", "", "a", "/\x7f", "/\xc3\xa4", "/%0a"].freeze
  VERSIONS = [*["HTTP/1.1"] * 30, *["HTTP/1.0"] * 4, "HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "http/1.1", "HTTP/1.10", "HTTP/1"].freeze
  STATUSES = [*["200 OK"] * 8, "200", "200 ", "404 Not Found", "204 No Content", "304 Not Modified", "100 Continue", "101 x",
              "205 x", "500 \xff", "999 x", "99 x", "1000 x", "2x0 x", " 200 OK"].freeze
  HOSTS = [*["Host: h", "host:h"] * 10, "HOST: h:80", "Host: i", "Host: [::1]:80", "Host:", "Host: h, i", "Host : h",
           "Host: h\t"].freeze
  FRAMING = [*["Content-Length: 5", "Transfer-Encoding: chunked"] * 8, "content-length:0", "Content-Length: 05",
             "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: 99999999999999999999", "Content-Length: 5 ",
             "transfer-encoding:Chunked", "Transfer-Encoding: chunked ", "Transfer-Encoding: gzip, chunked",
             "Transfer-Encoding: identity", "Content_Length: 5", "Transfer-Encoding: chunked, chunked",
             "Transfer-Encoding: \tchunked", "Transfer-Encoding : chunked", "Transfer_Encoding: chunked"].freeze
  OTHERS = [*["Accept: */*", "Cookie: a=b; c=d", "Connection: keep-alive"] * 5, "X-Empty:", "X-Blank: \t ", "X-\xff: y",
            "X: \xff\xfe", "X: a\x01", "X: a\tb", " X: y", "X y: z", ": x", "X", "Connection: close",
            "Connection: Upgrade, close", "Connection: ,", "Connection: keep-alive, x, upgrade", "Upgrade: websocket",
            "Expect: 100-continue", "Expect: x", "x_under: score", "Trailer: X"].freeze
  ENDS = [*["\r\n"] * 200, "\n", "\r", "\r\r\n", "\r\n ", "\n\r\n"].freeze
  SPOILERS = ["\0", "\r", "\n", "\t", " ", ":", ",", ";", "\x7f", "\x80", "\xff", "\r\n", "\r\n ", "chunked", "_"].freeze

  EXTENSIONS = [*[""] * 12, ";a", ";a=b", ";a=\"b;\"", ";a=\"\\\"\"", ";a;b=c", ";", " ;a", "\t; a = b",
                ";a =\"b\" ;c", ";a ", " ", ";a=", ";a=\"", ";\xff"].freeze
  TRAILERS = [*[""] * 5, "X: y\r\n", "X-Sum: 1\r\nServer: z\r\n", "Content-Length: 5\r\n", "host: h\r\n", "X : y\r\n",
              "X\r\n", " X: y\r\n"].freeze
  private_constant :METHODS, :TARGETS, :VERSIONS, :STATUSES, :HOSTS, :FRAMING, :OTHERS, :ENDS, :SPOILERS, :EXTENSIONS, :TRAILERS

  # @param seed [Integer]
  def initialize(seed)
    @random = Random.new(seed)
  end

  # @return [String] the head of one, and what follows it
  def request = spoil([one(METHODS), one(TARGETS), one(VERSIONS)].join(" ").b << one(ENDS) << fields(one(HOSTS)))
  def response = spoil([one(VERSIONS), one(STATUSES)].join(" ").b << one(ENDS) << fields(nil))

  # @return [String] a chunked body, and now and then what follows it
  def chunks
    sizes = Array.new(@random.rand(4)) { 1 + @random.rand(20) }
    chunks = sizes.map { |size| hex(size).b << one(EXTENSIONS) << one(ENDS) << @random.bytes(size) << one(ENDS) }
    spoil(chunks.sum("".b) << "0" * (1 + @random.rand(2)) << one(EXTENSIONS) << "\r\n" << one(TRAILERS) << "\r\n")
  end

  private

  def one(list) = list[@random.rand(list.size)].b

  def hex(size)
    text = size.to_s(16)
    text = text.upcase if @random.rand(4).zero?
    text.rjust([0, 0, 0, 0, 0, 4, 16, 16, 17][@random.rand(9)], "0")
  end

  def fields(host)
    lines = [*(host if @random.rand(12).positive?), *(one(FRAMING) if @random.rand(2).zero?)]
    lines << one(FRAMING) if @random.rand(12).zero?
    lines << one(HOSTS) if @random.rand(20).zero?
    @random.rand(4).times { lines << one(OTHERS) }
    lines.shuffle(random: @random).sum("".b) { |line| line.b << one(ENDS) } << one(ENDS)
  end

  def spoil(bytes)
    @random.rand(3).times { spoil_at(bytes, @random.rand(bytes.bytesize)) } if @random.rand(3).zero?
    bytes
  end

  def spoil_at(bytes, at)
    case @random.rand(4)
    when 0 then bytes.setbyte(at, @random.rand(256))
    when 1 then bytes[at, 1] = ""
    else bytes[at, @random.rand(2)] = one(SPOILERS)
    end
    bytes << "x" if bytes.empty?
  end
end
