# frozen_string_literal: true

module Ringspun
  module Jobs
    # Lends each of some things to one caller at a time, strand or thread, in the order in which they come. What is given back
    # is handed to the next of them: whoever has brought it and wants it again at once would else be the first to take it.
    #
    # @api private
    class Turns
      # None was free in time.
      class TimeoutError < Error; end

      # @param things [Array<Object>]
      def initialize(things)
        @lock = Thread::Mutex.new
        @free = things.dup
        @gates = [] # of those who wait, the first one first
        @lent = {}.compare_by_identity # by the gates of those who have them
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
        leave(gate) unless left # a thread is killed once, and that was as it began to leave
      end

      private

      def enter(gate)
        locked do
          @gates << gate
          hand_over
        end
      end

      # A caller may go wherever it is: by an exception, or without one when its thread is killed. So what it has is written
      # down here, by whoever hands it over, and can be given back from any point.
      def leave(gate)
        Thread.handle_interrupt(Object => :never) do
          locked do
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

      # For a few instructions, so nobody waits here for other strands, and no strand that is cancelled is refused.
      def locked(&) = Fiber.blocking { @lock.synchronize(&) }
    end
    private_constant :Turns
  end
end
