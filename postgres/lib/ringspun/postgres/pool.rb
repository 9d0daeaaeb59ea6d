# frozen_string_literal: true

module Ringspun
  module Postgres
    # Connections to one database, for a whole process: strands of any machine, plain threads and other fiber schedulers. Nothing
    # connects before the first use.
    #
    # Statements that stand alone share a few connections, the lanes of each machine: all that strands ask for in one tick goes
    # out together. Transactions, sessions and streams have a connection each, of which there are `max` at most.
    #
    # @since 0.1.0
    class Pool
      include Client

      # @api private
      attr_reader :config, :canceller, :opener, :connections

      # What counts where neither an option nor the URI says it.
      DEFAULTS = { lanes: 2, max: 10, min: 0, timeout: nil, checkout_timeout: 5, max_lifetime: 3600, statement_cache: 256,
                   pipelining: nil }.freeze
      private_constant :DEFAULTS

      # Options that are nil are as if left out. The URI may have them as well, but for `types`: `?pool_max=20`.
      #
      # @param source [String, nil] a URI, postgres://user@host:port/database?option=value; nil: as libpq's environment says
      # @param lanes [Integer, nil] 1 to 4 shared connections a machine; 2 unless told
      # @param max [Integer, nil] connections for one user at a time, over all machines of the process; 10
      # @param min [Integer, nil] how many of these are opened with the first use in a run, and stay when nobody uses them.
      #   Others are closed after five minutes without use, when another is given back
      # @param timeout [Numeric, nil] seconds for each call that names none, also of sessions and transactions
      # @param checkout_timeout [Numeric, nil] seconds until {PoolTimeoutError} is raised when all connections are in use; for
      #   a statement that stands alone only those count in which no caller that waits gets one; 5
      # @param max_lifetime [Numeric, nil] seconds after which a connection is not used again, give or take a tenth; 3600
      # @param statement_cache [Integer, nil] statements that a connection knows by name; 0: none; 256
      # @param pipelining [Boolean, nil] false: one statement at a time on a connection, for poolers that lose what comes behind
      #   the first; nil: so it is for hosts that are known to, and a warning says so
      # @param types [Hash{Integer, String, Symbol => #call}] what values of some types become, by the OID or the name of the
      #   type: it is called with the text of a value, in any thread, and also for elements of arrays
      # @param on_statement [#call, nil] gets an {Execution} for each statement, when its caller gets the answer, in its
      #   strand or thread
      # @param on_notice [#call, nil] gets each {Notice} of the server, likewise
      # @param log [Logger, nil] is warned of statements that take long
      # @param log_slower_than [Numeric, nil] seconds from which on that is; 1 unless told, and 0 for all statements
      # @param options [Hash{Symbol => Object}] what a URI has, by libpq's names: host, port, user, password, sslmode, ...
      # @raise [UsageError]
      # @since 0.1.0
      def initialize(source = nil, lanes: nil, max: nil, min: nil, timeout: nil, checkout_timeout: nil, max_lifetime: nil,
                     statement_cache: nil, pipelining: nil, types: {}, on_statement: nil, on_notice: nil, log: nil,
                     log_slower_than: nil, **options)
        raise UsageError, "a client of Postgres can only be made in the main ractor" unless Ractor.current == Ractor.main

        options = Options.new(source, **options)
        told = { lanes:, max:, min:, timeout:, checkout_timeout:, max_lifetime:, statement_cache:, pipelining: }.compact
        of_uri = options.of_pool
        log_slower_than ||= of_uri[:log_slower_than]
        @observers = Observers.of(options, on_statement:, on_notice:, log:, log_slower_than:)
        @config = Config.new(options:, types: Types.new(types), observers: @observers, **DEFAULTS,
                             **of_uri.except(:log_slower_than), **told)
        @beginning = ShortLock.new
        @closed = false
        start_anew
      end

      # @api private
      # As Ractor.new does.
      def initialize_copy(_)
        raise UsageError, "a client of Postgres cannot be copied, and other ractors than the main one cannot use it"
      end

      # Runs the block with a connection of its own. See {Session}.
      #
      # @param timeout [Numeric, nil] seconds to wait for one
      # @param on_notice [#call, nil] gets the notices of this session, in place of that of the pool
      # @yieldparam session [Session]
      # @return [Object] the block's value
      # @since 0.1.0
      def session(timeout: nil, on_notice: nil)
        raise UsageError, "session needs a block" unless block_given?

        own(timeout, reset: true, observers: observers_with(on_notice)) { |session, _| yield session }
      end

      # Runs the block in a transaction on a connection of its own.
      #
      # @param (see Session#transaction)
      # @param on_notice [#call, nil] gets the notices of this transaction, in place of that of the pool
      # @yieldparam (see Session#transaction)
      # @return (see Session#transaction)
      # @raise (see Session#transaction)
      # @since 0.1.0
      def transaction(timeout: nil, on_notice: nil, **options, &block)
        Transaction.check(**options, &block) unless options.empty? && block
        own(timeout, observers: observers_with(on_notice)) do |session, left|
          session.transaction(timeout: left, **options, &block)
        end
      end

      # Listens to channels of the database, with one connection for all subscriptions of the pool. What is notified after this
      # has returned, or the block has begun, is not missed; where something may be missing, because the connection was lost, a
      # {Notification} says so that is a gap.
      #
      # A queue that is full is the subscriber's own affair, unless its policy is :wait: then all subscriptions of the pool wait
      # until it has room, and the server keeps what is notified.
      #
      # May switch strands.
      #
      # @param channels [Array<String, Symbol>] at least one; case counts
      # @param queue [Integer] how many notifications wait for the subscriber at most
      # @param policy [:close, :drop_oldest, :wait] what happens when there are more: the subscription ends with
      #   {SubscriptionOverflow}, the oldest is dropped, or the connection is not read
      # @param timeout [Numeric, nil] seconds until the server must listen
      # @yieldparam subscription [Subscription] which is closed when the block is left
      # @return [Object, Subscription] the block's value; without a block the subscription, which its user closes
      # @raise [UsageError]
      # @raise [ListenUnsupported] a pooler keeps notifications back
      # @raise [TimeoutError]
      # @since 0.1.0
      def listen(*channels, queue: 1000, policy: :close, timeout: nil, &)
        raise UsageError, "listen needs the name of a channel" if channels.empty?

        names = channels.map { |channel| Notifying.channel(channel).dup.freeze }.uniq.freeze
        take = -> { hub.then { |hub| hub.add(Subscription.new(hub, names, queue, policy), limit(timeout)) } }
        block_given? ? Postgres.with_taken(take, :close.to_proc, &) : take.call
      end

      # Closes all connections. What is under way is in doubt.
      #
      # @return [nil]
      # @since 0.1.0
      def close
        @closed = true
        return unless Process.pid == @pid

        Postgres.shield(nil) { Postgres.each_to_the_end(to_close, &:call) }
        nil
      end

      # @return [Boolean]
      # @since 0.1.0
      def closed? = @closed

      # @return [Hash{Symbol => Integer}] `connections` for one user at a time, `idle` of them, callers that are `waiting` for
      #   one; and since the pool was made: statements that were `held_up` by another one on a shared connection for more than
      #   20 ms, before they were sent, and `lock_waits`, those that have met a lock there and were run again on a connection of
      #   their own
      # @since 0.1.0
      def metrics = @connections.metrics.merge(@config.sharing.metrics)

      # Never shows a password.
      #
      # @return [String]
      def inspect = "#<#{self.class} #{@config.options.hosts.join(",")} #{@config.options.database}#{" closed" if @closed}>"

      private

      # @return [Array<Proc>]
      def to_close
        parts = [@opener, @canceller, @connections, @hub, @courier].compact.map { |part| part.method(:close) }
        left = @connections.method(:close_reclaimed) # what its users have left meanwhile
        lanes = -> { Postgres.each_to_the_end(@beginning.synchronize { @lanes.values }, &:close) }
        [*parts, left, lanes, -> { @observers&.tell_late }]
      end

      def run(sql, params, timeout, prepared, idempotent)
        return ask(sql, Lane.encode(params), timeout, prepared, idempotent) unless @observers

        @observers.observe(:query, [sql]) { ask(sql, Lane.encode(params), timeout, prepared, idempotent) }
      end

      def ask(sql, params, timeout, prepared, idempotent)
        result = place.query(sql, params, limit(timeout), prepared, idempotent)
        Lane.complete?(result) ? result : complete(result, timeout)
      rescue UnknownTypes => error
        learn(error.oids, timeout)
        retry
      end

      def run_batch(sqls, params, timeout)
        return ask_batch(sqls, encoded(params), timeout) unless @observers

        @observers.observe(:batch, sqls) { ask_batch(sqls, encoded(params), timeout) }
      end

      def ask_batch(sqls, params, timeout)
        place.batch(sqls, params, limit(timeout)).each { |result| complete(result, timeout) unless Lane.complete?(result) }
      rescue UnknownTypes => error
        learn(error.oids, timeout)
        retry
      end

      def types = @config.types

      def look_up(sql, params, timeout) = place.query(sql, params, limit(timeout), false, true)

      def run_stream(sql, params, timeout, prepared, form, &block)
        params = Lane.encode(params)
        Lane.check(sql, params)
        observed(:stream, sql) do |call|
          own(limit(timeout)) do |session, left|
            session.__send__(:stream_on_lane, sql, params, left, prepared, form, call, &block)
          end
        end
      end

      def run_script(sql, timeout)
        observed(:script, sql) do |call|
          own(limit(timeout), reset: true) do |session, left|
            session.__send__(:script_on_lane, sql, left, call).tap { session.__send__(:refuse_open_transaction) }
          end
        end
      end

      def observed(kind, sql, &) = @observers ? @observers.observe(kind, [sql], &) : yield(nil)

      # @return [Observers, nil] of a session or transaction
      def observers_with(on_notice)
        return @observers unless on_notice

        Observers.check(:on_notice, on_notice)
        @observers ? @observers.with_notices_to(on_notice) : Observers.new(@config.options.database, [], on_notice)
      end

      def run_copy_in(statement, source, timeout, progress, &block)
        observed(:copy, statement.sql) do |call|
          own(limit(timeout)) do |session, left|
            session.__send__(:copy_in_on_lane, statement, source, left, progress, call, &block)
          end
        end
      end

      def run_copy_out(statement, sink, form, timeout, progress, &block)
        observed(:copy, statement.sql) do |call|
          own(limit(timeout)) do |session, left|
            session.__send__(:copy_out_on_lane, statement, sink, form, left, progress, call, &block)
          end
        end
      end

      def limit(timeout) = timeout ? Postgres.seconds("timeout", timeout) : @config.timeout

      # @yieldparam session [Session] on a connection of its own
      # @yieldparam left [Float, nil] seconds of the timeout
      def own(timeout, reset: false, observers: @observers)
        timeout &&= Postgres.seconds("timeout", timeout)
        deadline = timeout && (Postgres.now + timeout)
        place.use(timeout, reset:) do |lane|
          lease = Lease.new
          session = Session.new(lane, lease, @config.timeout, self, observers)
          lane.observers = observers unless observers.equal?(@observers)
          yield session, deadline && [deadline - Postgres.now, 0].max
        ensure
          session&.__send__(:finish)
          end_lease(lease, lane) if lease
        end
      ensure
        observers&.tell_late
      end

      # Where a call of another strand or thread does not come to its end in time, the connection is closed, which ends the call.
      def end_lease(lease, lane)
        ended = lease.end
      ensure
        lane.close("the block that had it has ended, and what was begun there was not awaited") unless ended
      end

      # @return [Lanes, Courier] which serves the caller
      def place
        start_anew unless Process.pid == @pid
        refuse_closed if @closed

        scheduler = Fiber.current_scheduler
        return courier unless scheduler.is_a?(Scheduler) || (scheduler.nil? && Thread.current.equal?(Thread.main))

        machine = Machine.current
        known, lanes = @last
        return lanes if known.equal?(machine)

        lanes = lanes_of(machine)
        @last = [machine, lanes].freeze
        lanes
      end

      # What another thread has closed of this machine's: its descriptors are this one's to close.
      def refuse_closed
        if Machine.current?
          @connections.close_reclaimed
          @beginning.synchronize { @lanes[Machine.current] }&.close
        end
        raise ClosedError, "the pool is closed"
      end

      # Those of machines that have ended are closed where one is added: nothing tells of the end of a machine.
      def lanes_of(machine)
        gone = []
        @beginning.synchronize do
          next @lanes[machine] if @lanes[machine]
          raise ClosedError, "the pool is closed" if @closed

          @lanes.delete_if { |_, lanes| lanes.gone? && gone << lanes }
          @lanes[machine] = Lanes.new(self, machine)
        end
      ensure
        Postgres.each_to_the_end(gone, &:close)
      end

      def courier
        return @courier if @courier&.alive?

        @beginning.synchronize { @courier&.alive? ? @courier : @courier = Courier.new(self) }
      end

      def hub
        start_anew unless Process.pid == @pid
        raise ClosedError, "the pool is closed" if @closed

        @hub || @beginning.synchronize do
          simulated = Machine.current if Machine.current? && Machine.current.backend.name == :sim
          @hub ||= Hub.new(self, simulated, method(:courier))
        end
      end

      # What was open is the parent's, whose sockets a child leaves alone.
      def start_anew
        @beginning.synchronize do
          next if Process.pid == @pid

          @last = @courier = @hub = nil
          @lanes = {}.compare_by_identity # of each machine
          @canceller = Canceller.new(@config.options)
          @opener = Opener.new(@config.options)
          @connections = Connections.new(self)
          @pid = Process.pid
        end
      end
    end

    # What a {Pool} was made with.
    #
    # @api private
    Config = Data.define(:options, :lanes, :max, :min, :timeout, :checkout_timeout, :max_lifetime, :statement_cache,
                         :pipelining, :types, :observers, :sharing) do
      def initialize(options:, pipelining:, timeout:, checkout_timeout:, max_lifetime:, **rest)
        unless [true, false, nil].include?(pipelining)
          raise UsageError, "pipelining: expected true, false or nil, got #{pipelining.inspect}"
        end

        pipelining = Poolers.pipelining?(options) if pipelining.nil?
        super(options:, pipelining:, sharing: Sharing.new, timeout: timeout && more_than_zero(:timeout, timeout), **rest,
              checkout_timeout: more_than_zero(:checkout_timeout, checkout_timeout),
              max_lifetime: more_than_zero(:max_lifetime, max_lifetime))
        whole(:lanes, 1..4)
        whole(:max, 1..)
        whole(:min, 0..max)
        whole(:statement_cache, 0..)
      end

      private

      def whole(name, range)
        value = public_send(name)
        return if value.is_a?(Integer) && range.cover?(value)

        wanted = range.end ? "from #{range.begin} to #{range.end}" : "from #{range.begin} on"
        raise UsageError, "#{name}: expected a whole number #{wanted}, got #{value.inspect}"
      end

      def more_than_zero(name, value)
        number = Postgres.seconds(name, value)
        number.positive? ? number : raise(UsageError, "#{name}: must be more than 0 seconds, got #{value.inspect}")
      end
    end
    private_constant :Config
  end
end
