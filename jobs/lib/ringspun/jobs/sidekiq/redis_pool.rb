# frozen_string_literal: true

require "redis-client"
require "redis_client/decorator"

module Ringspun
  module Jobs
    module Sidekiq
      # Connections for a program's own commands, each lent to one strand or thread at a time. And a shard: jobs that are enqueued
      # inside of {Client.via} go to its server.
      class RedisPool
        # The size of a pool that says none.
        SIZE = 10
        # The seconds that a caller waits for a connection, of a pool that says none.
        TIMEOUT = 10
        private_constant :TIMEOUT

        # Commands are methods, as `connection.get("name")`; `call`, `pipelined` and `multi` are RedisClient's own.
        #
        # @api private
        module Commands
          # The lines of INFO.
          def info = @client.call("INFO").lines(chomp: true).filter_map { |line| line.split(":", 2) if line.include?(":") }.to_h

          def evalsha(digest, keys, arguments) = @client.call("EVALSHA", digest, keys.size, *keys, *arguments)

          def respond_to_missing?(name, _private = false) = name.match?(/\A[a-z]\w*\z/)

          def method_missing(name, ...)
            respond_to_missing?(name) ? @client.call(name, ...) : super
          end
        end

        # A connection. It is closed when a transaction is left so that redis-client has not ended it, such as by a cancellation
        # or a `break`: the server would still watch for whoever has it next.
        #
        # @api private
        class Connection < ::RedisClient::Decorator.create(Commands)
          def multi(...)
            left = true
            super.tap { left = false }
          rescue StandardError
            left = false
            raise
          ensure
            close if left
          end
        end

        # Where the server of a client is.
        #
        # @api private
        module Servers
          # @param client [Object]
          # @return [Hash{Symbol => Object}] what RedisClient.config takes
          # @raise [ArgumentError]
          def self.options(client)
            config = config_of(client)
            raise ArgumentError, "the clients of this pool ask sentinels; #{INSTEAD}" if config.sentinel?

            address = config.path ? { path: config.path } : { host: config.host, port: config.port }
            user = config.password ? { username: config.username, password: config.password } : {}
            rest = { db: config.db, ssl: config.ssl, ssl_params: config.ssl_params, timeout: config.read_timeout }
            { **address, **user, **rest }.compact
          end

          INSTEAD = "make the pool by Sidekiq::RedisConnection.create(url: ...)"
          private_constant :INSTEAD

          # A client of the gem redis has one of redis-client inside.
          def self.config_of(client)
            client = client._client if !client.respond_to?(:config) && client.respond_to?(:_client)
            config = client.config if client.respond_to?(:config)
            return config if config.respond_to?(:sentinel?)

            raise ArgumentError, "a pool must have clients of redis-client, and this has a #{client.class}; #{INSTEAD}"
          end
          private_class_method :config_of
        end
        private_constant :Servers

        # @return [Integer] how many connections it has at most
        # @since 0.1.0
        attr_reader :size

        # @param options [Hash] as {Config#redis=} takes them
        # @param namespace [String] for jobs, see Jobs::Config#namespace
        # @api private
        def initialize(options, namespace: "")
          options = options.transform_keys(&:to_sym)
          @size = options[:size] || SIZE
          @timeout = Seconds.limit("pool_timeout", options[:pool_timeout] || TIMEOUT, "a number of seconds")
          @shutdowns = 0
          @options = RedisPool.plain(options)
          @namespace = namespace
          @beginning = Thread::Mutex.new
          begin_anew
        end

        # Lends a connection; inside of the block the same strand or thread gets the same one again, but not the fiber of an
        # Enumerator. May switch strands.
        #
        # @yieldparam connection [Connection]
        # @return [Object] the block's value
        # @raise [PoolTimeoutError] none was free within `pool_timeout`, unless it is set 10 s
        # @since 0.1.0
        def with
          lent = (Thread.current[:ringspun_sidekiq_connections] ||= {}.compare_by_identity) # a fiber's own
          return yield lent[self] if lent[self]

          begin_anew
          lend do |place|
            lent[self] = place[0] ||= connect
            yield lent[self]
          ensure
            lent.delete(self)
          end
        end

        # Jobs that are enqueued by it go to this pool's server.
        #
        # @return [Jobs::Enqueuer]
        # @api private
        def enqueuer
          begin_anew
          @beginning.synchronize { @enqueuer ||= new_enqueuer(Jobs.config) }
        end

        # Closes connections that are not lent, and the others when they come back, without waiting. May switch strands.
        #
        # @return [nil]
        # @since 0.1.0
        def shutdown
          Shielded.call do
            begin_anew
            @shutdowns += 1
            enqueuer = @beginning.synchronize { @enqueuer.tap { @enqueuer = nil } }
            close_all(enqueuer) if enqueuer
          ensure
            close_free
          end
          nil
        end

        # @param pool [Object]
        # @return [Object] it
        # @raise [ArgumentError] it is no pool
        # @api private
        def self.check(pool)
          return pool if pool.is_a?(RedisPool) || pool.respond_to?(:checkout) || pool.is_a?(::RedisClient::Pooled)

          raise ArgumentError, "a pool must be made by Sidekiq::RedisConnection.create(url: ...), or be a ConnectionPool of " \
                               "clients of redis-client, got #{pool.class}"
        end

        # @return [RedisPool, ConnectionPool, nil] the one of {Client.via}
        # @api private
        def self.current = Thread.current[:ringspun_sidekiq_pool]

        # Whoever enqueues in the block does so by that pool.
        #
        # @api private
        def self.with_current(pool)
          around = current
          Thread.current[:ringspun_sidekiq_pool] = pool # a fiber's own
          yield
        ensure
          Thread.current[:ringspun_sidekiq_pool] = around
        end

        # The pool that goes to the server of another one's clients. One of those is asked where that is; jobs are stored on
        # connections of ours, which know what may be sent again. There is one for each server, for good.
        #
        # @param pool [RedisPool, ConnectionPool, RedisClient::Pooled]
        # @return [RedisPool]
        # @raise [ArgumentError] its clients do not tell
        # @api private
        def self.of(pool)
          return pool if pool.is_a?(RedisPool)

          options = pool.is_a?(::RedisClient::Pooled) ? Servers.options(pool) : pool.with { |client| Servers.options(client) }
          namespace = Jobs.config.namespace
          @of_others_lock.synchronize { @of_others[[options, namespace]] ||= new(options, namespace:) }
        end
        @of_others_lock = Thread::Mutex.new
        @of_others = {}

        # Sidekiq's options by RedisClient's names.
        #
        # @param options [Hash{Symbol => Object}]
        # @return [Hash{Symbol => Object}]
        # @raise [ConfigError]
        # @api private
        def self.plain(options)
          if options[:namespace]
            raise ConfigError, "Sidekiq has no namespace since version 7; for one of ours write " \
                               "Ringspun::Jobs.config.namespace = #{options[:namespace].inspect}"
          end

          named = options.except(:size, :pool_timeout, :pool_name, :logger, :namespace, :network_timeout, :master_name)
          named[:timeout] = options[:network_timeout] if options[:network_timeout]
          named[:name] = options[:master_name] if options[:master_name]
          %i[role driver].each { |name| named[name] = named[name].to_sym if named[name] }
          named
        end

        private

        # A caller that is cancelled could not end what it has begun, such as a WATCH.
        def lend
          shutdowns = @shutdowns
          @lender.lend(@timeout) do |place|
            yield place
          rescue StandardError
            raise
          rescue Exception
            place.pop&.close
            raise
          ensure
            place.pop&.close unless shutdowns == @shutdowns
          end
        rescue Lender::TimeoutError
          raise PoolTimeoutError, "none of the pool's connections (#{@size}) was free within #{Words.duration(@timeout)}; make " \
                                  "the pool larger, or end a block of `with` before an Enumerator begins another one"
        end

        # Those that are free come first in first out, so each has its turn.
        def close_free
          @size.times { @lender.lend(0) { |place| place.pop&.close } }
        rescue Lender::TimeoutError # all are lent
          nil
        end

        # In a forked child, where what its parent had lent never comes back. Several of its threads may come here at once.
        def begin_anew
          return if Process.pid == @pid

          @beginning.synchronize do
            next if Process.pid == @pid

            @lender = Lender.new(Array.new(@size) { [] })
            @enqueuer = nil
            @pid = Process.pid
          end
        end

        # The storage is this pool's own, for the enqueuer leaves it open.
        def close_all(enqueuer)
          enqueuer.close
        ensure
          enqueuer.storage.close
        end

        def new_enqueuer(config)
          Enqueuer.new(Storage.for(Jobs::Config.new.update(redis: @options, namespace: @namespace)),
                       strategy: config.strategy, pool_size: config.pool_size, pool_timeout: config.pool_timeout)
        end

        def connect
          options = @options.except(:driver)
          return Connection.new(::RedisClient.sentinel(**options).new_client) if options.key?(:sentinels)

          options[:url] ||= ENV["REDIS_URL"] if !ENV["REDIS_URL"].to_s.empty? && !options.key?(:host) && !options.key?(:path)
          Connection.new(::RedisClient.config(**options).new_client)
        end
      end

      # Makes pools.
      module RedisConnection
        # @param options [Hash] as {Config#redis=} takes them, and :size
        # @return [RedisPool]
        # @since 0.1.0
        def self.create(options = {}) = RedisPool.new(options)
      end
    end
  end
end
