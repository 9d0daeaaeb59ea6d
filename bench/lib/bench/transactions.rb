# frozen_string_literal: true

require "bench/by_pg"
require "bench/postgres_server"
require "bench/shared_connections"

module Bench
  # The contenders of the table of transactions: strands which begin a transaction, read a number, write it back plus one, and
  # commit. Each strand has a row of its own, so that nobody waits for a lock.
  class Transactions
    TABLE = "bench_transactions_#{Process.pid}".freeze
    SELECT = "select n from #{TABLE} where id = $1".freeze
    UPDATE = "update #{TABLE} set n = $2 where id = $1".freeze
    PREPARE = lambda do |connection|
      connection.prepare("select", SELECT)
      connection.prepare("update", UPDATE)
    end

    class << self
      include ByPg

      def by_us(meter, connections, strands:, **)
        make_table(strands)
        PostgresServer.client(max: connections) do |client, machine|
          new(meter, machine.method(:spin), :await, strands:, **).measure do |id|
            client.transaction { |transaction| transaction.execute(UPDATE, id, transaction.query_value(SELECT, id) + 1) }
          end
        end
      end

      # By one connection of the gem pg, one transaction after the other.
      def alone(meter, strands:, transactions:)
        by_pg(meter, ->(&work) { work.call }, :itself, 1, strands: 1, transactions: transactions / strands * strands)
      end

      # A fiber for each, and the client's own pool.
      def in_em(meter, connections, strands:, **)
        make_table(strands)
        EventFiber.run do
          prepare = ->(client, *) { client.exec_defer("prepare \"select\" as #{SELECT}; prepare \"update\" as #{UPDATE}") }
          pool = PG::EM::ConnectionPool.new(**PostgresServer.start.options, size: connections, on_connect: prepare)
          new(meter, EventFiber.method(:new), :value, strands:, **).measure do |id|
            pool.transaction { |connection| add_one(connection, id) }
          end
        end
      end

      private

      # Anew for each sample.
      def make_table(strands)
        PostgresServer.start.ask("select pg_catalog.set_config('client_min_messages', 'error', false);" \
                                 "drop table if exists #{TABLE};" \
                                 "create table #{TABLE} (id int primary key, n int not null);" \
                                 "insert into #{TABLE} select i, 0 from generate_series(0, #{strands - 1}) i")
      end

      def by_pg(meter, start, finish, connections, strands:, **)
        make_table(strands)
        SharedConnections.during(connections, PostgresServer.start.options, PREPARE) do |pool|
          new(meter, start, finish, strands:, **).measure do |id|
            pool.take { |connection| connection.transaction { add_one(connection, id) } }
          end
        end
      end

      def add_one(connection, id)
        number = connection.exec_prepared("select", [id]).getvalue(0, 0).to_i
        connection.exec_prepared("update", [id, number + 1])
      end
    end

    # @param start [#call] runs a block beside the others
    # @param finish [#to_proc] awaits its value
    def initialize(meter, start, finish, strands:, transactions:)
      @meter = meter
      @start = start
      @finish = finish.to_proc
      @strands = strands
      @each = transactions / strands
    end

    # The block adds one to the number of a row, in a transaction. Returns the proof.
    def measure
      server = PostgresServer.start
      @meter.operations = @each * @strands
      server.measure(@meter) do
        Array.new(@strands) { |id| @start.call { @each.times { yield id } } }.each(&@finish)
      end
      { committed: Integer(server.ask("select sum(n) from #{TABLE}"), 10) }
    end
  end
end
