# frozen_string_literal: true

require "http_helper"
require "support/any_backend"
require "support/seeds"

# rubies: one

# Clients that ask now and then, in a simulated network, and a server that stops at any time: who has asked in time is answered,
# and whoever has not is left. Times that are too near to a limit to say which it is are left out.
class HTTPRandomIdleTest < Minitest::Test
  include AnyBackend

  SEEDS = Seeds.of_the_day(20)
  CLIENTS = 15
  FIRST = 30
  NEXT = 65
  GRACE = 5
  HEAD = 10
  PAUSES = [0, 0.2, 0.9, 1.1, 2, 10, 28, 32, 63, 67].freeze

  # What one of them does, and what the server must do.
  class Client
    # @param connection [#call] connects
    # @param stops [Float] when the server stops
    def initialize(machine, connection, random, stops)
      @machine = machine
      @connection = connection
      @random = random
      @stops = stops
      @told = nil
    end

    # @return [Array<Symbol>] what it has seen
    def run(seen)
      @machine.sleep(@random.rand * 20)
      return if @machine.now > @stops - 1

      @client = @connection.call
      @idle_since = @machine.now
      @limit = FIRST
      (1 + @random.rand(5)).times { break unless (word = step) && seen.push(word) && word == :answered }
      leave
    end

    # Closes its connection, in whatever state it is.
    def leave
      @client&.close
    rescue SystemCallError, Ringspun::Error
      nil
    end

    private

    # @return [Symbol, nil] nil: nobody knows
    def step
      pause = PAUSES.sample(random: @random) + (@random.rand * 0.1)
      @machine.sleep(pause)
      due = due_at
      return if (@machine.now - due).abs < 0.5 || (@machine.now - @stops).abs < 0.5

      in_time = @machine.now < due
      stopping = @machine.now > @stops
      send_request
      judge(@client.answer, in_time, stopping)
    rescue Errno::ECONNRESET, Errno::EPIPE, Ringspun::Error => error
      raise "a request in time has ended by #{error.inspect}" if in_time

      :left
    end

    def due_at = [@idle_since + @limit, [@idle_since, @stops].max + (@machine.now > @stops ? GRACE : 1000)].min

    def send_request
      text = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"
      at = @random.rand(text.bytesize)
      @client.send(text.byteslice(0, at)) if at.positive?
      @machine.sleep(@random.rand * (HEAD - 1)) if at.positive? && @random.rand(2).zero? && @machine.now + HEAD < @stops
      @client.send(text.byteslice(at..))
    end

    def judge(answer, in_time, stopping)
      raise "answered in vain" if answer && !in_time
      return :left unless answer || in_time
      raise "no answer at #{@machine.now}, idle since #{@idle_since}, stopped at #{@stops}" unless answer
      raise "wrong: #{answer.inspect}" unless answer.status == 200 && answer.body == "hello\n"
      raise "goes on" if stopping && answer["connection"] != "close"

      @idle_since = @machine.now
      @limit = NEXT
      answer["connection"] == "close" ? :last : :answered
    end
  end

  APP = ->(_env) { [200, {}, ["hello\n"]] }

  # @return [Array<Symbol>]
  def simulate(seed, faults)
    seen = []
    errors = StringIO.new
    random = Random.new(seed)
    lost = []
    result = Ringspun::Simulation.run(seed:, faults:) do |machine|
      server = Ringspun::HTTP.listen(Rack::Lint.new(APP), "127.0.0.1", 0, errors:, on_error: ->(error, _) { lost << error })
      stops = machine.now + 10 + (random.rand * 150)
      connection = -> { OnServer::Client.new(Ringspun.connect_tcp("127.0.0.1", server.port)) }
      clients = Array.new(CLIENTS) { |at| Client.new(machine, connection, Random.new((seed * 100) + at), stops) }
      strands = clients.map { |client| Ringspun.spin { faults ? wild(client, seen) : client.run(seen) } }
      machine.sleep(stops - machine.now)
      late = server.stop(within: 100)
      machine.await(strands)
      late
    end
    assert_equal [0, 0, "", []], [result.value, result.open_descriptors, errors.string, lost], "RINGSPUN_SEED=#{seed}"
    seen
  end

  # Where the network loses connections nobody can say who is answered, but all the rest holds.
  def wild(client, seen)
    client.run(seen)
  rescue SystemCallError, Ringspun::Error, RuntimeError
    nil
  ensure
    client.leave
  end

  def test_who_is_answered
    seen = SEEDS.flat_map { |seed| simulate(seed, false) }
    assert_equal %i[answered last left], seen.uniq.sort if SEEDS.size > 5
  end

  def test_resets
    SEEDS.each { |seed| simulate(seed, { reset: 0.02, delay: 0.2, short_transfer: 0.2, late_cancel: 0.3 }) }
  end
end
