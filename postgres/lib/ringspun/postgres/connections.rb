# frozen_string_literal: true

module Ringspun
  module Postgres
    # The connections of a process that one user at a time has: for transactions, sessions and streams. A connection belongs to
    # the machine that has opened it; how many there are is counted over all machines.
    #
    # Who waits is served in order. A connection that is given back goes to the first who waits; one of another machine is closed
    # for it, and the first may open its own.
    #
    # @api private
    class Connections
      # Seconds for what a connection must do before the next user gets it.
      SETTLE = 5

      # Who has a connection, where it was asked for, and since when.
      Holder = Data.define(:who, :where, :since) do
        def to_s = "#{who} for #{format("%.1f", Postgres.now - since)} s, at #{where}"
      end

      Waiter = Data.define(:machine, :gate)

      # One that nobody uses.
      Idle = Data.define(:lane, :machine, :since)
      private_constant :Idle, :Waiter

      def initialize(pool)
        @pool = pool
        @config = pool.config
        @lock = Thread::Mutex.new
        @idle = [] # the last that was given back comes last, and is taken first
        @waiters = []
        @holders = {}.compare_by_identity
        @ends = {}.compare_by_identity # when a connection has lived long enough
        @count = 0
        @closed = false
      end

      # @return [Array] who asks, and where: for {Holder}
      def self.asker
        where = caller_locations(2).find { |location| !location.path.start_with?(__dir__) }
        [Fiber.current_scheduler ? Machine.current.running.inspect : Thread.current.inspect, where]
      end

      # May switch strands.
      #
      # @param timeout [Numeric, nil] seconds until there is one, of which no more than `checkout_timeout` are spent on waiting
      #   for a connection that others have
      # @param reset [Boolean] the session is made anew afterwards
      def use(timeout, reset: false, &)
        asker = Connections.asker
        Postgres.with_taken(-> { acquire(timeout, asker) }, ->(lane) { release(lane, reset) }, &)
      end

      # @param left [Numeric, nil] seconds to open one
      # @return [Object, :none] of the block; :none: there is no connection free
      def try_use(left)
        lane = acquire_now(Machine.current, left) or return :none
        begin
          yield lane
        ensure
          release(lane, false)
        end
      end

      # @param asker [Array] of {Connections.asker}
      # @return [Lane]
      def acquire(timeout, asker)
        machine = Machine.current
        deadline = timeout && (machine.now + timeout)
        loop do
          got = take(machine)
          got = await(got, timeout, left(deadline)) if got.is_a?(Waiter)
          lane = prepare(got, left(deadline)) and return hold(lane, asker)
        end
      end

      # It may not raise: what fails here closes the connection.
      def release(lane, reset)
        @lock.synchronize { @holders.delete(lane) }
        settle(lane, reset) ? give_back(lane) : give_up(lane)
      end

      # One whose machine has ended. From any thread.
      def write_off(lane)
        held = @lock.synchronize { @holders.delete(lane) }
        give_up(lane) if held
      end

      # Nobody gets one any more.
      def close
        @lock.synchronize do
          @closed = true
          @waiters.each { |waiter| waiter.gate.close }.clear
        end
        close_own
        @lock.synchronize { @idle.each { |idle| abandon(idle) }.clear }
      end

      # Those of this machine that nobody uses.
      def close_own
        machine = Machine.current
        own = @lock.synchronize do
          mine, @idle = @idle.partition { |idle| idle.machine.equal?(machine) }
          mine
        end
        own.each { |idle| give_up(idle.lane) }
      end

      def metrics = @lock.synchronize { { connections: @count, idle: @idle.size, waiting: @waiters.size } }

      private

      # --- getting one ---

      # @return [Lane, :permit, Waiter] :permit: to open one
      def take(machine)
        @lock.synchronize do
          raise ClosedError, "the pool is closed" if @closed

          found = @idle.rindex { |each| each.machine.equal?(machine) }
          next @idle.delete_at(found).lane if found
          next grant if @count < @config.max
          next abandon(@idle.shift) unless @idle.empty?

          Waiter.new(machine, Channel.new(1)).tap { |waiter| @waiters << waiter }
        end
      end

      def grant
        @count += 1
        :permit
      end

      def left(deadline) = deadline && [deadline - Machine.current.now, 0].max

      def acquire_now(machine, left)
        got = take(machine)
        if got.is_a?(Waiter)
          @lock.synchronize { @waiters.delete(got) }
          got = got.gate.try_pop or return
        end
        lane = prepare(got, left) and hold(lane, Connections.asker)
      end

      def await(waiter, timeout, left)
        seconds = [timeout, @config.checkout_timeout].compact.min
        got = waiter.gate.pop(timeout: [left, seconds].compact.min)
        raise got.exception(got.message) if got.is_a?(Exception)
        return got if got
        raise ClosedError, "the pool is closed" if waiter.gate.closed?

        raise PoolTimeoutError, exhausted(seconds)
      ensure
        leave(waiter) unless got
      end

      # What was handed over while it left goes to the next.
      def leave(waiter)
        @lock.synchronize { @waiters.delete(waiter) }
        case got = waiter.gate.try_pop
        when :permit then forget
        when Lane then give_back(got)
        end
      end

      def exhausted(seconds)
        holders, opening = @lock.synchronize { [@holders.values, @count - @holders.size - @idle.size] }
        holders << "#{opening} being opened or given back#{@pool.opener.last_try}" if opening.positive?
        "no connection within #{seconds} s: all #{@config.max} are in use (max: #{@config.max}).\n#{holders.join("\n")}"
      end

      # @param got [Lane, :permit]
      # @return [Lane, nil] nil: it had died while nobody used it
      def prepare(got, left)
        return open_within(left) if got == :permit
        return got if !too_old?(got) && (got.quiet_for < 1 || got.ping([left, SETTLE].compact.min))

        give_up(got)
      rescue Exception
        got == :permit ? forget : give_up(got)
        raise
      end

      def open_within(left)
        return open unless left

        own = nil
        begin
          Machine.current.timeout(left) do
            open
          rescue Ringspun::TimeoutError => own
            raise
          end
        rescue Ringspun::TimeoutError
          raise own || @pool.opener.late
        end
      end

      def open
        lane = @pool.opener.call { Lane.open(@config, @pool.canceller, shared: false) }
        @ends[lane] = Postgres.now + (@config.max_lifetime * (0.9 + (rand / 5)))
        lane
      rescue StandardError => error
        fail_waiters(error)
        raise
      end

      # Where nobody has a connection, nobody will give one back.
      def fail_waiters(error)
        @lock.synchronize do
          next unless @holders.empty?

          @waiters.each { |waiter| waiter.gate.try_push(error) }.clear
        end
      end

      def too_old?(lane) = Postgres.now > @ends.fetch(lane)

      def hold(lane, asker)
        @lock.synchronize { @holders[lane] = Holder.new(*asker, Postgres.now) }
        lane
      end

      # --- giving one back ---

      def settle(lane, reset)
        return false if lane.lost? || @closed

        lane.end_stream # its user may have been interrupted before it knew that there is one
        reset |= lane.take_left_state
        clean = !reset && lane.status == "I" && lane.pending.zero?
        clean || Ringspun.shield(deadline: SETTLE) { make_clean(lane, reset) }
      rescue Exception
        false
      end

      def make_clean(lane, reset)
        lane.settle(SETTLE)
        lane.query("ROLLBACK", [], SETTLE, false, true) unless lane.status == "I"
        if reset || lane.take_left_state
          lane.query("DISCARD ALL", [], SETTLE, false, true)
          lane.forget_statements
          lane.take_left_state
        end
        lane.status == "I"
      end

      def give_back(lane)
        machine = Machine.current
        other = @lock.synchronize do
          next lane if @closed

          waiter = @waiters.shift
          if waiter.nil?
            @idle << Idle.new(lane, machine, Postgres.now)
            next
          end
          next waiter.gate.try_push(lane) && nil if waiter.machine.equal?(machine)

          waiter.gate.try_push(:permit)
          lane
        end
        close_lane(other) if other
      end

      # Shielded: or who is cancelled meanwhile would take the place along.
      def give_up(lane)
        Postgres.shield(SETTLE) { close_lane(lane) }
        nil
      ensure
        forget
      end

      def close_lane(lane)
        @lock.synchronize { @ends.delete(lane) }
        lane.close(lane.loss || "it was given up")
      end

      # A place for one that is gone.
      def forget
        @lock.synchronize do
          waiter = @waiters.shift
          waiter ? waiter.gate.try_push(:permit) : @count -= 1
        end
      end

      # Another machine's.
      #
      # @return [:permit] to open one in its place
      def abandon(idle)
        @ends.delete(idle.lane)
        idle.lane.close
        :permit
      end
    end
    private_constant :Connections
  end
end
