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

        target = storage
        options = { strategy: config.strategy, pool_size: config.pool_size, pool_timeout: config.pool_timeout }
        build { @enqueuer ||= Enqueuer.new(target, **options) }
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
        @storage&.close
        @storage = nil
      end

      # What knows of open transactions: `after(pushes, enqueuer)` stores the jobs once they are committed, or returns false when
      # there is none.
      #
      # @return [#after, nil]
      # @api private
      attr_accessor :commits

      # @return [Boolean] whether it is the one that {enqueuer} returns now
      # @api private
      def own?(enqueuer) = enqueuer.equal?(@enqueuer)

      private

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
