# frozen_string_literal: true

require "bench/by_pg"
require "bench/postgres_server"
require "bench/shared_connections"

module Bench
  # The contenders of the table of writes: strands that each insert a row and then update it by its key, again and again,
  # one statement after the other, each committed by itself.
  class WritingStatements
    TABLE = "bench_writes_#{Process.pid}".freeze
    INSERT = "insert into #{TABLE} (id, n) values ($1, 0)".freeze
    UPDATE = "update #{TABLE} set n = n + 1 where id = $1".freeze

    class << self
      include ByPg

      # On the shared connections of a pool of ours.
      def by_us(meter, **)
        make_table
        PostgresServer.client(lanes: 2) do |client, machine|
          insert, update = [INSERT, UPDATE].map { |sql| client.prepare(sql) }
          new(meter, machine.method(:spin), :await, **).measure { |id| insert.execute(id) + update.execute(id) }
        end
      end

      # By one connection of the gem pg, one statement after the other.
      def alone(meter, strands:, statements:)
        by_pg(meter, ->(&work) { work.call }, :itself, 1, strands: 1, statements: statements / strands / 2 * strands * 2)
      end

      private

      # Anew for each sample.
      def make_table
        PostgresServer.start.ask("select pg_catalog.set_config('client_min_messages', 'error', false);" \
                                 "drop table if exists #{TABLE}; create table #{TABLE} (id int primary key, n int not null)")
      end

      # Connections are taken from a pool for each statement.
      def by_pg(meter, start, finish, connections, **)
        make_table
        SharedConnections.during(connections, PostgresServer.start.options, method(:prepare)) do |pool|
          new(meter, start, finish, **).measure do |id|
            %w[insert update].sum { |name| pool.take { |connection| connection.exec_prepared(name, [id]).cmd_tuples } }
          end
        end
      end

      def prepare(connection)
        connection.prepare("insert", INSERT)
        connection.prepare("update", UPDATE)
      end
    end

    # @param start [#call] runs a block beside the others
    # @param finish [#to_proc] awaits its value
    def initialize(meter, start, finish, strands:, statements:)
      @meter = meter
      @start = start
      @finish = finish.to_proc
      @strands = strands
      @each = statements / strands / 2
    end

    # The block inserts and updates the row of a number, and returns how many rows these have met. Returns the proof.
    def measure
      server = PostgresServer.start
      yield(-1)
      @meter.operations = @each * @strands * 2
      server.measure(@meter) do
        started = Array.new(@strands) do |strand|
          @start.call { @each.times.sum { |number| yield((strand * @each) + number) } }
        end
        { written: started.sum(&@finish) }
      end
    end
  end
end
