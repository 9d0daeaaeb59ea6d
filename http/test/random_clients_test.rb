# frozen_string_literal: true

require "http_helper"
require "support/any_backend"
require "support/seeds"

# rubies: one

# Clients that do as they like, in a simulated network: they send in pieces, wait for long in the middle, read slowly, leave.
# Those that stay get what they have asked for, and of none anything is left, also where the network resets connections.
class HTTPRandomClientsTest < Minitest::Test
  include AnyBackend

  SEEDS = Seeds.of_the_day(12)
  CLIENTS = 12

  APP = lambda do |env|
    case env["PATH_INFO"]
    when "/echo" then [200, {}, [env["rack.input"].read]]
    when "/pieces" then [200, {}, Array.new(30) { |number| number.to_s * 1000 }.each]
    when "/much" then [200, {}, ["x" * 700_000]]
    when "/slow" then Ringspun::Machine.current.sleep(20) && [200, {}, ["slow"]]
    when "/waits" then [200, {}, [env["ringspun.peer"].until_gone { Ringspun::Machine.current.sleep(20) && "waited" }]]
    when "/events"
      Ringspun::HTTP::SSE.answer(env, heartbeat: 5) do |events|
        5.times { |number| events.write(number.to_s) && Ringspun::Machine.current.sleep(7) }
      end
    else [200, {}, ["hello\n"]]
    end
  end

  # One of them, who knows how a request and its answer look, and does not always care.
  class Client
    PATHS = %w[/ /echo /pieces /much /slow /waits /events].freeze

    # @param machine [Machine]
    # @param port [Integer]
    # @param random [Random]
    # @param whole [Hash{String => Integer}] counts the answers that came whole
    def initialize(machine, port, random, whole)
      @machine = machine
      @port = port
      @random = random
      @whole = whole
    end

    def run
      @machine.sleep(@random.rand * 30)
      Ringspun.connect_tcp("127.0.0.1", @port) do |stream|
        @client = OnServer::Client.new(@stream = stream)
        (1 + @random.rand(3)).times { break unless ask }
      end
    rescue SystemCallError, Ringspun::Error
      nil # the server has had enough, or the network
    end

    private

    # False: it has left, or was left.
    def ask
      @path = PATHS.sample(random: @random)
      @body = @path == "/echo" ? "abc" * @random.rand(40_000) : ""
      text = request
      return leave(text) if @random.rand(4).zero?

      in_pieces(text)
      @machine.sleep(@random.rand * 10) if @random.rand(3).zero?
      judge(@client.answer)
    end

    def leave(text)
      in_pieces(text.byteslice(0, @random.rand(text.bytesize + 1)))
      @stream.read_partial(1 + @random.rand(100_000), timeout: 40) if @random.rand(2).zero?
      false
    rescue Ringspun::TimeoutError
      false
    end

    def in_pieces(text)
      at = 0
      while at < text.bytesize
        piece = text.byteslice(at, 1 + @random.rand(text.bytesize))
        @stream.write(piece)
        at += piece.bytesize
        @machine.sleep(@random.rand * 5) if @random.rand(3).zero?
      end
    end

    def request
      method = @path == "/echo" ? "POST" : "GET"
      framed = if @path != "/echo" then "\r\n"
               elsif @random.rand(2).zero? then "content-length: #{@body.bytesize}\r\n\r\n#{@body}"
               else
                 "transfer-encoding: chunked\r\n\r\n#{chunks}0\r\n\r\n"
               end
      "#{method} #{@path} HTTP/1.1\r\nhost: a\r\n#{framed}"
    end

    def chunks
      size = 1 + @random.rand(30_000)
      (0...@body.bytesize).step(size).sum("") do |at|
        chunk = @body.byteslice(at, size)
        "#{chunk.bytesize.to_s(16)}\r\n#{chunk}\r\n"
      end
    end

    def expected
      { "/" => "hello\n", "/echo" => @body, "/pieces" => Array.new(30) { |number| number.to_s * 1000 }.join,
        "/much" => "x" * 700_000, "/slow" => "slow", "/waits" => "waited",
        "/events" => Array.new(5) { |number| "data: #{number}\n\n" }.join }.fetch(@path)
    end

    def judge(answer)
      return false if answer.nil?
      return answer["connection"] != "close" if answer.status == 408

      body = @path == "/events" ? answer.body.gsub(":\n\n", "") : answer.body
      raise "#{@path}: #{answer.status} #{body[0, 100].inspect}" unless answer.status == 200 && body == expected

      @whole[@path] += 1
      answer["connection"] != "close"
    end
  end

  # @return [Hash{String => Integer}] how many answers came whole, by their paths
  def simulate(seed, faults)
    whole = Hash.new(0)
    errors = StringIO.new
    result = Ringspun::Simulation.run(seed:, faults:) do |machine|
      server = Ringspun::HTTP.listen(Rack::Lint.new(APP), "127.0.0.1", 0, errors:)
      clients = Array.new(CLIENTS) { |number| Client.new(machine, server.port, Random.new(seed * 100 + number), whole) }
      machine.await(clients.map { |client| Ringspun.spin { client.run } })
      server.stop(within: 200)
    end
    assert_equal [0, 0, ""], [result.value, result.open_descriptors, errors.string], "RINGSPUN_SEED=#{seed}"
    whole
  end

  def test_right_answers
    whole = SEEDS.map { |seed| simulate(seed, true) }.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
    assert_equal Client::PATHS.sort, whole.keys.sort if SEEDS.size > 5
  end

  def test_resets
    SEEDS.each { |seed| simulate(seed, { reset: 0.02, delay: 0.2, short_transfer: 0.2, late_cancel: 0.3 }) }
  end
end
