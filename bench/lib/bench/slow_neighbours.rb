# frozen_string_literal: true

require "bench/by_pg"
require "bench/postgres_server"
require "bench/shared_connections"

module Bench
  # The contenders of the table of quick statements beside slow ones: all but one of the connections of a pool have a statement
  # that takes long, while many strands ask quick ones.
  class SlowNeighbours
    CONNECTIONS = 10
    TABLE = "bench_neighbours_#{Process.pid}".freeze
    QUICK = "select $1::int"
    UPDATE = "update #{TABLE} set n = n + 1 where id = $1".freeze

    # As often a statement is asked before, so that a client can know whether it is quick.
    OFTEN = 40

    class << self
      include ByPg

      def by_us(meter, **)
        PostgresServer.client(max: CONNECTIONS) do |client, machine|
          new(meter, machine.method(:spin), :await, **).measure do |sql, *params|
            client.query_value(sql, *params)
          end
        end
      end

      private

      def by_pg(meter, start, finish, **)
        SharedConnections.during(CONNECTIONS, PostgresServer.start.options, ->(each) { each.prepare("quick", QUICK) }) do |pool|
          new(meter, start, finish, **).measure do |sql, *params|
            pool.take do |connection|
              result = sql == QUICK ? connection.exec_prepared("quick", params) : connection.exec_params(sql, params)
              result.getvalue(0, 0).to_i if result.ntuples == 1
            end
          end
        end
      end
    end

    # @param start [#call] runs a block beside the others
    # @param finish [#to_proc] awaits its value
    # @param kind [String] what the slow statements are: unknown, known, locked
    # @param seconds [Float] that they take
    def initialize(meter, start, finish, kind:, strands:, statements:, seconds:)
      @meter = meter
      @start = start
      @finish = finish.to_proc
      @kind = kind.to_sym
      @strands = strands
      @each = statements / strands
      @seconds = seconds
      @waits = []
    end

    # The block asks a statement with its parameters, in a strand, and returns the first value. Returns the proof.
    def measure(&ask)
      acquaint(&ask)
      neighbours = []
      answered = locked do
        @meter.operations = @each * @strands
        PostgresServer.start.measure(@meter) do
          neighbours = Array.new(CONNECTIONS - 1) { |number| @start.call { ask.call(*slow(number)) } }
          Array.new(@strands) { @start.call { quick(&ask) } }.sum(&@finish)
        end
      end
      @meter.note(:p99, @waits.sort[@waits.size * 99 / 100])
      { answered:, neighbours: neighbours.each(&@finish).size }
    end

    private

    # What is asked is known as it is by day.
    def acquaint
      OFTEN.times { yield QUICK, 0 }
      case @kind
      when :known then OFTEN.times { yield "select pg_sleep($1)", 0.01 }
      when :locked
        PostgresServer.start.ask("drop table if exists #{TABLE}; create table #{TABLE} (id int primary key, n int not null);" \
                                 "insert into #{TABLE} select i, 0 from generate_series(0, #{CONNECTIONS}) i")
        OFTEN.times { yield UPDATE, CONNECTIONS }
      end
    end

    def slow(number)
      { unknown: ["select pg_sleep($1), #{number}", @seconds], known: ["select pg_sleep($1)", @seconds],
        locked: [UPDATE, number] }.fetch(@kind)
    end

    # Somebody else has the rows for as long as the block runs.
    def locked
      return yield unless @kind == :locked

      require "pg"
      connection = PG.connect(PostgresServer.start.options)
      connection.transaction do
        connection.exec("select 1 from #{TABLE} where id < #{CONNECTIONS} for update")
        yield
      end
    ensure
      connection&.close
    end

    def quick
      @each.times.count do |number|
        began = @meter.now
        right = yield(QUICK, number) == number
        @waits << (@meter.now - began)
        right
      end
    end
  end
end
