# frozen_string_literal: true

module Ringspun
  module Jobs
    # Lends each of some things to one caller at a time, strand or thread, in the order in which they come. A thing that comes
    # back is handed to the next caller: else a caller that gives it back and wants it again at once would always be first.
    #
    # @api private
    class Lender
      # None was free in time.
      class TimeoutError < Error; end

      NEVER = { Object => :never }.freeze
      private_constant :NEVER

      # @param things [Array<Object>]
      def initialize(things)
        @lock = ShortLock.new
        @free = things.dup
        @gates = [] # of the callers that wait, the first one first
        @lent = {}.compare_by_identity # gate of the caller => its thing
      end

      # May switch strands.
      #
      # @param timeout [Numeric, nil] seconds
      # @yieldparam thing [Object]
      # @return [Object] the block's value
      # @raise [TimeoutError]
      def lend(timeout = nil)
        gate = Thread::Queue.new
        begin
          enter(gate)
          yield gate.pop(timeout: timeout) || raise(TimeoutError, "none was free in time")
        ensure
          left = leave(gate)
        end
      ensure
        leave(gate) unless left # the thread was killed as it began to leave, which happens only once
      end

      private

      def enter(gate)
        @lock.synchronize do
          @gates << gate
          hand_over
        end
      end

      # A caller may be ended anywhere: by an exception, or without one when its thread is killed. So whoever hands a thing over
      # notes it in @lent, and the caller can give it back from any point.
      def leave(gate)
        Thread.handle_interrupt(NEVER) do
          @lock.synchronize do
            @gates.delete(gate)
            @free << @lent.delete(gate) if @lent.key?(gate)
            hand_over
          end
          true
        end
      end

      def hand_over
        while @gates.any? && @free.any?
          gate = @gates.shift
          gate << (@lent[gate] = @free.shift)
        end
      end
    end
    private_constant :Lender
  end
end
