# frozen_string_literal: true

module Ringspun
  module Postgres
    # One connection, for as long as the block of {Pool#session} runs: for settings, temporary tables, advisory locks and whatever
    # else a session keeps. Afterwards the session is made anew (DISCARD ALL).
    #
    # When the block is left, what was begun with the session ends: a strand, a thread, an {Evaluation} or an Enumerator that goes
    # on with it gets {UsageError}, and its transaction is rolled back. A call that is under way by then is waited for, five
    # seconds at most, after which the connection is closed.
    #
    # @since 0.1.0
    class Session
      include Client

      # Seconds to wait for the rest of a stream that was left, before it is cancelled.
      DRAIN = 1
      private_constant :DRAIN

      # @api private
      # @param lane [Lane, Courier::Lane]
      # @param lease [Lease] for which it has the lane
      # @param timeout [Numeric, nil] seconds for each call that names none
      # @param pool [Pool] of other connections
      # @param observers [Observers, nil]
      # @param outer [Lease, Session] with which it ends
      def initialize(lane, lease, timeout, pool, observers, outer = lease)
        @lane = lane
        @lease = lease
        @calls = lease.calls
        @outer = outer
        @timeout = timeout
        @pool = pool
        @observers = observers
        @ended = false
      end

      # Runs the block in a transaction, which is committed when the block returns, and rolled back when it is left in any other
      # way: by an exception, `throw`, `break`, a cancellation, or the end of its strand.
      #
      # In a strand nobody waits for the BEGIN by itself. It leaves with the first statement of the block when that comes at
      # once, and otherwise when the strand waits for something. Where the server refuses it, the first statement raises its
      # error, all later ones and the end of the block raise {TransactionRolledBack}, and nothing is executed. With
      # `on_statement`, `on_notice` or `log` it is waited for.
      #
      # @param isolation [:read_committed, :repeatable_read, :serializable, nil] nil: as the server is set
      # @param read_only [Boolean, nil]
      # @param deferrable [Boolean, nil]
      # @param timeout [Numeric, nil] seconds for all of it, every `retry` included
      # @param options [Hash]
      # @option options [Integer] :retry how often the block is run again where the server could not serialize it (40001), or has
      #   ended a deadlock (40P01); 0 without it
      # @yieldparam transaction [Transaction]
      # @return [Object] the block's value
      # @raise [TransactionRolledBack] the server has rolled back what was to be committed
      # @raise [TimeoutError] the time is up; the transaction was not committed, unless it had come to its end
      # @since 0.1.0
      def transaction(isolation: nil, read_only: nil, deferrable: nil, timeout: nil, **options, &block)
        again = options.empty? ? 0 : Transaction.retries(**options)
        Transaction.check_block_and_retry(block, again)
        begin_sql = Transaction.begin_sql(isolation:, read_only:, deferrable:)
        deadline = timeout && (Postgres.now + Postgres.seconds("timeout", timeout))
        Transaction.again(again, deadline) do
          check
          transaction = Transaction.new(@lane, @lease, @timeout, @pool, @observers, self, 0, deadline)
          transaction.__send__(:enclose, begin_sql, "COMMIT", "ROLLBACK", nil, &block)
        end
      end

      # @api private
      # @return [Boolean] whether its block, or the block that it was begun in, has been left
      def over? = @ended || @outer.over?

      # @return [String]
      def inspect = "#<#{self.class}#{" ended" if over?}>"

      private

      def run(sql, params, timeout, prepared, _idempotent)
        return ask_one(sql, Lane.encode(params), timeout, prepared) unless @observers

        @observers.observe(:query, [sql], self) { ask_one(sql, Lane.encode(params), timeout, prepared) }
      end

      def ask_one(sql, params, timeout, prepared)
        result = ask { @lane.query(sql, params, limit(timeout), prepared, true) }
        Lane.complete?(result) ? result : complete(result, timeout)
      rescue UnknownTypes => error
        learn(error.oids, timeout)
        retry
      end

      def run_batch(sqls, params, timeout)
        return ask_batch(sqls, encoded(params), timeout) unless @observers

        @observers.observe(:batch, sqls, self) { ask_batch(sqls, encoded(params), timeout) }
      end

      def ask_batch(sqls, params, timeout)
        results = ask { @lane.batch(sqls, params, limit(timeout), true) }
        results.each { |result| complete(result, timeout) unless Lane.complete?(result) }
      rescue UnknownTypes => error
        learn(error.oids, timeout)
        retry
      end

      def types = @lane.types

      # On this connection, for the types may be of its own transaction.
      def look_up(sql, params, timeout) = ask { @lane.query(sql, params, limit(timeout), false, true) }

      def run_script(sql, timeout)
        return script_on_lane(sql, timeout, nil) unless @observers

        @observers.observe(:script, [sql], self) { |call| script_on_lane(sql, timeout, call) }
      end

      def run_stream(sql, params, timeout, prepared, form, &block)
        return stream_on_lane(sql, params, timeout, prepared, form, nil, &block) unless @observers

        @observers.observe(:stream, [sql], self) { |call| stream_on_lane(sql, params, timeout, prepared, form, call, &block) }
      end

      # @param part [Session] which must not have ended
      def ask(part = self)
        inside = @calls.push(true)
        check(part)
        asked = true
        taken = yield
        refuse_unreadable if taken == :unsafe
        taken.is_a?(Symbol) ? raise(Postgres.lost(@lane.loss, false)) : taken
      ensure
        leave(asked && !taken) if inside
      end

      def leave(unanswered)
        @lane.orphaned if unanswered && @lane.orphaned?
      ensure
        @lease.leave
      end

      # Goes on with what was asked.
      def go_on
        inside = @calls.push(true)
        check
        yield
      ensure
        @lease.leave if inside
      end

      # @param call [ObservedCall, nil]
      def script_on_lane(sql, timeout, call)
        results, seen = ask { @lane.script(sql, limit(timeout)) }
        call&.take(seen)
        results
      end

      def stream_on_lane(sql, params, timeout, prepared, form, call, &block)
        check
        timeout = limit(timeout)
        deadline = timeout && (Postgres.now + timeout)
        begin_stream(sql, Lane.encode(params), prepared, timeout)
        begun = asking = true
        call&.sent(@lane)
        while (rows = next_rows(deadline, call))
          asking = false
          complete_aside(rows, timeout) unless Lane.complete?(rows)
          yield_rows(rows, form, call, &block)
          rows.__send__(:release)
          asking = true
        end
      ensure
        leave_stream(asking) if begun
        give_notices(call) if begun && call
      end

      def next_rows(deadline, call)
        seconds = limit(deadline && [deadline - Postgres.now, 0].max)
        go_on { call ? call.waits { @lane.next_rows(seconds) } : @lane.next_rows(seconds) }
      end

      def yield_rows(rows, form, call, &block)
        return rows.__send__(form, &block) unless call

        call.decodes(block) { |each| rows.__send__(form, &each) }
      end

      # It would be rolled back without a word.
      def refuse_open_transaction
        return if @lane.status == "I"

        raise TransactionRolledBack, "the script has left a transaction open, and what that has done is rolled back: end it by " \
                                     "COMMIT"
      end

      # On another connection, for this one is in the midst of the stream.
      def complete_aside(rows, timeout)
        @pool.__send__(:complete, rows, timeout) unless alone?
      end

      # Whether statements of others would wait for a connection, as this stream has one.
      def alone? = @pool.nil? || !@pool.config.pipelining

      def begin_stream(sql, params, prepared, timeout)
        ask { @lane.begin_stream(sql, params, prepared, timeout, alone?) || true }
      rescue UnknownTypes => error
        learn(error.oids, timeout)
        retry
      end

      # What was asked for ahead is most often on its way, and the transaction, if there is one, goes on.
      def leave_stream(asking) = @lease.within { drain_stream(asking) }

      def drain_stream(asking)
        @lane.end_stream
        Postgres.shield(DRAIN) { @lane.ping(DRAIN) } unless asking || @lane.lost?
      rescue Ringspun::Error
        nil # the server still works on it
      ensure
        @lane.orphaned if @lane.orphaned?
      end

      # Those for which there was no answer to come with.
      #
      # @param call [ObservedCall]
      def give_notices(call) = @lease.within { call.take_notices(@lane) }

      def refuse_unreadable
        raise UnsafeSessionState, "this statement has set #{@lane.unreadable_setting}, with which values would be read " \
                                  "wrongly; the connection is closed, and a transaction rolled back. client_encoding " \
                                  "stays UTF8, DateStyle ISO, and IntervalStyle iso_8601"
      end

      def limit(timeout) = timeout ? Postgres.seconds("timeout", timeout) : @timeout

      # The connection is that of a machine, which no other thread can ask.
      def check(part = self)
        refuse_ended if part.over?
        return if @lane.here?

        raise UsageError, "this #{kind} belongs to the thread in which it began, and to the strands of that; what another " \
                          "thread has to ask, ask the pool for it"
      end

      def refuse_ended
        with = " with what it was begun in" unless @ended
        raise UsageError, "this #{kind} has ended#{with}; use it inside of its block only, and await there what you begin with it"
      end

      def kind = self.class.name[/\w+\z/].downcase

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
        def check(isolation: nil, read_only: nil, deferrable: nil, **options, &block)
          check_block_and_retry(block, retries(**options))
          begin_sql(isolation:, read_only:, deferrable:)
        end

        # @api private
        # Of a word of Ruby's, which only a binding has, and that is dear.
        def retries(retry: 0) = binding.local_variable_get(:retry)

        # @api private
        # @raise [UsageError]
        def check_block_and_retry(block, retries)
          raise UsageError, "transaction needs a block" unless block
          return if retries.is_a?(Integer) && !retries.negative?

          raise UsageError, "retry: expected how often, from 0 on, got #{retries.inspect}"
        end

        # @api private
        def begin_sql(isolation:, read_only:, deferrable:)
          return "BEGIN" if isolation.nil? && read_only.nil? && deferrable.nil?

          modes = [isolation && "ISOLATION LEVEL #{level(isolation)}",
                   mode("read_only", read_only, "READ ONLY", "READ WRITE"),
                   mode("deferrable", deferrable, "DEFERRABLE", "NOT DEFERRABLE")]
          "BEGIN #{modes.compact.join(", ")}"
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
            # Here it is known how often it was tried.
            if deadline && Postgres.now + pause >= deadline
              raise Postgres.late("the time is up, and the transaction was not committed (attempts: #{attempt})", false)
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

        check
        name = "ringspun_#{@depth + 1}"
        inner = self.class.new(@lane, @lease, @timeout, @pool, @observers, self, @depth + 1, @deadline)
        inner.__send__(:enclose, "SAVEPOINT #{name}", "RELEASE #{name}", "ROLLBACK TO #{name}", timeout, &block)
      end

      # @api private
      def initialize(lane, lease, timeout, pool, observers, outer, depth, deadline)
        super(lane, lease, timeout, pool, observers, outer)
        @depth = depth
        @deadline = deadline
      end

      private

      def enclose(before, after, back, timeout)
        @deadline = [@deadline, Postgres.now + Postgres.seconds("timeout", timeout)].compact.min if timeout
        begin_by(before)
        @lease.within { @lane.enclosed = true }
        value = yield self
        finish # or what others ask from here on would come behind the COMMIT
        conclude(after)
        returned = true
        value
      ensure
        finish
        wind_up(back, returned) unless @outer.over?
      end

      # The lease hears of what asks the lane, and not of the hooks that a ROLLBACK has: they may wait, and ask the pool.
      def wind_up(back, returned)
        @lease.within { @lane.enclosed = @depth.positive? && @begun }
        return if returned

        roll_back(back) if @begun
        @lease.within { @lane.forget_opening } if @depth.zero?
      end

      def run_script(sql, timeout)
        Script.refuse_ends(sql)
        super
      end

      def begin_by(sql)
        begun = @depth.zero? # a BEGIN may arrive although nobody has waited for its answer
        # Who observes is told how long each has taken.
        begun && !@observers ? send_begin(sql) : run(sql, [], nil, false, false)
        begun = true
      rescue UsageError # nothing was sent, as in the midst of a stream
        begun = false
        raise
      ensure
        @begun = begun
      end

      # It leaves with the first statement, where that comes at once. What that waits for tells whether there is a transaction.
      def send_begin(sql) = ask { @lane.open_transaction(sql, limit(nil)) || true }

      def conclude(sql)
        tag = observed(sql) { ask_end(sql) }.tag
        raise_rolled_back if @depth.zero? && tag == "ROLLBACK"
      rescue InFailedTransaction
        raise_rolled_back
      end

      def ask_end(sql)
        ask(@outer) do
          @lane.enclosed = @depth.positive?
          @lane.query(sql, [], limit(nil), false, true)
        end
      end

      def raise_rolled_back
        raise TransactionRolledBack, "what the block has done is rolled back, because one of its statements had failed"
      end

      # At once, for the session and the outer transaction go on. Where that fails the connection is closed: or they might commit
      # what is to be taken back.
      def roll_back(sql)
        return unless @lease.within { !(@lane.lost? || (@lane.status == "I" && @lane.pending.zero?)) }

        Postgres.shield(ROLL_BACK) do
          observed(sql) { @lease.within { @lane.query(sql, [], ROLL_BACK, false, true) } || refuse_ended }
        end
      rescue Exception => error
        @lease.within { @lane.close("a transaction could not be rolled back") }
        raise unless error.is_a?(StandardError)
      end

      def observed(sql, &) = @observers ? @observers.observe(:query, [sql], self, &) : yield

      def limit(timeout)
        own = timeout ? Postgres.seconds("timeout", timeout) : @timeout
        return own unless @deadline

        left = [@deadline - Postgres.now, 0].max
        own && own < left ? own : left
      end
    end
  end
end
