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
      end

      # @return [Boolean]
      def over? = @over

      # Ends a call.
      def leave
        @calls.pop
        @left&.push(true)
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
        return true if @calls.empty?

        @left = Thread::Queue.new # before the next look: whoever leaves after that sees it
        Fiber.current_scheduler.is_a?(Scheduler) ? await_in_strand : Postgres.giving_back { await(Postgres.now + PATIENCE) }
        @calls.empty?
      end

      private

      def await_in_strand
        Ringspun.shield(deadline: PATIENCE) { @left.pop until @calls.empty? }
      rescue Ringspun::TimeoutError
        nil # a call is still under way
      end

      def await(due)
        until @calls.empty?
          left = due - Postgres.now
          break unless left.positive? && @left.pop(timeout: left)
        end
      end
    end
    private_constant :Lease
  end
end
