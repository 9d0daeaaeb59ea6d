# frozen_string_literal: true

require_relative "enqueuer/attendance"
require_relative "enqueuer/delivery"
require_relative "enqueuer/batch"
require_relative "enqueuer/strands"
require_relative "enqueuer/threads"
require_relative "enqueuer/group_commit"
require_relative "enqueuer/pools"

module Ringspun
  module Jobs
    # Stores the jobs of any number of strands and threads at once. The strategies:
    #
    # - `:group_commit`: what callers want to push at the same time goes in one batch. Each waits until its job is stored.
    # - `:single`: one connection, which callers use one after the other.
    # - `:named_pool`: `pool_size` connections; each caller waits for one that is chosen at random.
    # - `:pool`: `pool_size` connections; each caller takes one that is free. They are served in order.
    #
    # In {Ringspun.run} a batch has what all strands have pushed that were ready to run; a strand that is the only one sends its
    # job itself. Elsewhere one thread sends the batches of all threads.
    #
    # **Cancellation** of a caller in group commit: until its batch is sent, a caller that is cancelled, or whose time is up,
    # takes its job out again. Later it leaves as well, and does not learn whether its job is stored, as it most likely is. With
    # the other strategies, and in a batch of its own, a call that is cut short closes its connection, and its job may be stored
    # or not.
    #
    # **A connection of the caller's** goes past all of that: its jobs are stored on it at once, by the caller itself, without
    # those of others and without a second attempt. In a storage that is a database they are part of its open transaction.
    #
    # A caller waits for its answer, so its jobs are stored in the order in which it has pushed them, and there are never more
    # jobs under way than callers.
    class Enqueuer
      STRATEGIES = { group_commit: GroupCommit, single: Single, named_pool: NamedPool, pool: Pool }.freeze
      private_constant :STRATEGIES

      # @return [Storage]
      # @since 0.1.0
      attr_reader :storage
      # @return [Symbol]
      # @since 0.1.0
      attr_reader :strategy

      # @param storage [Storage]
      # @param strategy [Symbol]
      # @param pool_size [Integer] connections of :named_pool and :pool
      # @param pool_timeout [Numeric] seconds that :pool waits for a connection
      # @raise [ConfigError]
      # @since 0.1.0
      def initialize(storage, strategy: :group_commit, pool_size: 5, pool_timeout: 5)
        kind = STRATEGIES.fetch(strategy) do
          raise ConfigError, "strategy must be one of #{STRATEGIES.keys.join(", ")}, got #{strategy.inspect}"
        end
        unless pool_size.is_a?(Integer) && pool_size.positive?
          raise ConfigError, "pool_size must be a positive integer, got #{pool_size.inspect}"
        end

        seconds = Seconds.of(pool_timeout)
        raise ConfigError, "pool_timeout must be a number of seconds, got #{pool_timeout.inspect}" unless seconds

        @storage = storage
        @strategy = strategy
        @delivery = Delivery.new(storage)
        @way = kind.new(@delivery, pool_size: pool_size, pool_timeout: [seconds, 0].max)
        @probe = Thread::Mutex.new
        @closed = false
      end

      # Stores one job. May switch strands.
      #
      # @param push [Storage::Push]
      # @param connection [Object, nil] one that the storage takes as `connection:`
      # @return [String, nil] its jid; nil when another job holds its lock
      # @raise [UnavailableError] several attempts have not reached the storage; the job is not stored
      # @raise [UnknownOutcomeError] no answer came; the job may be stored
      # @raise [StorageError] the storage has refused
      # @raise [PoolTimeoutError]
      # @raise [UsageError] in a signal handler; or the connection is none of the storage's
      # @since 0.1.0
      def push(push, connection: nil)
        refuse_what_cannot_be
        answer = connection ? @storage.push([push], connection: connection)&.first : @way.push(push)
        case answer
        when nil then push.jid
        when Exception then raise_copy(answer)
        end
      end

      # Stores jobs in one call of the storage. May switch strands.
      #
      # @param pushes [Array<Storage::Push>]
      # @param connection (see #push)
      # @return [Array<String, Error, nil>] for each its jid; nil when another job holds its lock; or why it is not stored
      # @raise (see #push)
      # @since 0.1.0
      def push_all(pushes, connection: nil)
        refuse_what_cannot_be
        return [] if pushes.empty?

        answers = connection ? @storage.push(pushes, connection: connection) : @way.push_all(pushes)
        case answers
        when nil then pushes.map(&:jid)
        when Exception then raise_copy(answers)
        else pushes.zip(answers).map { |push, answer| answer ? (answer unless answer.is_a?(String)) : push.jid }
        end
      end

      # Waits until all jobs under way are answered, ends the thread, and closes the enqueuer's own connections, also in a strand
      # that is cancelled. The storage stays open.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def close
        @closed = true
        Shielded.call do
          @delivery.attendance&.close
          @way.close
        end
        nil
      end

      # @return [Boolean]
      # @since 0.1.0
      def closed? = @closed

      # Has it said, once in a process, that jobs wait and no worker runs.
      #
      # @yieldparam text [String]
      # @return [nil]
      # @api private
      def attend(&)
        @delivery.attendance = Attendance.new(@storage, &)
        nil
      end

      # @return [Attendance, nil]
      # @api private
      def attendance = @delivery.attendance

      private

      # CRuby allows no lock in a signal handler, which may also have interrupted this enqueuer:
      # https://docs.ruby-lang.org/en/master/signals_rdoc.html
      def refuse_what_cannot_be
        @probe.lock.unlock
        raise ClosedError, "this enqueuer is closed" if @closed
      rescue ThreadError
        raise UsageError, "a signal handler cannot enqueue; let it wake a strand or a thread that does"
      end

      # Several callers may get the same error, each with its own backtrace.
      def raise_copy(error)
        raise error.is_a?(Error) ? error.class.new(error.message) : error, cause: error
      end
    end
  end
end
