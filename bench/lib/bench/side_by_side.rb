# frozen_string_literal: true

require "bench/libpq_program"
require "bench/row_streams"

module Bench
  # Who runs beside our client in the tables that have the form of em-pg-client's own benchmarks: strands, each of which has a
  # connection of the gem pg, or of em-pg-client.
  module SideBySide
    BY_PG = ->(options) { PG.connect(options) }
    BY_EM = ->(options) { PG::EM::Client.new(options) }

    # Declares them. The block gets the meter, what starts a strand with a block, what awaits its value, what makes a connection
    # of its options, and the sizes.
    def self.contend(table, &work)
      table.contender("threads", requires: "pg") do |meter, **size|
        work.call(meter, Thread.method(:new), :value.to_proc, BY_PG, **size)
      end
      # A task for each.
      table.contender("async", requires: "async") do |meter, **size|
        require "pg"
        Sync { |task| work.call(meter, task.method(:async), :wait.to_proc, BY_PG, **size) }
      end
      contend_in_reactor(table, "em-pg-client", &work)
      # A strand for each, by our scheduler.
      table.contender(SCHEDULED, requires: SUBJECT) do |meter, **size|
        require "pg"
        Ringspun.run { |machine| work.call(meter, machine.method(:spin), :await.to_proc, BY_PG, **size) }
      end
    end

    # A fiber for each, as the seed has it.
    def self.contend_in_reactor(table, name, prepare = -> {}, &work)
      table.contender(name, requires: PEER_EM_PG_CLIENT) do |meter, **size|
        prepare.call
        EventFiber.run { work.call(meter, EventFiber.method(:new), :value.to_proc, BY_EM, **size) }
      end
    end
  end
end
