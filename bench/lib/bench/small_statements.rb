# frozen_string_literal: true

require "bench/by_pg"
require "bench/libpq_program"
require "bench/postgres_server"

module Bench
  # The contenders of the tables of small statements: strands which ask `select $1::int`, prepared, one after the other.
  class SmallStatements
    NAME = "small"
    SQL = "select $1::int"

    IN_THREADS = [Thread.method(:new), :value].freeze
    ALONE = [->(&work) { work.call }, :itself].freeze

    class << self
      include ByPg

      # Declares what both tables have: rows, contenders and the floor. `reach` yields the options of a connection. `pools` has
      # names of contenders and the numbers of connections that their strands share, unless there are fewer strands. `ours` is
      # the size for our strands, `alone` that for the contender that is no strand. `cluster` has the method `start`.
      def contend(table, reach, pools, ours: {}, alone: {}, cluster: PostgresServer)
        frame(table, cluster)
        contend_by_us(table, reach, ours, cluster)
        # One connection, and nothing beside it.
        table.contender("pg", requires: "pg", size: alone) do |meter, **size|
          reach.call { |options| new(meter, *ALONE, **size, strands: 1, cluster:).by_pg(1, options) }
        end
        # A thread for each strand, with a connection of its own.
        table.contender("threads", requires: "pg") do |meter, strands:, **size|
          reach.call { |options| new(meter, *IN_THREADS, strands:, **size, cluster:).by_pg(strands, options) }
        end
        pools.each do |name, connections|
          contend_with_pool(table, name) do |way, meter, **size|
            reach.call { |options| send(way, meter, [connections, size.fetch(:strands)].min, options, **size, cluster:) }
          end
        end
        table.bare("libpq pipelined") do |meter, strands:, statements:|
          reach.call { |options| LibpqProgram.measure(meter, options, :pipelined, statements, strands, server: cluster.start) }
        end
      end

      private

      def frame(table, cluster)
        table.row "64 strands", strands: 64
        table.row "256 strands", strands: 256, quick: false
        table.beforehand { |**| cluster.start }
        table.proof { |statements:, **| { answered: statements } }
        table.columns :real_ns, :cpu_ns, :backend_ns, :rate
        table.against_peer :real_ns, :cpu_ns
      end

      # One connection for all strands, or for plain threads.
      def contend_by_us(table, reach, size, cluster)
        table.contender(SUBJECT, requires: SUBJECT, size:, backends: [MAIN_BACKEND]) do |meter, **size|
          reach.call { |options| on_lane(meter, options, **size, cluster:) }
        end
        table.beside("no busy_poll", requires: SUBJECT, size:) do |meter, **size|
          reach.call { |options| on_lane(meter, options, machine: { busy_poll: false }, **size, cluster:) }
        end
        table.beside("courier", requires: SUBJECT) do |meter, **size|
          reach.call { |options| by_courier(meter, options, **size, cluster:) }
        end
      end

      def contend_with_pool(table, name, &)
        way, library = { "async" => [:in_async, "async"], "em-pg-client" => [:in_em, PEER_EM_PG_CLIENT],
                         SCHEDULED => [:in_strands, SUBJECT] }.fetch(name.sub(/ \d+\z/, ""))
        table.contender(name, requires: library) { |meter, **size| yield(way, meter, **size) }
      end

      def on_lane(meter, options, machine: {}, **)
        PostgresServer.client(options, machine:) do |client, machine|
          statement = known(client)
          new(meter, machine.method(:spin), :await, **).measure { |number, _| statement.query_value(number).to_s }
        end
      end

      def by_courier(meter, options, **)
        require "ringspun/postgres"
        client = Ringspun::Postgres.connect(**options)
        statement = Thread.new { known(client) }.value
        new(meter, *IN_THREADS, **).measure { |number, _| statement.query_value(number).to_s }
      ensure
        client&.close
      end

      # The connection is there, and knows the statement by name, and what it answers.
      def known(client) = client.prepare(SQL).tap { |statement| 2.times { statement.query(0) } }

      def by_pg(meter, start, finish, connections, options, **) = new(meter, start, finish, **).by_pg(connections, options)

      # A fiber for each, and the client's own pool.
      def in_em(meter, connections, options, **)
        EventFiber.run do
          prepare = ->(client, *) { client.prepare_defer(NAME, SQL) }
          pool = PG::EM::ConnectionPool.new(**options, size: connections, on_connect: prepare)
          new(meter, EventFiber.method(:new), :value, **).measure do |number, _|
            pool.exec_prepared(NAME, [number]) { |result| result.getvalue(0, 0) }
          end
        end
      end
    end

    # @param start [#call] runs a block beside the others
    # @param finish [#to_proc] awaits its value
    # @param cluster [#start] gives the server
    def initialize(meter, start, finish, strands:, statements:, cluster: PostgresServer)
      @meter = meter
      @start = start
      @finish = finish.to_proc
      @strands = strands
      @each = statements / strands
      @cluster = cluster
    end

    # By connections of the gem pg. Each strand has a connection to itself; if there are fewer connections, it takes one from a
    # pool for each statement.
    def by_pg(connections, options)
      require "pg"
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

    # The block asks the server for a number, in a strand, and returns the answer as text. Returns the proof.
    def measure
      @meter.operations = @each * @strands
      @cluster.start.measure(@meter) do
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
