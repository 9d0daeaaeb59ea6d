# frozen_string_literal: true

module Ringspun
  module Postgres
    # Opens the connections of a pool, for callers on all machines of the process: at most three at once. After a failure it is
    # one at a time, and after a pause that grows, so that a server that is down is not asked by everybody. Who waits for its turn
    # then hears what has failed, or that it is worth a try again.
    #
    # @api private
    class Opener
      # Connections that are opened at a time: each costs the server a new process, which takes from those that answer.
      AT_ONCE = 3

      # Seconds before the first try after a failure: doubled each time, up to the most, and by chance up to half as long again,
      # so that a server that comes back is not met by all processes at once. Even so callers hear why before `checkout_timeout`.
      BACK_OFF = 0.05
      BACK_OFF_MAX = 2.0

      # @param options [Options]
      def initialize(options)
        @place = options.hosts.join(", ")
        @lock = ShortLock.new
        @opening = 0
        @waiting = [] # for what comes of the tries of others
        @failures = 0
        @next_at = 0
        @failure = nil
        @closed = false
      end

      # @return [StatementTimeoutError] for a caller whose time is over while it waits for a connection to be opened
      def late = Postgres.late("no connection to #{@place} before the deadline#{last_try}", false)

      # @return [String, nil] what has become of it, while the server is down
      def last_try = @failure && "; the last try: #{@failure.message}"

      # From any thread. Tries that are under way go on.
      def close
        @lock.synchronize do
          @closed = true
          tell(closed)
        end
      end

      # May switch strands.
      #
      # @yieldreturn [Lane]
      # @return [Lane]
      # @raise what the block raises, here or for another caller
      def call(&)
        until (turn = take_turn) == :open
          outcome = wait(turn, nil)
          raise outcome.exception(outcome.message) if outcome.is_a?(Exception)
        end
        try(&)
      end

      private

      # @return [:open, Channel]
      def take_turn
        @lock.synchronize do
          raise closed if @closed
          next new_gate if @opening >= (@failures.zero? ? AT_ONCE : 1)

          @opening += 1
          :open
        end
      end

      def closed = ClosedError.new("the pool is closed")

      def new_gate = Channel.new(1).tap { |gate| @waiting << gate }

      def wait(gate, seconds)
        gate.pop(timeout: seconds)
      ensure
        @lock.synchronize { @waiting.delete(gate) }
      end

      # A caller that leaves early has learnt nothing of the server.
      def try
        outcome = :left
        back_off
        yield.tap { outcome = :opened }
      rescue StandardError => error
        outcome = error
        raise
      ensure
        now = Postgres.now # which is another clock under the lock
        @lock.synchronize { finish(outcome, now) }
      end

      # Shorter where an older try comes to a good end after all.
      def back_off
        loop do
          pause = pause_at(Postgres.now)
          gate = @lock.synchronize { new_gate if @failures.positive? && pause.positive? && !@closed }
          break unless gate && wait(gate, pause)
        end
        raise closed if @closed
      end

      def pause_at(now) = [@next_at - now, 0].max

      def finish(outcome, now)
        @opening -= 1
        case outcome
        when :opened then @failures = 0 and @failure = nil
        when Exception then note_failure(outcome, now)
        end
        tell(outcome)
      end

      def tell(outcome) = @waiting.each { |gate| gate.try_push(outcome) }.clear

      # Tries that had begun together count as one.
      def note_failure(error, now)
        @failure = error
        return if @failures.positive? && pause_at(now).positive?

        @failures += 1
        @next_at = now + ([BACK_OFF * (2**(@failures - 1)), BACK_OFF_MAX].min * (1 + (rand / 2)))
      end
    end
    private_constant :Opener
  end
end
