# frozen_string_literal: true

require "redis-client"

module Ringspun
  module Jobs
    class Storage
      # Redis, or Valkey, from version 7 on. A job's token is its entry, for nothing else tells the jobs of a list apart.
      class Redis < Storage
        # How many connections of its own it has at most, beside those that wait at the server.
        CONNECTIONS = 8

        # Seconds that the server may take, unless the options say otherwise.
        TIMEOUT = 5
      end
    end
  end
end

require_relative "redis/full_error"
require_relative "redis/address"
require_relative "redis/settings"
require_relative "redis/script"
require_relative "redis/driver"
require_relative "redis/client"
require_relative "redis/connection"
require_relative "redis/pool"
require_relative "redis/batch"
require_relative "redis/nodes"
require_relative "redis/admin"
require_relative "redis/locks"
require_relative "redis/search"
require_relative "redis/waits"
require_relative "redis/without_tables"
require_relative "redis/crons"

module Ringspun
  module Jobs
    class Storage
      class Redis
        include Nodes
        include Admin
        include Locks
        include Search
        include Waits
        include WithoutTables
        include Crons

        # Options that the caller cannot set: this class decides what may be sent again, and reads the answers of protocol 3.
        OURS = { client_implementation: Client, driver: Driver, command_builder: Driver::AsTheyAre, protocol: 3,
                 reconnect_attempts: 0 }.freeze
        private_constant :OURS

        # @param options [Hash] what RedisClient.config takes, or, with :sentinels, RedisClient.sentinel; the driver, the protocol
        #   and reconnecting in it are ignored
        # @param namespace [String] see {Config#namespace}
        # @param milliseconds [Boolean] see {Config#milliseconds}
        # @param history [Numeric] see {Config#history}
        # @raise [ConfigError]
        # @since 0.1.0
        def initialize(options = {}, namespace: "", milliseconds: false, history: HISTORY_SECONDS)
          super()
          @prefix = namespace.empty? ? "" : "#{namespace}:"
          @milliseconds = milliseconds
          @history = (Seconds.limit("history", history, "a number of seconds") * 1000).ceil
          @config = client_config(options)
          @leased = {} # the nodes whose leases it has extended
          @gates = {} # of those who wait => node
          @unblocks = true # false: the server does not let us end waits
          @pool = Pool.new(CONNECTIONS) { connect }
        end

        # Makes a connection for the caller's own use, which verbs take as `connection:`. One strand or thread may use it at a
        # time. It connects when it is first used; the caller closes it.
        #
        # @return [Connection]
        # @since 0.1.0
        def connect = Connection.new(@config)

        # (see Storage#shared?)
        def shared? = true

        # (see Storage#identity)
        def identity = "#{Address.shown(@config)}#{", namespace #{@prefix.chomp(":")}" unless @prefix.empty?}"

        # Ends all waits of {#wait_any} within seconds.
        #
        # @return [nil]
        # @since 0.1.0
        def close
          @gates.keys.each(&:close)
          @pool.close
        end

        # (see Storage#push)
        def push(pushes, connection: nil)
          return if pushes.empty?

          batch = Batch.new(@prefix, pushes)
          batch.outcomes(use(connection) { |one| one.exchange(batch.commands) })
        end

        # (see Storage#fetch)
        def fetch(node, queues, max, limits: {}, connection: nil)
          return [] if queues.empty? || !max.positive?

          fetched_from(queues, call(connection, fetch_command(node, queues, max, limits)))
        end

        # (see Storage#in_flight)
        def in_flight(node, connection: nil)
          use(connection) do |one|
            queues = repeat(one, [["SMEMBERS", key("ringspun:lists:#{node}")]]).first
            lists = queues.empty? ? [] : repeat(one, queues.map { |queue| ["LRANGE", backup(node, queue), 0, -1] })
            queues.zip(lists).flat_map { |queue, entries| entries.reverse.map { |entry| Fetched.new(queue, entry, entry) } }
          end
        end

        # (see Storage#begin_quarantined)
        def begin_quarantined(node, runs, isolated: false, connection: nil)
          return [] if runs.empty?

          jobs = runs.flat_map do |begun|
            [begun.fetched.queue, begun.fetched.token, Wire.parse(begun.fetched.entry)["jid"], begun.run]
          end
          answers = call(connection, Script[:begin_quarantined].command(@prefix, node, isolated ? 1 : 0, *jobs))
          answers.map do |numbers|
            next if numbers.empty?

            numbers.one? ? :later : Trials.new(*numbers)
          end
        end

        # (see Storage#ack)
        def ack(node, acks, connection: nil)
          return settle(node, acks, connection) { |ack| arguments_of(ack) } if acks.empty? || !acks.all? { |ack| plain?(ack) }

          command = Script[:ack].command(@prefix, node, @history, *acks.flat_map { |ack| [ack.queue, ack.token, ack.jid] })
          call(connection, command).map { |answer| answer == 1 }
        end

        # (see Storage#fail)
        def fail(node, failures, connection: nil)
          settle(node, failures, connection) do |failure|
            to = failure.to == :queue ? "queue:#{failure.new_queue || failure.queue}" : failure.to.name
            [failure.queue, failure.token, failure.jid || "", failure.lock || "", to, failure.new_entry || failure.token,
             failure.delay || (failure.died ? 1 : 0), text_of(failure.event), 0]
          end
        end

        # (see Storage#due)
        def due(limit, by: nil, connection: nil)
          command = Script[:due].command(@prefix, limit, @milliseconds ? 1 : 0, by || "")
          moved, left, dead = call(connection, command, again: true)
          [moved, left&.to_f, dead.each_slice(2).to_a]
        end

        private

        def fetch_command(node, queues, max, limits)
          Script[:fetch].command(@prefix, node, max, *queues.flat_map { |queue| [queue, limits[queue] || ""] })
        end

        def fetched_from(queues, lists)
          queues.zip(lists).flat_map { |queue, entries| entries.map { |entry| Fetched.new(queue, entry, entry) } }
        end

        def key(name) = "#{@prefix}#{name}"

        def backups = key("queue:backup::")

        def backup(node, queue) = "#{backups}#{node}::#{queue}"

        def use(connection, waits: false, &)
          return @pool.lend(waits: waits, &) unless connection
          return yield(connection) if connection.respond_to?(:exchange)

          raise UsageError, "connection: must be what connect of the storage has made, got #{connection.class}; jobs in Redis " \
                            "have no part in a database's transaction: let them wait for its commit, after_commit: true"
        end

        # @param again [Boolean] whether the command may be done twice, and so is sent again when its answer was lost
        def call(connection, command, again: false)
          use(connection) { |one| again ? repeat(one, [command]).first : one.call(*command) }
        end

        def repeat(connection, commands)
          all(connection.exchange(commands))
        rescue UnknownOutcomeError
          all(connection.exchange(commands))
        end

        def all(replies) = replies.each { |reply| raise reply if reply.is_a?(Error) }

        # Whether there is nothing to do but to forget the job.
        def plain?(ack) = ack.jid && !(ack.lock || ack.pushes || ack.keep_seconds || ack.event)

        def arguments_of(ack)
          [ack.queue, ack.token, ack.jid || "", ack.lock || "", "", ack.result || "", milliseconds_of(ack),
           text_of(ack.event), *followers(ack.pushes)]
        end

        def milliseconds_of(ack) = ack.keep_seconds ? ([ack.keep_seconds, RESULT_SECONDS_MAX].min * 1000).ceil : 0

        def settle(node, all, connection, &)
          return [] if all.empty?

          command = Script[:done].command(@prefix, node, AGAIN_SECONDS * 1000, @history, *all.flat_map(&))
          call(connection, command).map { |answer| answer == 1 }
        end

        # Without braces: the script adds the time and the node.
        def text_of(event)
          return "" unless event

          JSON.generate({ kind: event.kind, error_class: event.error_class, error_message: event.error_message }.compact)[1..-2]
        end

        def followers(pushes) = pushes ? [pushes.size, *pushes.flat_map { |push| Batch.arguments(push) }] : 0

        def client_config(options)
          options = { timeout: TIMEOUT, **options.transform_keys(&:to_sym), **OURS }
          return ::RedisClient.sentinel(**options) if options.key?(:sentinels)

          options[:url] ||= Address.given unless options.key?(:host) || options.key?(:path) || !Address.given
          ::RedisClient.config(**options)
        rescue ArgumentError, URI::InvalidURIError => error
          raise ConfigError, "RedisClient refuses the setting redis: #{error.message}"
        end
      end
    end
  end
end
