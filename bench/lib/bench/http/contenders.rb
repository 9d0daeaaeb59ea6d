# frozen_string_literal: true

require "bench/http/asking"
require "bench/http/nginx"
require "bench/http/served"
require "bench/http/programs"

module Bench
  # Servers of HTTP, each in processes of its own on a core of its own, asked by clients on another: a table counts what they
  # cost, and not what the clients take.
  module Http
    PEERS = %w[puma falcon iodine agoo itsi].freeze
    FLOORS = ["C epoll", "nginx"].freeze

    # The sizes that say how much is asked.
    WORK = %i[ms each events idle].freeze
    private_constant :WORK

    class << self
      # Declares the contenders of a table, whose block gets what {run} does. Those of a size without work are not started.
      #
      # @param table [Table::Builder]
      # A size `log` of 1 is for ours alone, and turns its access log on.
      #
      # @param work [String] the name of the program: see bench/peers/http/app.rb
      def contend(table, work, peers: PEERS, floors: FLOORS, &measure)
        measure ||= method(:ask)
        take = lambda do |name, meter, size, **options|
          asked = size.except(:log)
          measure.call(Programs.start(name, work, **options), work, meter, **asked) unless asked.values_at(*WORK).include?(0)
        end
        peers.each { |name| table.contender(name) { |meter, **size| take.call(name, meter, size) } }
        BACKENDS.keys.first(2).each do |backend|
          table.contender(SUBJECT, requires: SUBJECT, backends: [backend]) do |meter, **size|
            take.call(SUBJECT, meter, size, backend:, log: size.fetch(:log, 0) == 1)
          end
        end
        floors.each { |name| table.bare(name) { |meter, **size| take.call(name, meter, size) } }
      end

      # Asks one, and counts what its processes spend.
      #
      # @return [Hash] the proof
      def ask(program, work, meter, **options)
        asking(program, work, meter, **options) do |served, clients|
          result = nil
          spent = served.family.spent { result = clients.run }
          meter.take(**spent, real: result[:seconds])
          meter.operations = result[:answered]
          meter.note(:memory, served.family.bytes)
          yield result if block_given?
          { answered: true }
        end
      end

      # Yields a server and clients that have been answered once each.
      def asking(program, work, meter, **options)
        folder = meter.scratch
        Served.during(folder, program) do |served|
          clients = Asking.new(folder, served.port, Messages.request(work), Messages.body(work), **options)
          clients.ready
          yield served, clients
        ensure
          clients&.close
        end
      end
    end
  end
end
