# frozen_string_literal: true

module Ringspun
  module Postgres
    # The time for which one user has a connection. Each checkout makes one, and all that asks the connection for that user shares
    # it: the session, its transactions, streams and COPYs. When it is over they ask no more, for the connection may be with the
    # next user.
    #
    # Strands and threads that outlive the block may be in the midst of a call when it ends: the connection is not given back
    # before they have left.
    #
    # @api private
    class Lease
      # Seconds for which its end waits for calls that are under way.
      PATIENCE = 5
      private_constant :PATIENCE

      # A mark for each call that is under way. A caller adds one before it looks whether the lease is over, and does so without a
      # method in between, where an interrupt would leave the mark behind. Several threads may add one at once, which an Array
      # bears and a number would not.
      #
      # @return [Array<true>]
      attr_reader :calls

      def initialize
        @calls = []
        @over = false
        @pid = Process.pid
      end

      # @return [Boolean]
      def over? = @over

      # Ends a call.
      def leave
        @calls.pop
        @wake&.call
      end

      # Runs the block as a call, or does nothing when it is over.
      def within
        inside = @calls.push(true)
        yield unless @over
      ensure
        leave if inside
      end

      # Ends it, and waits for the calls that are under way. May switch strands.
      #
      # @return [Boolean] whether none is under way any more
      def end
        @over = true
        return true if @calls.empty? || Process.pid != @pid # a forked child has marks of threads that it has not

        Postgres.giving_back { on_machine? ? await_on_machine : await(Postgres.now + PATIENCE) }
        @calls.empty?
      end

      private

      # Also outside of a run: the calls may be those of strands of this thread, which run only while its machine waits.
      def on_machine?
        scheduler = Fiber.current_scheduler
        scheduler.nil? ? Machine.current? : scheduler.is_a?(Scheduler)
      end

      # By a channel, for a call may be that of another thread.
      def await_on_machine
        left = Channel.new(1)
        @wake = -> { left.try_push(true) } # before the next look: whoever leaves after that sees it
        Ringspun.shield(deadline: PATIENCE) { left.pop until @calls.empty? }
      rescue Ringspun::TimeoutError
        nil # a call is still under way
      end

      def await(due)
        left = Thread::Queue.new
        @wake = -> { left.push(true) } # as above
        until @calls.empty?
          seconds = due - Postgres.now
          break unless seconds.positive? && left.pop(timeout: seconds)
        end
      end
    end
    private_constant :Lease
  end
end
