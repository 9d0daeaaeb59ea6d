# frozen_string_literal: true

require "ringspun/postgres"

# Random programs of callers that share a pool: transactions that ask the pool meanwhile, batches, streams, sessions, slow
# statements, and locks on the same few rows. A caller takes one step after the other.
#
# A program with a connection for each caller comes to its end, for whoever holds a lock waits for nothing but locks of which the
# server knows. So it has to end on a shared pool as well, and each step as {Model} says. What a step adds to a row is in the row
# afterwards once, or not at all.
class PostgresProgress
  # @!attribute with
  #   @return [Array] the arguments of the verb, among them steps inside of it
  Step = Data.define(:caller, :verb, :with) do
    def to_s
      text = [verb, *with.flatten].join(" ")
      caller ? "caller #{caller}: #{text}" : "(#{text})"
    end
  end

  # @!attribute steps
  #   @return [Array<Step>] in the order of each caller
  # @!attribute threads
  #   @return [Boolean] whether callers are plain threads, and not strands
  # @!attribute ordered
  #   @return [Boolean] whether all take their locks in the same order, so that there is no deadlock
  # @!attribute options
  #   @return [Hash{Symbol => Object}] of the pool
  Program = Data.define(:steps, :threads, :ordered, :options) do
    def to_s = [options.inspect, ("threads" if threads), *steps].compact.join("\n  ")
  end

  ROWS = 3
  LOCKS = 2

  # Draws a program.
  class Draw
    # @param sessions [Boolean] whether the server has them: a pooler has none
    def initialize(random, sessions:)
      @random = random
      @sessions = sessions
      @ordered = chance(0.8)
      @delta = 0
    end

    def program
      callers = @random.rand(2..5)
      steps = Array.new(callers * 3) { step(@random.rand(callers)) }
      options = { lanes: @random.rand(1..2), max: [1, 2, callers, 10].sample(random: @random) }
      Program.new(steps:, threads: chance(0.3), ordered: @ordered, options:)
    end

    private

    def chance(probability) = @random.rand < probability

    def step(caller)
      verbs = %i[read slow stream fail transaction transaction transaction]
      verbs += %i[add add batch lock]
      verbs += %i[session] if @sessions
      verb = verbs.sample(random: @random)
      Step.new(caller, verb, __send__(:"#{verb}_with"))
    end

    def inner(verb, *with) = Step.new(nil, verb, with)

    # In that order they are locked.
    def targets = Array.new(8) { @random.rand(LOCKS + ROWS) }.then { |targets| @ordered ? targets.sort : targets }

    def delta = @delta += @random.rand(1..100)

    def row = @random.rand(ROWS)

    def read_with = [row]
    def slow_with = [@random.rand(1..8)]
    def fail_with = []
    def add_with = [row, delta]
    def lock_with = [@random.rand(LOCKS)]

    def stream_with
      count = [0, 3, 600].sample(random: @random)
      [count, @random.rand(count + 1), Array.new(@random.rand(2)) { chance(0.7) ? inner(:read, row) : inner(:slow, 1) }]
    end

    def batch_with
      rows = targets.map { |target| target - LOCKS }.reject(&:negative?).first(3)
      [rows.map { |row| inner(:add, row, delta) } + (chance(0.2) ? [inner(:fail)] : [])]
    end

    def transaction_with
      options = chance(0.2) ? { isolation: %i[repeatable_read serializable].sample(random: @random), retry: @random.rand(3) } : {}
      [body(targets, 4), %i[commit commit commit raise throw].sample(random: @random), options]
    end

    def session_with
      [@random.rand(LOCKS), Array.new(@random.rand(1..3)) { chance(0.5) ? inner(:add, row, delta) : beside }]
    end

    def body(targets, most)
      Array.new(@random.rand(1..most)) do
        case @random.rand(10)
        when 0..4 then locking(targets)
        when 5 then [inner(:fail), inner(:read, row), inner(:slow, @random.rand(1..5))].sample(random: @random)
        when 6 then inner(:savepoint, body(targets, 2), %i[commit raise].sample(random: @random))
        when 7 then inner(:stream, *stream_with.first(2), [])
        else beside
        end
      end
    end

    def locking(targets)
      target = targets.shift or return inner(:read, row)
      target < LOCKS ? inner(:lock, target) : inner(:add, target - LOCKS, delta)
    end

    # What is asked of the pool meanwhile: nothing that waits for a lock.
    def beside
      inner(%i[aside sent].sample(random: @random), chance(0.8) ? inner(:read, row) : inner(:slow, @random.rand(1..5)))
    end
  end

  # What becomes of each step.
  module Model
    LEAVING = { commit: "done", raise: "Left", throw: "left" }.freeze

    # @return [String] how the step ends
    def self.end_of(step)
      case step.verb
      when :fail then "DivisionByZero"
      when :batch then fails?(step.with[0]) ? "DivisionByZero" : "done"
      when :transaction then fails?(step.with[0]) ? "DivisionByZero" : LEAVING.fetch(step.with[1])
      else "done"
      end
    end

    # @return [Array<String>] as it may end as well
    def self.others(step, ordered)
      ended = ordered || %i[read slow stream fail].include?(step.verb) ? [] : ["DeadlockDetected"]
      ended << "SerializationFailure" if step.verb == :transaction && step.with[2].any?
      ended
    end

    # @return [Array<Array(Integer, Integer)>] rows, and what is added to each
    def self.added(step)
      case step.verb
      when :add then [step.with]
      when :batch, :transaction then step.with[0].flat_map { |inner| added(inner) }
      when :session then step.with[1].flat_map { |inner| added(inner) }
      when :savepoint then fails?(step.with[0]) || step.with[1] == :raise ? [] : step.with[0].flat_map { |inner| added(inner) }
      else []
      end
    end

    # The caller goes on after a savepoint that fails.
    def self.fails?(steps) = steps.any? { |step| step.verb == :fail }
  end
end
