# frozen_string_literal: true

require "monitor"
require "socket"
require "timeout"

# The same program twice: a small program of stock Ruby is run in threads, and once more in strands. What comes of it must be the
# same, for what waits in a strand waits as in a thread. A program does not show in what order its actors go on.
class SameTwice
  # A limit that passes, and one that does not.
  TINY = 0.02
  LONG = 60

  # Stands for a step that says nothing.
  EARLY = "the limit has passed before the wait began"

  Failure = Class.new(StandardError)
  Cut = Class.new(StandardError)
end

require_relative "same_twice/worlds"
require_relative "same_twice/things"
require_relative "same_twice/things_io"
require_relative "same_twice/crews"
require_relative "same_twice/actor"
require_relative "same_twice/program"
require_relative "same_twice/differences"

class SameTwice
  Program = Data.define(:seed, :steps) do
    def self.drawn(seed) = new(seed, Drawing.new(seed).steps)

    # True for a program that is run with `ringspun/core_ext`.
    def core_ext? = (seed / WORLDS.size).odd?

    # Its second world. Its first are threads.
    def world = WORLDS[seed % WORLDS.size]

    # One of three has an actor that is a thread in either world, and shares the locks.
    def place_of(actor) = seed % 3 == 0 && actor == 1 ? :thread : :strand

    def run(world)
      locks = Array.new(Drawing::LOCKS) { |i| i == 1 ? Monitor.new : Thread::Mutex.new }
      world.run do |running|
        handles = steps.group_by(&:first).to_h do |name, own|
          actor = Actor.new(running, place_of(name), locks)
          [name, running.spin(place_of(name)) { actor.perform(own.map(&:last)) }]
        end
        handles.transform_values(&:join)
      end
    end

    # @yieldparam world [Class] that comes next
    # @return [Array<String>] where the two differ
    def differences
      outcomes = [InThreads, world].map do |each|
        yield each
        run(each)
      end
      Differences.between(*outcomes)
    rescue StandardError, Ringspun::Error => error
      [error.full_message(highlight: false)]
    end

    def to_s
      steps.group_by(&:first).sort.map do |name, own|
        ["actor #{name}, a #{place_of(name)}:", *own.map { |_, step| step.to_s.gsub(/^/, "  ") }].join("\n")
      end.join("\n")
    end
  end
end

require_relative "same_twice/explorer"
