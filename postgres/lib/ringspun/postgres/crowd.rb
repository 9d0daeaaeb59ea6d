# frozen_string_literal: true

module Ringspun
  module Postgres
    # The statements of one machine that wait until a shared connection moves, or one for a single user is free.
    #
    # @api private
    class Crowd
      # The number of statements that one answer wakes. Each of those wakes as many when it is answered, so all get going soon,
      # and a thousand do not wake for each single answer.
      WAKES = 16

      # Seconds after which a statement looks by itself, because another machine may have freed a connection.
      LOOK = 1

      # Seconds that a statement waits once more when its time is over. Where the process had stood still, the answers of the
      # statements before it have come and were not read yet.
      LAST_LOOK = 0.05

      # Until when a statement waits, and how many others had been served when that was decided.
      Patience = Struct.new(:due, :served)
      private_constant :Patience

      # @param machine [Machine]
      # @param seconds [Numeric] that a statement waits while no other is served
      def initialize(machine, seconds)
        @machine = machine
        @seconds = seconds
        @woken = Condition.new
        @waiting = 0
        @served = 0
      end

      def waiting? = @waiting.positive?

      # @return [Patience] of a statement that begins to wait
      def patience = Patience.new(@machine.now + @seconds, @served)

      # A statement on a shared connection was answered.
      def moved = serve(WAKES)

      # A statement has left a connection that one user has at a time.
      def freed = serve(1)

      # Something else has changed, for which all look.
      def look = @woken.broadcast

      # May switch strands.
      #
      # @param deadline [Float, nil] of the statement
      # @return [:late, :exhausted, nil] nil: it is worth a try
      def wait(patience, deadline)
        due = [deadline, patience.due].compact.min
        left = due - @machine.now
        woken = pause(left.clamp(0, LOOK))
        return if !woken && left > LOOK
        return :late if !woken && due == deadline

        woken || pause(LAST_LOOK) || patience.served != @served ? renew(patience) : :exhausted
      end

      private

      def serve(most)
        @served += 1
        return if @waiting.zero?

        [most, @waiting].min.times { @woken.signal }
      end

      # @return [Boolean] whether it was woken
      def pause(seconds)
        @waiting += 1
        @woken.wait(timeout: seconds)
        true
      rescue Ringspun::TimeoutError
        false
      rescue Exception
        @woken.signal # it may have been woken for what it leaves to another one
        raise
      ensure
        @waiting -= 1
      end

      # Others are served, so it may be soon.
      def renew(patience)
        patience.due = @machine.now + @seconds
        patience.served = @served
        nil
      end
    end
    private_constant :Crowd
  end
end
