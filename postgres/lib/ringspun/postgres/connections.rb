# frozen_string_literal: true

module Ringspun
  module Postgres
    # The connections of a process that one user at a time has: for transactions, sessions and streams. A connection belongs to
    # the machine that has opened it; how many there are is counted over all machines.
    #
    # Who waits is served in order. A connection that is given back goes to the first who waits; one of another machine is closed
    # for it, and the first may open its own. What nobody can give back is reclaimed when it is needed.
    #
    # @api private
    class Connections
      # Seconds for what a connection must do before the next user gets it.
      SETTLE = 5

      # Seconds after which one that nobody uses is closed, if there are more than `min`.
      KEEP = 300

      # Seconds after which who waits looks again for what nobody will give back.
      LOOK = 1

      # Seconds in which nobody looks twice, however many find that there is none: each look is at all holders.
      LOOK_AGAIN = 0.02

      Waiter = Struct.new(:machine, :gate)
      private_constant :Waiter

      def initialize(pool)
        @pool = pool
        @config = pool.config
        @lock = ShortLock.new
        @idle = [] # lanes: the last that was given back comes last, and is taken first
        @waiters = []
        @holders = {}.compare_by_identity
        @lent = {}.compare_by_identity # shared ones that count here
        @openings = {}.compare_by_identity # strands
        @reclaimed = [] # and to be closed by their machines
        @replaced = [] # they have made room, and are to be closed after the lock
        @looked_at = 0 # for what nobody will give back
        @count = 0
        @served = 0 # of those who have waited
        @filling = false
        @closed = false
      end

      # May switch strands.
      #
      # @param timeout [Numeric, nil] seconds until there is one, of which no more than `checkout_timeout` are spent on waiting
      #   for a connection that others have
      # @param reset [Boolean] the session is made anew afterwards
      # @param patient [Boolean] whether only those seconds count in which none of the callers that wait gets one
      def use(timeout, reset: false, patient: false, &)
        holder = Holder.new
        Postgres.with_taken(-> { acquire(timeout, holder, patient:) }, ->(lane) { release(lane, reset) }, &)
      end

      # @param left [Numeric, nil] seconds to open one
      # @return [Object, :none] of the block; :none: there is no connection free
      def try_use(left, &) = use_any(-> { acquire_now(Machine.current, left) }, &)

      # As {#try_use}, of a connection that is open.
      def try_idle(left, &) = @idle.empty? ? :none : use_any(-> { acquire_idle(Machine.current, left) }, &)

      # Room for a shared connection that others must not wait behind, in whose place another one is opened.
      #
      # @param lane [Lane]
      # @return [Boolean] whether there is room; of several strands that ask for the same one, the first hears so
      def lend(lane)
        @lock.synchronize { !@closed && !@lent.key?(lane) && !permit.nil? && (@lent[lane] = true) }
      ensure
        close_replaced
      end

      # That one is closed.
      def end_loan(lane)
        forget if @lock.synchronize { @lent.delete(lane) }
      end

      # @param served [Integer, nil] how many got one, of those who have waited meanwhile
      # @return [String] who has the connections
      def exhausted(seconds, served = nil)
        holders, lent, opening = @lock.synchronize do
          [@holders.values, @lent.keys, @count - @holders.size - @idle.size - @lent.size]
        end
        holders += lent.map { |lane| "a shared one: #{lane}" }
        holders << "#{opening} being opened or given back#{@pool.opener.last_try}" if opening.positive?
        holders << crowd(served) if served&.positive?
        "no connection within #{seconds} s: all #{@config.max} are in use (max: #{@config.max}).\n#{holders.join("\n")}"
      end

      # @param holder [Holder] who is to have it
      # @param seconds [Numeric, nil] of the timeout that are left
      # @param patient (see #use)
      # @return [Lane]
      def acquire(timeout, holder, seconds = timeout, patient: false)
        machine = Machine.current
        deadline = seconds && (machine.now + seconds)
        lane = nil
        until lane
          got = take(machine)
          got = await(got, timeout, left(deadline), patient) if got.is_a?(Waiter)
          lane = prepare(got, left(deadline))
        end
        hold(lane, holder, machine)
        fill
        lane
      end

      # Has as many opened as there are to be at least, beside the run. Without one the caller is the only user.
      def fill
        return if @count >= @config.min || @filling || @closed || !Fiber.current_scheduler.is_a?(Scheduler)

        Machine.current.__send__(:spin_beside) { open_missing }
      rescue LimitError
        nil # nobody needs them yet, and the next call may have room for a strand
      end

      # What fails here closes the connection, and so does what comes for the thread.
      def release(lane, reset)
        held = false
        @lock.synchronize { held = @holders.delete(lane) }
        return unless held # it was reclaimed

        settled = settle(lane, reset)
        lane.leave_notices
        lane.observers = @config.observers
        ready = settled
      ensure
        ready ? give_back(lane) : give_up(lane) if held
      end

      # One whose machine has ended, or is about to. From any thread: where another one has the stream, that closes it, or
      # whoever is next when the machine is gone.
      def write_off(lane)
        here = lane.here?
        held = @lock.synchronize { @holders.delete(lane).tap { |holder| @reclaimed << lane if holder && !here } }
        give_up(lane) if held
      end

      # Nobody gets one any more, and those that somebody has end.
      def close
        openings = @lock.synchronize do
          @closed = true
          @waiters.each { |waiter| waiter.gate.close }.clear
          @openings.keys
        end
        Postgres.each_to_the_end([-> { openings.each(&:terminate) }, -> { close_own }, -> { close_others }], &:call)
      end

      # Those of this machine, which is to end. Who has one may not be there any more to give it back.
      def close_own
        close_reclaimed
        idle, held = @lock.synchronize { [@idle, @holders.keys].map { |lanes| lanes.select(&:here?) } }
        Postgres.each_to_the_end(idle) { |lane| give_up(lane) if @lock.synchronize { @idle.delete(lane) } }
      ensure
        Postgres.each_to_the_end(held || []) { |lane| write_off(lane) }
      end

      # Another thread can end a connection, and not always close its stream.
      def close_reclaimed
        return if @reclaimed.empty?

        mine = @lock.synchronize { @reclaimed.select { |lane| lane.here? || lane.gone? } }
        Postgres.each_to_the_end(mine) { |lane| lane.close.then { @lock.synchronize { @reclaimed.delete(lane) } } }
      end

      def metrics = @lock.synchronize { { connections: @count, idle: @idle.size, waiting: @waiters.size } }

      private

      # @yieldparam lane [Lane]
      # @return [Object, :none]
      def use_any(take)
        Postgres.with_taken(take, ->(lane) { release(lane, false) }) { |lane| lane ? yield(lane) : :none }
      end

      def close_others
        lanes = @lock.synchronize do
          @reclaimed.concat(@idle)
          @holders.keys + @idle.slice!(0..)
        end
        Postgres.each_to_the_end(lanes, &:close)
      ensure
        close_reclaimed
      end

      # --- getting one ---

      # @return [Lane, :permit, Waiter] :permit: to open one
      def take(machine)
        close_reclaimed
        idle = take_idle(machine) and return idle
        return @lock.synchronize { permit || wait(machine) } unless look?(machine)

        reclaim(&:ended?)
        @lock.synchronize { permit } || (reclaim(&:astray?) && @lock.synchronize { permit || wait(machine) })
      end

      # A caller that does not look now waits, and looks then.
      def look?(machine)
        now = machine.now
        return false if (now - @looked_at).between?(0, LOOK_AGAIN)

        @looked_at = now
        true
      end

      def take_idle(machine)
        @lock.synchronize do
          raise closed if @closed

          found = @idle.rindex { |lane| lane.machine.equal?(machine) }
          @idle.delete_at(found) if found
        end
      end

      # Who needs one hears why there is none.
      def open_missing
        @filling = true
        while (got = @lock.synchronize { permit if @count < @config.min && !@closed })
          give_back(prepare(got, nil))
        end
      rescue StandardError
        nil
      ensure
        @filling = false
      end

      # Another machine's connection that nobody uses makes room. The caller closes it after the lock.
      #
      # @return [:permit, nil] to open one
      def permit
        if @count < @config.max then @count += 1
        elsif @idle.any? then @replaced << @idle.shift
        else return
        end
        :permit
      end

      def wait(machine) = Waiter.new(machine, Channel.new(1)).tap { |waiter| @waiters << waiter }

      # Closes those whose holders the block finds.
      #
      # @return [true]
      def reclaim(&)
        while (lane, holder = @lock.synchronize { take_held(&) })
          give_up(lane, "it was reclaimed, because nobody was there to give it back")
          Warnings.tell(holder.reclaimed)
        end
        true
      end

      # One at a time: whoever is interrupted meanwhile leaves the others where they are.
      def take_held
        lane, = @holders.find { |_, holder| yield holder }
        return unless lane

        @reclaimed << lane
        [lane, @holders.delete(lane)]
      end

      def left(deadline) = deadline && [deadline - Machine.current.now, 0].max

      def acquire_now(machine, left)
        got = take(machine)
        if got.is_a?(Waiter)
          @lock.synchronize { @waiters.delete(got) }
          got = got.gate.try_pop or return
          raise got.exception(got.message) if got.is_a?(Exception)
        end
        lane = prepare(got, left) and hold(lane, Holder.new, machine)
      end

      def acquire_idle(machine, left)
        got = take_idle(machine)
        lane = got && prepare(got, left) and hold(lane, Holder.new, machine)
      end

      def await(waiter, timeout, left, patient)
        seconds = [timeout, @config.checkout_timeout].compact.min
        served = @served
        got = pop(waiter.gate, seconds, left, patient)
        raise got.exception(got.message) if got.is_a?(Exception)
        return got if got
        raise closed if waiter.gate.closed?

        raise PoolTimeoutError, exhausted(patient && timeout ? timeout : seconds, @served - served)
      ensure
        leave(waiter) unless got
      end

      # The first look comes soon, for nobody may have looked.
      #
      # @param seconds [Numeric] as long as nobody is served, or in all
      # @param left [Numeric, nil] of the timeout
      def pop(gate, seconds, left, patient)
        machine = Machine.current
        now = machine.now
        due = now + seconds
        last = left && (now + left)
        served = @served
        look = LOOK_AGAIN
        loop do
          wait = [due, last].compact.min - now
          got = gate.pop(timeout: wait.clamp(0, look))
          return got if got || gate.closed?

          renewed = patient && served != @served
          now = machine.now
          served, due = @served, now + seconds if renewed
          over = wait <= look && !renewed # the clock may be less than a tick before its end, and a wait for that takes none
          reclaim(&:left?) if look?(machine) || over
          return gate.pop(timeout: last && last < due ? 0 : Crowd::LAST_LOOK) if over

          look = LOOK
        end
      end

      def crowd(served)
        "#{served} others got one meanwhile, and #{@waiters.size} wait: raise max: or checkout_timeout:, or ask less at once."
      end

      # What was handed over while it left goes to the next.
      def leave(waiter)
        @lock.synchronize { @waiters.delete(waiter) }
        case got = waiter.gate.try_pop
        when :permit then forget
        when Lane then give_back(got)
        end
      end

      # @param got [Lane, :permit]
      # @return [Lane, nil] nil: it had died while nobody used it
      def prepare(got, left)
        ready = got == :permit ? open_within(left) : (got if fresh?(got, left))
      ensure
        got == :permit ? forget : give_up(got) unless ready
      end

      def fresh?(lane, left) = !lane.old? && (!lane.quiet? || lane.ping([left, SETTLE].compact.min))

      # In a strand, by which {#close} can end it.
      def open_within(left)
        opened = failure = nil
        close_replaced
        Machine.current.scope(deadline: left) do |scope|
          strand = scope.spin do
            opened = open
          rescue StandardError => failure
            nil
          end
          until_closed(strand)
        end
        raise failure if failure

        given = opened
      rescue TerminatedError
        raise closed
      rescue Ringspun::TimeoutError
        raise failure || @pool.opener.late
      ensure
        close_lane(opened) if opened && !given
      end

      def until_closed(strand)
        @lock.synchronize { @openings[strand] = true }
        strand.terminate if @closed
        strand.await
      ensure
        @lock.synchronize { @openings.delete(strand) }
      end

      def open
        @pool.opener.call { Lane.open(@config, @pool.canceller, shared: false) }
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

      def hold(lane, holder, machine)
        holder.hold(lane, machine.now)
        return lane if @lock.synchronize { @holders[lane] = holder unless @closed }

        give_up(lane)
        raise closed
      end

      def closed = ClosedError.new("the pool is closed")

      # --- giving one back ---

      def settle(lane, reset)
        return false if @closed
        return true if !reset && lane.clean?
        return false if lane.lost? || lane.opens?

        lane.enclosed = false
        lane.forget_opening
        lane.end_stream # its user may have been interrupted before it knew that there is one
        reset |= lane.take_left_state
        clean = !reset && lane.status == "I" && lane.pending.zero?
        clean || Ringspun.shield(deadline: SETTLE) { make_clean(lane, reset) }
      rescue StandardError, Cancelled, TerminatedError, NoMemoryError
        false
      end

      def make_clean(lane, reset)
        lane.settle(SETTLE)
        lane.leave_notices # of what its user has left; what is asked now would take them along
        lane.query("ROLLBACK", [], SETTLE, false, true) unless lane.status == "I"
        lane.renew(SETTLE) if reset || lane.take_left_state
        lane.status == "I" && lane.changed_settings.empty? && !lane.lost?
      end

      def give_back(lane)
        machine = Machine.current
        @lock.synchronize do
          next @replaced << lane if @closed

          waiter = @waiters.shift
          next rest(lane, machine.now) if waiter.nil?

          @served += 1
          next if waiter.machine.equal?(machine) && waiter.gate.try_push(lane)

          waiter.gate.try_push(:permit)
          @replaced << lane
        end
      ensure
        close_replaced
      end

      def rest(lane, now)
        lane.idle_since = now
        @idle << lane
        close_superfluous(now - KEEP) if @idle.first.idle_since < now - KEEP
      end

      # Those that nobody has used for long.
      def close_superfluous(used)
        old = @idle.take_while { |lane| lane.idle_since < used }.size
        closing = @idle.shift([old, @count - @config.min].min.clamp(0..))
        @count -= closing.size
        @replaced.concat(closing)
      end

      # What has made room is closed without the lock, for that may switch strands. From here, and what is left of another
      # machine's by that one.
      def close_replaced
        return if @replaced.empty?

        lanes = @lock.synchronize do
          @reclaimed.concat(@replaced)
          @replaced.slice!(0..)
        end
        Postgres.shield(SETTLE) { Postgres.each_to_the_end(lanes.reject(&:here?)) { |lane| close_lane(lane) } }
      ensure
        Postgres.shield(SETTLE) { close_reclaimed } if lanes
      end

      # Shielded: or who is cancelled meanwhile would take the place along.
      def give_up(lane, why = "it was given up")
        Postgres.shield(SETTLE) { close_lane(lane, why) }
        closed = true
        nil
      ensure
        forget(closed ? nil : lane)
      end

      def close_lane(lane, why = "it was given up")
        lane.close(lane.loss || why)
      end

      # A place for one that is gone.
      #
      # @param left [Lane, nil] that could not be closed, and is to be
      def forget(left = nil)
        @lock.synchronize do
          @reclaimed << left if left
          waiter = @waiters.shift
          @served += 1 if waiter
          waiter ? waiter.gate.try_push(:permit) : @count -= 1
        end
      end
    end
    private_constant :Connections
  end
end
