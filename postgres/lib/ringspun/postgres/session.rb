# frozen_string_literal: true

module Ringspun
  module Postgres
    # One connection, for as long as the block of {Pool#session} runs: for settings, temporary tables, advisory locks and whatever
    # else a session keeps. Afterwards the session is made anew (DISCARD ALL).
    #
    # @since 0.1.0
    class Session
      include Client

      # Seconds to wait for the rest of a stream that was left, before it is cancelled.
      DRAIN = 1
      private_constant :DRAIN

      # @api private
      # @param lane [Lane, Courier::Lane]
      # @param timeout [Numeric, nil] seconds for each call that names none
      def initialize(lane, timeout)
        @lane = lane
        @timeout = timeout
        @ended = false
      end

      # Runs the block in a transaction, which is committed when the block returns, and rolled back when it is left in any other
      # way: by an exception, `throw`, `break`, a cancellation, or the end of its strand.
      #
      # @param isolation [:read_committed, :repeatable_read, :serializable, nil] nil: as the server is set
      # @param read_only [Boolean, nil]
      # @param deferrable [Boolean, nil]
      # @param timeout [Numeric, nil] seconds for all of it, every `retry` included
      # @param retry [Integer] how often the block is run again where the server could not serialize it (40001), or has ended a
      #   deadlock (40P01)
      # @yieldparam transaction [Transaction]
      # @return [Object] the block's value
      # @raise [TransactionRolledBack] the server has rolled back what was to be committed
      # @raise [TimeoutError] the time is up; the transaction was not committed, unless it had come to its end
      # @since 0.1.0
      def transaction(isolation: nil, read_only: nil, deferrable: nil, timeout: nil, retry: 0, &block)
        again = binding.local_variable_get(:retry)
        Transaction.check(isolation:, read_only:, deferrable:, retry: again, &block)
        begin_sql = Transaction.begin_sql(isolation:, read_only:, deferrable:)
        deadline = timeout && (Postgres.now + Postgres.seconds("timeout", timeout))
        Transaction.again(again, deadline) do
          Transaction.new(@lane, @timeout, 0, deadline).__send__(:enclose, begin_sql, "COMMIT", "ROLLBACK", nil, &block)
        end
      end

      # @return [String]
      def inspect = "#<#{self.class}#{" ended" if @ended}>"

      private

      def run(sql, params, timeout, prepared, _idempotent)
        ask { @lane.query(sql, params, limit(timeout), prepared, true) }
      end

      def run_batch(sqls, params, timeout) = ask { @lane.batch(sqls, params, limit(timeout), true) }

      def ask
        check
        taken = yield
        taken.is_a?(Symbol) ? raise(Postgres.lost(@lane.loss, false)) : taken
      ensure
        @lane.orphaned if !taken && @lane.orphaned?
      end

      def run_stream(sql, params, timeout, prepared)
        check
        timeout = limit(timeout)
        deadline = timeout && (Postgres.now + timeout)
        taken = @lane.begin_stream(sql, params, prepared)
        raise Postgres.lost(@lane.loss, false) if taken

        begun = asking = true
        while (rows = @lane.next_rows(limit(deadline && [deadline - Postgres.now, 0].max)))
          asking = false
          yield rows
          rows.__send__(:release)
          asking = true
        end
      ensure
        leave_stream(asking) if begun
      end

      # What was asked for ahead is most often on its way, and the transaction, if there is one, goes on.
      def leave_stream(asking)
        @lane.end_stream
        Postgres.shield(DRAIN) { @lane.ping(DRAIN) } unless asking || @lane.lost?
      rescue Ringspun::Error
        nil # the server still works on it
      ensure
        @lane.orphaned if @lane.orphaned?
      end

      def limit(timeout) = timeout ? Postgres.seconds("timeout", timeout) : @timeout

      def check
        raise UsageError, "this #{self.class.name[/\w+\z/].downcase} has ended; use it inside of its block only" if @ended
      end

      def finish = @ended = true
    end

    # A transaction, for as long as its block runs. See {Session#transaction}.
    #
    # @since 0.1.0
    class Transaction < Session
      ISOLATION = { read_committed: "READ COMMITTED", repeatable_read: "REPEATABLE READ", serializable: "SERIALIZABLE" }.freeze
      private_constant :ISOLATION

      # Seconds before the first retry at most, doubled for each further one.
      BACK_OFF = 0.01

      # Seconds for a transaction or savepoint to be rolled back.
      ROLL_BACK = 5
      private_constant :BACK_OFF, :ROLL_BACK

      class << self
        # @api private
        # @raise [UsageError]
        def check(isolation: nil, read_only: nil, deferrable: nil, retry: 0, &block)
          raise UsageError, "transaction needs a block" unless block

          begin_sql(isolation:, read_only:, deferrable:)
          retries = binding.local_variable_get(:retry)
          return if retries.is_a?(Integer) && !retries.negative?

          raise UsageError, "retry: expected how often, from 0 on, got #{retries.inspect}"
        end

        # @api private
        def begin_sql(isolation:, read_only:, deferrable:)
          modes = [isolation && "ISOLATION LEVEL #{level(isolation)}",
                   mode("read_only", read_only, "READ ONLY", "READ WRITE"),
                   mode("deferrable", deferrable, "DEFERRABLE", "NOT DEFERRABLE")]
          ["BEGIN", modes.compact.join(", ")].reject(&:empty?).join(" ")
        end

        # @api private
        # @param deadline [Float, nil] of all attempts together
        def again(retries, deadline)
          attempt = 0
          begin
            attempt += 1
            yield
          rescue SerializationFailure, DeadlockDetected
            raise if attempt > retries

            pause = rand * BACK_OFF * (2**(attempt - 1))
            # Without this every attempt might run: a statement with no time left may still be answered.
            if deadline && Postgres.now + pause >= deadline
              raise TimeoutError, "the time is up, and the transaction was not committed (attempts: #{attempt})"
            end

            sleep(pause)
            retry
          end
        end

        private

        def level(isolation)
          ISOLATION[isolation] || raise(UsageError, "isolation: expected one of #{ISOLATION.keys.map(&:inspect).join(", ")}, " \
                                                    "got #{isolation.inspect}")
        end

        def mode(name, wanted, yes, no)
          { nil => nil, true => yes, false => no }.fetch(wanted) do
            raise UsageError, "#{name}: expected true, false or nil, got #{wanted.inspect}"
          end
        end
      end

      # Runs the block in a savepoint: what it has done is taken back when it is left by other than returning, and the transaction
      # goes on.
      #
      # @param join [Boolean] without a savepoint: as a part of this transaction
      # @param timeout [Numeric, nil] seconds for all of it
      # @yieldparam transaction [Transaction]
      # @return [Object] the block's value
      # @raise [UsageError] for `retry`, `isolation`, ...: they are for the outermost
      # @since 0.1.0
      def transaction(join: false, timeout: nil, **others, &block)
        unless others.empty?
          raise UsageError, "#{others.keys.join(", ")}: for the outermost transaction only; inside there are " \
                            "join: and timeout:"
        end
        raise UsageError, "transaction needs a block" unless block
        return yield(self) if join

        name = "ringspun_#{@depth + 1}"
        inner = self.class.new(@lane, @timeout, @depth + 1, @deadline)
        inner.__send__(:enclose, "SAVEPOINT #{name}", "RELEASE #{name}", "ROLLBACK TO #{name}", timeout, &block)
      end

      # @api private
      def initialize(lane, timeout, depth = 0, deadline = nil)
        super(lane, timeout)
        @depth = depth
        @deadline = deadline
      end

      private

      def enclose(before, after, back, timeout)
        @deadline = [@deadline, timeout && (Postgres.now + Postgres.seconds("timeout", timeout))].compact.min
        begin_by(before)
        value = yield self
        conclude(after)
        returned = true
        value
      ensure
        roll_back(back) if @begun && !returned
        finish
      end

      def begin_by(sql)
        begun = @depth.zero? # a BEGIN may arrive although nobody has waited for its answer
        run(sql, [], nil, false, false)
        begun = true
      rescue UsageError # nothing was sent, as in the midst of a stream
        begun = false
        raise
      ensure
        @begun = begun
      end

      def conclude(sql)
        tag = run(sql, [], nil, false, false).tag
        raise_rolled_back if @depth.zero? && tag == "ROLLBACK"
      rescue InFailedTransaction
        raise_rolled_back
      end

      def raise_rolled_back
        raise TransactionRolledBack, "what the block has done is rolled back, because one of its statements had failed"
      end

      # At once, for the session and the outer transaction go on. Where that fails the connection is closed: or they might commit
      # what is to be taken back.
      def roll_back(sql)
        return if @lane.lost? || (@lane.status == "I" && @lane.pending.zero?)

        Postgres.shield(ROLL_BACK) { @lane.query(sql, [], ROLL_BACK, false, true) }
      rescue Exception => error
        @lane.close("a transaction could not be rolled back")
        raise unless error.is_a?(StandardError)
      end

      def limit(timeout)
        left = @deadline && [@deadline - Postgres.now, 0].max
        [super, left].compact.min
      end
    end
  end
end
