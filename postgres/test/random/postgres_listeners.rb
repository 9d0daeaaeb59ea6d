# frozen_string_literal: true

# A random program of subscriptions on a simulated machine, whose connection is lost now and then, and what each must have got.
class PostgresListeners
  NAMES = %w[a b c d e].freeze

  # Subscriptions of one strand, one after the other, and what they have got.
  Heard = Struct.new(:channels, :policy, :events, :dropped, :from, :upto, :error)
  private_constant :Heard

  # @param machine [Ringspun::Machine]
  # @param random [Random]
  # @param server [NotifyingServer]
  # @param pool [Ringspun::Postgres::Pool]
  def initialize(machine, random, server, pool)
    @machine = machine
    @random = random
    @server = server
    @pool = pool
    @sent = [] # names of channels, by number
    @heard = []
    @over = false
  end

  # @return [Array<String>] what is not as it must be
  def call
    listeners = Array.new(1 + @random.rand(6)) { @machine.spin { listen until @over } }
    @machine.spin { lose } if chance(0.7)
    (20 + @random.rand(60)).times { send_some }
    @machine.sleep(30) # a lost connection is there again
    listeners.sample(2, random: @random).each(&:terminate) if chance(0.3)
    NAMES.cycle(2) { |name| send_to(name) }
    @machine.sleep(20)
    @over = true
    listeners.each { |strand| settle(strand) }
    @heard.flat_map { |heard| faults(heard) }
  end

  private

  def chance(probability) = @random.rand < probability

  def timeout = chance(0.2) ? @random.rand * 0.01 : nil

  def settle(strand)
    strand.await
  rescue Ringspun::TerminatedError
    nil
  end

  # --- what happens ---

  def send_some
    @machine.sleep(@random.rand * 0.02)
    (1 + @random.rand(4)).times { send_to(NAMES.sample(random: @random)) }
  end

  def send_to(name)
    @sent << name
    @server.notify(name, (@sent.size - 1).to_s)
  end

  # In the midst of what is on its way, or for a while.
  def lose
    (1 + @random.rand(4)).times do
      @machine.sleep(@random.rand * 0.4)
      @server.cut = [%i[there back].sample(random: @random), @random.rand(600)] if chance(0.5)
      @server.refusals = chance(0.3) ? 1 : 0
      @server.hang_up_on_listeners
    end
    @machine.sleep(1)
    @server.refusals = 0
  end

  def listen
    policy = %i[wait drop_oldest close].sample(random: @random)
    heard = Heard.new(NAMES.sample(1 + @random.rand(3), random: @random), policy, [], 0)
    @pool.listen(*heard.channels, queue: 1 + @random.rand(20), policy: heard.policy, timeout:) do |them|
      heard.from = @sent.size
      @heard << heard
      send_to(heard.channels.first) if chance(0.5)
      take(them, heard)
    end
  rescue Ringspun::Postgres::ConnectError, Ringspun::Postgres::ConnectionLost, Ringspun::TimeoutError
    @machine.sleep(0.05)
  end

  # To the last that is sent, for some time, or until it is full.
  def take(them, heard)
    limit = chance(0.4) ? @random.rand(20) : nil
    pace = chance(0.3) ? 0.03 : 0.001
    while limit.nil? || heard.events.size < limit
      event = chance(0.5) ? them.pop(timeout: 5) : by_select(them)
      event ? heard.events << (event.gap? ? :gap : Integer(event.payload)) : (break if @over)
      @machine.sleep(@random.rand * pace)
    end
    heard.upto = @sent.size if limit.nil?
  rescue Ringspun::Postgres::SubscriptionOverflow => error
    heard.error = error
  ensure
    heard.dropped = them.dropped
  end

  def by_select(them)
    Ringspun.select do |on|
      on.pop(them) { |event| event || them.pop }
      on.after(5) { nil }
    end
  end

  # --- what must have come ---

  def faults(heard)
    numbers = heard.events.grep(Integer)
    wrong = []
    wrong << "#{numbers} is not in order" unless numbers == numbers.sort.uniq
    wrong << "what it does not listen to: #{heard}" unless numbers.all? { |number| heard.channels.include?(@sent[number]) }
    missing = missing_without_gap(heard)
    wrong << "#{missing} is missing in #{heard}" if missing.size > heard.dropped
    wrong << "it dropped #{heard.dropped}" if heard.dropped.positive? && heard.policy != :drop_oldest
    wrong << "it was closed: #{heard.error.message}" if heard.error && heard.policy != :close
    wrong
  end

  # Between two numbers, or before the first, or behind the last when it has waited for that. Where the oldest are dropped a gap
  # that was to be dropped is told later, if anybody waits for it.
  def missing_without_gap(heard)
    return [] if heard.policy == :drop_oldest && heard.upto.nil?

    before = heard.from - 1
    events = heard.upto ? [*heard.events, heard.upto] : heard.events
    last_gap = events.rindex(:gap)
    before, events = nil, events.drop(last_gap + 1) if last_gap && heard.policy == :drop_oldest
    events.flat_map do |event|
      missing = before && event != :gap ? wanted(heard, before + 1...event) : []
      before = event == :gap ? nil : [event, before || -1].max
      missing
    end
  end

  def wanted(heard, numbers) = numbers.select { |number| heard.channels.include?(@sent[number]) }
end
