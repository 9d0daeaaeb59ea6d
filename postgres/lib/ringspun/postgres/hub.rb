# frozen_string_literal: true

module Ringspun
  module Postgres
    # One connection that listens for all subscriptions of a pool. It lives in the courier's thread, so that it depends on no run
    # of the program's; on a simulated machine, beside whose strands there are no threads, in a strand there. It is opened for the
    # first subscription, and closed some seconds after the last has ended.
    #
    # When it is lost there is a new one. All who have listened before get a gap, after the server has begun to listen again: what
    # they look up then misses nothing.
    #
    # @api private
    class Hub
      # Seconds for which it stays when nobody listens.
      LINGER = 5

      # Seconds of silence after which the server is asked whether it is still there, and for its answer.
      QUIET = 30
      PATIENCE = 10

      # A connection that ends sooner counts as one that could not be opened.
      SHORT = 1

      # Seconds before the next try after the first that has failed; doubled for each further one, up to the most.
      BACK_OFF = 0.05
      BACK_OFF_MAX = 2.0

      # @param pool [Pool]
      # @param machine [Machine, nil] the simulated one on which it lives
      # @param courier [#call] returns the courier, in which it lives else
      def initialize(pool, machine, courier)
        @pool = pool
        @machine = machine
        @courier = courier
        @audience = Audience.new
        @lock = ShortLock.new
        @wanted = Channel.new(1) # somebody has come or gone
        @active = false
        @failures = 0
        @closed = false
      end

      # Waits until the server listens. May switch strands.
      #
      # @param seconds [Numeric, nil]
      # @return [Subscription]
      def add(subscription, seconds)
        gate = Channel.new(1)
        @audience.add(subscription, gate)
        start
        poke
        outcome = elsewhere(nil) { gate.pop(timeout: seconds) }
        raise late(subscription) unless outcome
        raise outcome.exception(outcome.message) unless outcome == :live

        added = subscription
      ensure
        subscription.close unless added
      end

      # From any thread. It never waits.
      def remove(subscription)
        poke if @audience.remove(subscription)
      end

      # Waits for the block without holding up the fibers of another scheduler.
      #
      # @param undo [Proc, nil] gets its value when nobody waits for it any more
      def elsewhere(undo, &)
        scheduler = Fiber.current_scheduler
        scheduler.nil? || scheduler.is_a?(Scheduler) ? yield : @courier.call.call(undo:, &)
      end

      # From any thread.
      def close
        strand = @lock.synchronize do
          @closed = true
          @strand
        end
        @audience.finish(ClosedError.new("the pool is closed"))
        strand&.terminate
      end

      private

      def poke = @wanted.try_push(true)

      # --- its strand ---

      def start
        raise ClosedError, "the pool is closed" if @closed
        return if @lock.synchronize { @active } # or its strand might end just now, having looked before

        @machine ? start_here : @courier.call.call(kept: true) { start_here }
      end

      def start_here
        return unless @lock.synchronize { !@active && !@closed && (@active = true) }

        Machine.current.__send__(:spin_beside) { live }
      rescue LimitError => error
        @lock.synchronize { @active = false }
        @audience.fail_pending(error)
        raise
      end

      def live
        @lock.synchronize { @strand = Machine.current.running }
        connect until idle?
        ended = true
      ensure
        @lock.synchronize { @strand = nil }
        give_up unless ended
      end

      def idle?
        @lock.synchronize do
          idle = @closed || @audience.empty?
          @active = false if idle
          idle
        end
      end

      # Its thread ends, or the pool is closed.
      def give_up
        @lock.synchronize { @active = false }
        @audience.finish(Postgres.lost("the thread that listens has ended", false))
      end

      # --- its connection ---

      def connect
        Machine.current.sleep([BACK_OFF * (2**(@failures - 1)), BACK_OFF_MAX].min) if @failures.positive?
        @failures += 1
        lane = @pool.opener.call { Lane.open(@pool.config, @pool.canceller, shared: false) }
        names = begin_on(lane)
        began = Postgres.now
        attend(lane, names)
      rescue Ringspun::Error, SystemCallError => error
        note_failure(error) unless began
      ensure
        @failures = 0 if began && Postgres.now - began > SHORT
        lane&.close(lane.loss || "nobody listens any more")
      end

      # Who waits for the beginning hears of it. The others wait for a better time.
      def note_failure(error)
        @audience.fail_pending(error)
        return if @warned || @closed || @audience.empty?

        @warned = true
        place = @pool.config.options.hosts.join(", ")
        Warnings.tell("ringspun: nothing is listened to at #{place}, and it is tried again: #{error.message}")
      end

      # @return [Array<String>] what the server listens to
      def begin_on(lane)
        lane.listen
        early = Hearing.new(@pool, lane, PATIENCE).check
        names = listen(lane, [], @audience.names)
        @warned = false
        @audience.announce_gap
        @audience.admit(names)
        @audience.spread(early)
        names
      end

      def late(subscription)
        Postgres.late("the server does not listen to #{subscription.channels.join(", ")} before the deadline", false)
      end

      def attend(lane, names)
        Machine.current.scope do |scope|
          keeper = scope.spin { keep(lane, names) }
          read(lane)
        ensure
          keeper&.terminate
        end
      end

      def read(lane)
        loop do
          heard = lane.next_notifications(QUIET)
          break if heard.empty? && lane.lost?

          poke unless @audience.spread(heard)
        rescue Ringspun::TimeoutError
          lane.ping(PATIENCE)
        end
      end

      # --- what the server listens to ---

      # Follows those who come and go.
      def keep(lane, names)
        while @wanted.pop(timeout: names.empty? ? LINGER : nil) || !@audience.empty?
          names = follow(lane, names)
        end
        lane.close("nobody listens any more")
      rescue Error, Ringspun::TimeoutError => error
        lane.close(error.message)
      end

      # What the server refuses is the news of those who wait for it.
      def follow(lane, names)
        names = listen(lane, names, @audience.names)
        @audience.admit(names)
        names
      rescue ServerError => error
        @audience.fail_pending(error)
        names
      end

      # @return [Array<String>] what it listens to then
      def listen(lane, names, wanted)
        sqls = (names - wanted).map { |name| "UNLISTEN #{quote(name)}" } + (wanted - names).map { |name| "LISTEN #{quote(name)}" }
        return wanted if sqls.empty?

        taken = lane.batch(sqls, sqls.map { [] }, PATIENCE, true)
        raise Postgres.lost(lane.loss, false) if taken.is_a?(Symbol)

        wanted
      end

      def quote(name) = "\"#{name.gsub('"', '""')}\""
    end
    private_constant :Hub
  end
end
