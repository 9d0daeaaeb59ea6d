# frozen_string_literal: true

# The config, storage and enqueuer of a process.

module Ringspun
  module Jobs
    @building = Thread::Mutex.new

    class << self
      # @return [Config] this process's
      # @since 0.1.0
      def config = @config ||= Config.new

      # Changes the settings. Closes what was made from the old ones; it is made anew when it is next used.
      #
      # May switch strands.
      #
      # @yieldparam config [Config]
      # @return [Config]
      # @since 0.1.0
      def configure
        raise ConfigError, "configure needs a block, which gets the settings" unless block_given?

        yield config
        close
        config
      end

      # @return [Storage] of this process's jobs, as the settings say
      # @since 0.1.0
      def storage
        @storage || build { @storage ||= Storage.for(config) }
      end

      # Changes the setting {Config#storage}, and closes the storage before. May switch strands.
      #
      # @param storage [Symbol, String, Hash, Storage, nil]
      # @raise [ConfigError]
      # @since 0.1.0
      def storage=(storage)
        configure { |config| config.storage = storage }
      end

      # @return [Enqueuer] this process's
      # @since 0.1.0
      def enqueuer
        return @enqueuer if @enqueuer

        introduce(target = storage)
        options = { strategy: config.strategy, pool_size: config.pool_size, pool_timeout: config.pool_timeout }
        build { @enqueuer ||= attended(Enqueuer.new(target, **options)) }
      end

      # Waits until all jobs that are being enqueued are answered, and closes connections. They are made anew when they are next
      # used.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def close
        enqueuer = @enqueuer
        @client = @enqueuer = nil
        enqueuer&.close
      ensure
        storage, @storage = @storage, nil
        storage&.close
      end

      # Says in the log where jobs are kept, once for each place; of one that nobody has named also where there is no log.
      #
      # @param storage [Storage]
      # @param also_named [Boolean] whether it is said also of one that a setting has named
      # @return [nil]
      # @api private
      def introduce(storage, also_named: true)
        identity = storage.identity
        first = build { @introduced != identity && (@introduced = identity) }
        return unless first

        unnamed = Storage.unnamed?(config)
        return unless unnamed || also_named

        config.tell(:info, "jobs are kept in #{identity}#{", for nothing says where" if unnamed}", aloud: unnamed)
        nil
      end

      # What knows of open transactions: `after(pushes, enqueuer)` stores the jobs once they are committed, or returns false when
      # there is none; `open_transaction(enqueuer)` is the connection of one that is open where the enqueuer stores, and
      # `only_transaction(enqueuer)` the same where none is open elsewhere.
      #
      # @return [#after, #open_transaction, #only_transaction, nil]
      # @api private
      attr_accessor :commits

      # @return [Boolean] whether it is the one that {enqueuer} returns now
      # @api private
      def own?(enqueuer) = enqueuer.equal?(@enqueuer)

      private

      # In tests nobody runs a worker.
      def attended(enqueuer)
        enqueuer.attend { |text| config.tell(:warn, text) } if enqueuer.storage.shared? && !Home.test?
        enqueuer
      end

      def build(&)
        @building.synchronize(&)
      rescue ThreadError
        raise UsageError, "a signal handler cannot enqueue; let it wake a strand or a thread that does"
      end
    end
  end
end

# Ruby kills the other threads when it ends: the jobs that they enqueue are stored first.
at_exit { Ringspun::Jobs.close }
