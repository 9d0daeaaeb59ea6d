# frozen_string_literal: true

require "http_helper"
require "support/any_backend"
require "support/nasty"
require "support/plain_server"
require "support/random_messages"
require "support/seeds"
require "support/smuggling"

# rubies: one

# Messages that are wrong, or nearly so, as a server gets them, with another request behind them: the program sees the requests
# that a second opinion sees, and the client gets the statuses of the table. No error is told, and the connection ends.
module NastyClients
  SECOND = "GET /second HTTP/1.1\r\nHost: h\r\n\r\n"
  POST = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
  # No 2xx, for behind that a CONNECT is a tunnel.
  ANSWERED = 404
  TEXT = { "content-type" => "text/plain" }.freeze

  private

  # Notes each request whose body came whole.
  def app
    lambda do |env|
      body = env["rack.input"].read
      path = env["PATH_INFO"] + (env["QUERY_STRING"].empty? ? "" : "?#{env["QUERY_STRING"]}")
      seen << [env["REQUEST_METHOD"], path, body]
      [ANSWERED, TEXT.dup, ["seen"]]
    end
  end

  def seen = @seen ||= []

  # @return [Array<Integer>] the statuses of all answers but interim ones
  def statuses_of(bytes, methods)
    statuses = []
    until bytes.empty?
      head, rest = bytes.split("\r\n\r\n", 2)
      statuses << Integer(head[%r{\AHTTP/1\.1 (\d{3}) }, 1])
      bytes = rest
      next statuses.pop if statuses.last / 100 == 1

      bodiless = methods[statuses.size - 1] == "HEAD"
      bytes = bytes.byteslice(head[/^content-length: (\d+)/, 1].to_i..) unless bodiless
    end
    statuses
  end

  # @param expected [PlainServer]
  # @param answers [String] all that the server has sent
  def judge(expected, answers, said)
    requests = expected.requests.map { |method, target, body| [method, path_of(method, target), body] }
    assert_equal requests, seen, said
    *answered, refused = statuses_of(answers, requests.map(&:first)) + [nil]
    answered, refused = answered[..-2], answered.last if answered.size > requests.size
    assert_equal [ANSWERED] * requests.size, answered, said
    assert_includes expected.refused, refused, said
  end

  # What stands behind the host in a target of the absolute form, and without the "?" of an empty query.
  def path_of(method, target)
    return target if method == "CONNECT"

    path = target.sub(%r{\Ahttps?://[^/?]*}i, "").delete_suffix("?")
    path.start_with?("?") || path.empty? ? "/#{path}" : path
  end
end

# The tables, to a server behind a socket.
class NastyServerTest < Minitest::Test
  include OnServer
  include NastyClients

  def test_each_row_of_the_tables
    bodies = Nasty.rows("nasty_bodies.tsv").map { |row| row.with(bytes: POST + row.bytes) }
    serving(app) do |connect|
      (Nasty.rows("nasty_heads.tsv") + bodies).each { |row| send_row(connect.call, row) }
      assert_equal "", @errors.string
    end
  end

  private

  def send_row(client, row)
    bytes = row.bytes + SECOND
    status = row.expected.to_i
    expected = PlainServer.new(bytes)
    seen.clear
    client.send(bytes)
    client.close_write unless expected.closes || status.positive?
    answers = client.rest
    client.close
    judge(expected, answers, "#{row.line}: #{row.why}")
    assert_includes answers, "HTTP/1.1 #{status} ", row.line if status.positive?
    refute_includes seen.map { |_, path| path }, "/second", row.line if status.positive?
  end
end

# The same and drawn ones in a simulated network, in random pieces and with waits between them.
class NastySimulationTest < Minitest::Test
  include AnyBackend
  include NastyClients

  SEEDS = Seeds.of_the_day(12)
  CONNECTIONS = 6
  # At most. They all come within the time of a head.
  PIECES = 40
  # Bytes; long ones have their turn in one piece.
  LONGEST = 3000
  TABLES = { "nasty_heads.tsv" => "", "nasty_bodies.tsv" => NastyClients::POST }
           .flat_map { |name, head| Nasty.rows(name).map { |row| head.b + row.bytes } }
           .reject { |bytes| bytes.bytesize > LONGEST }.freeze

  def test_messages_in_pieces
    SEEDS.each { |seed| simulate(seed, Random.new(seed)) }
  end

  private

  def simulate(seed, random)
    errors = StringIO.new
    result = Ringspun::Simulation.run(seed:, faults: { delay: 0.2, short_transfer: 0.2 }) do
      server = Ringspun::HTTP.listen(Rack::Lint.new(app), "127.0.0.1", 0, errors:)
      CONNECTIONS.times { |number| connection(server, bytes_of(seed, number, random), random, "RINGSPUN_SEED=#{seed}") }
      server.stop
    end
    assert_equal [0, ""], [result.open_descriptors, errors.string], "RINGSPUN_SEED=#{seed}"
  end

  def bytes_of(seed, number, random)
    messages = RandomMessages.new((seed * CONNECTIONS) + number)
    drawn = [messages.request, messages.request + messages.chunks, POST.b + messages.chunks,
             Smuggling.new((seed * CONNECTIONS) + number).bytes, *TABLES.sample(3, random:)]
    drawn.sample(1 + random.rand(3), random:).join + SECOND
  end

  def connection(server, bytes, random, said)
    expected = PlainServer.new(bytes)
    seen.clear
    Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
      sender = Ringspun.spin { send_in_pieces(stream, bytes, random, closes: !expected.closes) }
      judge(expected, stream.read, "#{said}: #{bytes.inspect[0, 2000]}")
      sender.terminate
    end
  end

  # The server may have had enough before all is sent.
  def send_in_pieces(stream, bytes, random, closes:)
    cuts = Array.new(random.rand(PIECES)) { random.rand(bytes.bytesize) }.sort
    [0, *cuts, bytes.bytesize].each_cons(2) do |from, to|
      stream.write(bytes.byteslice(from, to - from))
      Ringspun::Machine.current.sleep(random.rand / 10) if random.rand(3).zero?
    end
    stream.close_write if closes
  rescue SystemCallError, Ringspun::Error
    nil
  end
end
