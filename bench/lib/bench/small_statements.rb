# frozen_string_literal: true

require "bench/postgres_server"

module Bench
  # Strands which ask `select $1::int`, prepared, one after the other.
  class SmallStatements
    NAME = "small"
    SQL = "select $1::int"

    # @param start [#call] runs a block beside the others
    # @param finish [#to_proc] awaits its value
    def initialize(meter, start, finish, strands:, statements:)
      @meter = meter
      @start = start
      @finish = finish.to_proc
      @strands = strands
      @each = statements / strands
    end

    # By connections of the gem pg: each strand has one of them to itself, or takes one from a pool for each statement where
    # there are fewer.
    def by_pg(connections, options = PostgresServer.start.options)
      open = Array.new(connections) { PG.connect(options).tap { |connection| connection.prepare(NAME, SQL) } }
      return measure { |number, strand| ask(open[strand], number) } if connections == @strands

      free = Thread::Queue.new(open)
      measure do |number, _|
        connection = free.pop
        ask(connection, number).tap { free << connection }
      end
    ensure
      open&.each(&:close)
    end

    # The block answers what the server does, as text, when it is asked that number by that strand. Answers the proof.
    def measure
      @meter.operations = @each * @strands
      PostgresServer.start.measure(@meter) do
        started = Array.new(@strands) do |strand|
          @start.call { @each.times.count { |number| yield(number, strand) == number.to_s } }
        end
        { answered: started.sum(&@finish) }
      end
    end

    private

    def ask(connection, number) = connection.exec_prepared(NAME, [number]).getvalue(0, 0)
  end
end
