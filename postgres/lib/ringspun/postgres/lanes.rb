# frozen_string_literal: true

module Ringspun
  module Postgres
    # The shared connections of one machine, for statements of which each stands alone.
    #
    # @api private
    class Lanes
      # So many statements under way on the emptiest lane make another one worth its connection.
      BUSY = 16

      # A lane that was quiet is asked whether it is alive, and is quiet again where this process stands still for a second
      # between the answer and the statement. So often that is no accident.
      QUIET_MAX = 8

      # Why a statement is not sent beside others: nothing is known of it, or that it takes long.
      UNSURE = %i[unknown slow].freeze

      # Why it is sent on a connection for one user only: it may commit in its midst, or has met a lock.
      OWN = %i[alone lock].freeze

      # Why it was not taken, or was taken and not sent: the lane does not move.
      STUCK = %i[stuck moved].freeze

      INSTEAD = "use transaction { |t| ... } or session { |s| ... }, and the statement inside of it"
      private_constant :UNSURE, :OWN, :STUCK, :QUIET_MAX, :INSTEAD

      # A statement at the head of a lane that has held up others, since when it was there, and how many those are.
      Held = Struct.new(:sql, :since, :others)
      private_constant :Held

      # One more, for all who wait for it.
      Opening = Struct.new(:strand, :failure, :ended)
      private_constant :Opening

      # @param pool [Pool]
      # @param machine [Machine]
      # @param bell [Bell, nil] by which plain threads that ask by themselves call the machine; nil: none do
      def initialize(pool, machine, bell = nil)
        @pool = pool
        @bell = bell
        @machine = machine
        @thread = Thread.current
        @lanes = []
        @retired = [] # that have yet to answer
        @lent = [] # retired because they do not move, and counted among the connections for one user
        @opened = Condition.new # one is there, or could not be opened
        @opening = nil
        @crowd = Crowd.new(machine, pool.config.checkout_timeout)
        @held = {}.compare_by_identity # lanes, and what is at their heads
        @strained = false # whether something is lent, or held up
        @closed = false
      end

      # May switch strands.
      #
      # @return [Result]
      def query(sql, params, timeout, prepared, idempotent)
        deadline = timeout && (@machine.now + timeout)
        unless @pool.config.pipelining
          check(sql, params)
          return alone(timeout) { |lane, left| lane.query(sql, params, left, prepared, true) }
        end

        lane = pick
        check(sql, params) unless lane
        taken = lane ? leaving(lane) { lane.query(sql, params, timeout, prepared, false) } : :none
        return taken unless taken.is_a?(Symbol)

        insist(taken, lane, deadline) { |other, left, forced| other.query(sql, params, left, prepared, forced) }
      rescue ConnectionLost
        raise unless idempotent

        idempotent = false
        timeout = left_until(deadline)
        retry
      end

      # As {#query}, but returns at once: the answer is the question's.
      #
      # @return [Lane, Symbol] which has taken it, or why none has
      def post(sql, params, prepared, question)
        lane = pick if @pool.config.pipelining
        return :none unless lane

        lane.post(sql, params, prepared, question) || lane
      end

      # In a plain thread.
      #
      # @return [Lane, nil] that it may ask by itself; nil: there is none, or one more is worth its connection
      def for_thread
        lane = @lanes.first
        return lane if lane.nil? || @pool.config.lanes == 1

        lane = @lanes.min_by(&:burden)
        lane unless lane.nil? || (lane.burden >= BUSY && @lanes.size < @pool.config.lanes)
      end

      # A plain thread has left something to do.
      def rouse(lane)
        lane.rouse
        lane.awaited = @crowd.waiting? || @held.key?(lane)
        leaving(lane) { nil }
      end

      # @param answer [Result, Exception, Symbol] of the lane to what was posted
      # @return [Result, Exception, Symbol] what becomes of it; a Symbol: it is asked anew
      def answered(lane, answer)
        leaving(lane) { answer unless answer.is_a?(Exception) }
        settle(answer, lane, nil, nil) if answer == :unsafe
        answer
      rescue UnsafeSessionState => error
        error
      end

      # @return [TimeoutError, nil] nil: it is answered
      def withdraw(lane, question)
        error = nil
        leaving(lane) { (error = lane.withdraw(question)) && nil }
        error
      end

      # @return [Array<Result>]
      def batch(sqls, params, timeout)
        sqls.zip(params) { |sql, values| check(sql, values) } if @lanes.empty?
        return alone(timeout) { |lane, left| lane.batch(sqls, params, left, true) } unless @pool.config.pipelining

        insist(:none, nil, timeout && (@machine.now + timeout)) { |lane, left, forced| lane.batch(sqls, params, left, forced) }
      end

      # As {Connections#use}.
      def use(timeout, reset:, &) = @pool.connections.use(timeout, reset:, &)

      # Nothing is open any more. From any thread.
      #
      # @return [true]
      def close
        @closed = true
        # Again and again, where this is another thread than the machine's.
        Postgres.each_to_the_end([*@lanes, *@retired, *@lent]) { |lane| close_lane(lane) }
        true
      ensure
        end_opening unless gone?
      end

      # A lane may have to keep what it was asked for. In a strand beside the run, until all of it has left.
      def watch(lane)
        @machine.__send__(:spin_beside) do
          while (seconds = lane.move_unsent)
            @machine.sleep(seconds.clamp(0..))
          end
        ensure
          lane.unwatch
        end
      rescue LimitError
        lane.unwatch # it waits for what is before it, or until the next one looks
      end

      # Something was answered that nobody has waited for.
      def rest
        @held.keys.each { |lane| report(lane) }
        close_lent
        @crowd.look
      end

      # Whether the machine has ended, or its thread.
      def gone? = @machine.closed? || !@thread.alive?

      private

      # Of what no shared connection looks at.
      def check(sql, params) = Lane.check(sql, params) && refuse_session

      # For a statement that is known to be quick.
      def pick
        lane = @lanes.first
        return lane if lane.nil? || @pool.config.lanes == 1

        lane = @lanes.min_by(&:burden)
        open_more if lane.burden >= BUSY && @lanes.size < @pool.config.lanes
        lane
      end

      # Until one has taken the statement, or the time is over.
      def insist(refused, lane, deadline, &ask)
        patience = held_up = nil
        unsure = false
        quiet = 0
        loop do
          unsure ||= UNSURE.include?(refused)
          held_up = note_held_up(lane, held_up) if refused == :moved
          patience ||= @crowd.patience if STUCK.include?(refused)
          taken = elsewhere(refused, unsure, deadline, &ask)
          return taken unless taken.is_a?(Symbol)

          lane = settle(refused, lane, deadline, patience)
          check_quiet(quiet += 1) if refused == :quiet
          refused = leaving(lane) { yield(lane, left_until(deadline), unsure || refused == :old) }
          return refused unless refused.is_a?(Symbol)
        end
      end

      def check_quiet(times)
        return if times <= QUIET_MAX

        raise StatementTimeoutError.new("the statement was not sent: this process stood still for a second before each of " \
                                        "#{times} tries", in_doubt: false)
      end

      # A statement counts once, however often it has to move.
      #
      # @param again [Boolean, nil] it was held up before
      # @return [true]
      def note_held_up(lane, again)
        @pool.config.sharing.note_held_up unless again
        sql, seconds = lane.head
        return true unless seconds

        lane.awaited = true
        held = @held[lane] ||= Held.new(sql, @machine.now - seconds, 0)
        held.others += 1 unless again
        @strained = true
      end

      # What has held up others may have come to its end.
      def report(lane)
        held = @held[lane] or return
        _, seconds = lane.head
        return if seconds && seconds >= @machine.now - held.since - 0.001

        @held.delete(lane)
        @pool.config.sharing.report(held.sql, @machine.now - held.since, held.others)
      end

      # On a connection for one user, where that is better than a lane.
      #
      # @return [Object, :none]
      def elsewhere(refused, unsure, deadline, &)
        case refused
        when *OWN then ask_alone(refused, deadline, &)
        when :unknown then ask_idle(deadline, &).then { |taken| taken == :none && !open_window ? ask_aside(deadline, &) : taken }
        when :slow then ask_aside(deadline, &)
        when *STUCK then unsure || !room? ? ask_aside(deadline, &) : :none
        when :held then moving ? :none : ask_aside(deadline, &)
        else :none
        end
      end

      def ask_idle(deadline, &) = ask_on(:try_idle, deadline, &)

      def ask_aside(deadline, &) = ask_on(:try_use, deadline, &)

      # @param way [Symbol] to a connection, of {Connections}
      # @return [Object, :none]
      def ask_on(way, deadline)
        used = false
        @pool.connections.__send__(way, left_until(deadline)) do |other|
          used = true
          left_clean(other) { yield(other, left_until(deadline), true) }
        end
      ensure
        @crowd.freed if used
      end

      # What has met a lock waits for it under the user's own setting, and holds up nobody.
      def ask_alone(refused, deadline)
        @pool.config.sharing.note_lock_wait if refused == :lock
        alone(left_until(deadline)) { |lane, left| yield(lane, left, true) }
      ensure
        @crowd.freed
      end

      # @return [Lane, nil] that a statement may close of which nothing is known: of several lanes one stays open
      def open_window
        closed, open = @lanes.partition(&:closed?)
        open.min_by(&:pending) if closed.empty? || open.size > 1
      end

      # @return [Lane, nil] where statements are answered
      def moving = @lanes.reject { |lane| lane.stuck? || lane.held? }.min_by(&:burden)

      # @return [Boolean] whether there is a lane for a statement that is known to be quick, or one more is on its way
      def room?
        return true if moving || @opening

        make_room if @lanes.size == @pool.config.lanes
        @lanes.size < @pool.config.lanes && open_more
      end

      # A lane that does not move goes on as a connection for one user, if there may be one more.
      def make_room
        lane = @lanes.find(&:stuck?) or return
        return unless @pool.connections.lend(lane)

        @lanes.delete(lane)
        @lent << lane
        @strained = true
      end

      def close_lent
        @lent.select { |lane| lane.lost? || lane.pending.zero? }.each do |lane|
          lane.close(lane.loss || "it had held up others")
          end_loan(lane)
        end
      end

      def end_loan(lane)
        @lent.delete(lane)
        @pool.connections.end_loan(lane)
      end

      # Where a strand that has lent it was interrupted, it is not in @lent.
      def close_lane(lane)
        lane.close
      ensure
        end_loan(lane)
      end

      def relax(lane)
        report(lane)
        close_lent
        @strained = @held.any? || @lent.any?
      end

      # What nobody waits for any more is cancelled.
      def leaving(lane)
        taken = yield
      ensure
        leave(lane) unless taken
        relax(lane) if @strained
        @crowd.moved unless taken.is_a?(Symbol)
      end

      # Of one that is lost the server may not know yet.
      def leave(lane)
        lane.orphaned if lane.orphaned?
        drop(lane) if @closed || lane.lost?
      end

      # @return [Lane] where to try next
      def settle(refused, lane, deadline, patience)
        left = left_until(deadline)
        case refused
        when :session then refuse_session
        when :unsafe then drop(lane) || refuse_left(lane)
        when :quiet then lane.ping(left) || drop(lane)
        when :lost then drop(lane)
        when :old then open_more # in its place, in which it goes on until then
        when :held then moving || lane.ping(left) # answered when it has been resumed, or shortly before
        when *STUCK then await_move(deadline, patience)
        when *UNSURE then return window(left)
        end
        ([*STUCK, :held].include?(refused) && moving) || pick || await_opened(left)
      end

      # @return [Lane] for a statement that is not known to be quick
      def window(left)
        lane = open_window || @lanes.select(&:closed?).min_by(&:pending) || await_opened(left)
        open_more if lane.old?
        lane
      end

      # Until one has answered what it was at, or another one is there. What waits here was not sent, so it holds up no
      # cancellation of what is before it. Whoever has all connections may wait for it, so it does not wait for ever.
      def await_move(deadline, patience)
        return if moving || @lanes.empty?

        @lanes.each { |lane| lane.awaited = true }
        case @crowd.wait(patience, deadline)
        when :exhausted then raise PoolTimeoutError, exhausted
        when :late then raise Postgres.late("no statement before it was answered before the deadline; it was not sent", false)
        end
      end

      def exhausted
        heads = @lanes.map { |lane| "a shared one: #{lane}" }
        [@pool.connections.exhausted(@pool.config.checkout_timeout), *heads].join("\n")
      end

      def refuse_session
        raise UnsafeSessionState, "this statement is for one session, and would be for everybody who shares the connection: " \
                                  "#{INSTEAD}"
      end

      def refuse_left(lane)
        changed = lane.changed_settings
        what = changed.empty? ? "has left a transaction open, or changed the session," : "has set #{changed.join(", ")}"
        raise UnsafeSessionState, "this statement #{what} for others to meet; what it has begun is rolled back: #{INSTEAD}"
      end

      # A connection for one user is made clean when it is given back.
      def left_clean(lane)
        taken = yield
        lane.unsafe? ? refuse_left(lane) : taken
      end

      def drop(lane)
        lane.close(lane.loss || "it was given up")
        @held.delete(lane)
        @lanes.delete(lane)
        @pool.connections.end_loan(lane) # of a strand that was interrupted as it lent it
        @crowd.look
        nil
      end

      # --- opening ---

      # @return [Lane]
      def await_opened(left)
        deadline = left && (@machine.now + left)
        loop do
          opening = open
          wait_for(opening, deadline)
          check_open
          raise opening.failure.exception(opening.failure.message) if opening.failure && @lanes.empty?

          lane = pick and return lane
        end
      end

      def wait_for(opening, deadline)
        @opened.wait(timeout: deadline && [deadline - @machine.now, 0].max) until opening.ended
      rescue Ringspun::TimeoutError
        raise @pool.opener.late
      end

      # A courier may have been killed.
      def check_open
        return unless @closed

        raise @pool.closed? ? ClosedError.new("the pool is closed") : Postgres.lost("the courier has ended", false)
      end

      # @return [Opening] that is under way
      def open
        check_open
        return @opening if @opening

        opening = @opening = Opening.new
        opening.strand = @machine.__send__(:spin_beside) { open_one(opening) }
        opening
      rescue LimitError
        @opening = nil # it has not begun
        raise
      end

      # Where there is one already, a statement goes on without.
      #
      # @return [Opening, nil]
      def open_more
        open
      rescue LimitError
        nil
      end

      # In a strand beside the run, which does not wait for a server that is silent.
      def open_one(opening)
        lane = @pool.opener.call { Lane.open(@pool.config, @pool.canceller, shared: true) }
        lane.keeper = self
        lane.bell = @bell unless lane.session.encrypted
        @lanes << lane
        retire_old
        @closed ? lane.close : @pool.connections.fill
      rescue StandardError => error
        opening.failure = error
      ensure
        @opening = nil
        opening.ended = true
        @opened.broadcast
        @crowd.look
      end

      # Those that have lived long enough answer what they were asked.
      def retire_old
        old, @lanes = @lanes.partition(&:old?)
        @retired.concat(old)
        Postgres.each_to_the_end(old) { |lane| retire(lane) }
      end

      def retire(lane)
        @machine.__send__(:spin_beside) { wind_down(lane) }
      rescue LimitError => error
        end_retired(lane, error.message)
      end

      def wind_down(lane)
        lane.ping(nil)
      ensure
        end_retired(lane, "it has lived long enough")
      end

      def end_retired(lane, why)
        lane.close(lane.loss || why)
        @retired.delete(lane)
      end

      # Outside of a run nobody else would let the strand end.
      def end_opening
        strand = @opening&.strand or return
        strand.terminate
        strand.join if Fiber.current_scheduler.nil? && Machine.current? && Machine.current.equal?(@machine)
      rescue TerminatedError
        nil
      end

      def left_until(deadline) = deadline && [deadline - @machine.now, 0].max

      # On a connection of its own, as where a pooler cannot take several statements at once.
      def alone(timeout)
        deadline = timeout && (@machine.now + timeout)
        @pool.connections.use(timeout, patient: true) do |lane|
          taken = left_clean(lane) { yield(lane, left_until(deadline)) }
          taken.is_a?(Symbol) ? raise(Postgres.lost(lane.loss, false)) : taken
        end
      end
    end
    private_constant :Lanes
  end
end
