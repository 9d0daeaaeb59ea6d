# frozen_string_literal: true

module Bench
  # Connections of the gem pg that strands, threads or tasks share: each takes one for a piece of work.
  class SharedConnections
    # Yields them. The block `prepare` gets each connection before.
    def self.during(count, options, prepare = ->(_) {})
      require "pg"
      open = Array.new(count) { PG.connect(options).tap(&prepare) }
      yield new(open)
    ensure
      open&.each(&:close)
    end

    def initialize(connections)
      @free = Thread::Queue.new(connections)
    end

    # Yields a connection that nobody else has meanwhile.
    def take
      connection = @free.pop
      yield connection
    ensure
      @free << connection if connection
    end
  end
end
