# frozen_string_literal: true

module Ringspun
  module Postgres
    # What a pool knows of sharing connections: how long its statements take, whether the server ends long waits for locks, and
    # what was held up by others. From any thread.
    #
    # @api private
    class Sharing
      # Seconds that a statement must have taken for a warning, and between two of them.
      LONG = 1
      QUIET = 60

      # Of a statement in a warning.
      LENGTH = 200
      private_constant :LONG, :QUIET, :LENGTH

      # @return [Histories]
      attr_reader :histories

      def initialize
        @histories = Histories.new
        @lock = ShortLock.new
        @bounded = true
        @held_up = @lock_waits = 0
      end

      # @return [Boolean] false: there is a pooler that does not let a client say so
      def bounded? = @bounded

      def unbounded = @bounded = false

      # @return [Hash{Symbol => Integer}]
      def metrics = @lock.synchronize { { held_up: @held_up, lock_waits: @lock_waits } }

      # A statement on a shared connection has waited too long for a lock.
      def note_lock_wait = @lock.synchronize { @lock_waits += 1 }

      # A statement was not sent, because of another one.
      def note_held_up = @lock.synchronize { @held_up += 1 }

      # A statement that has held up others has come to its end.
      #
      # @param sql [String, nil]
      # @param count [Integer] of the others
      def report(sql, seconds, count)
        return if seconds < LONG || !due?

        others = count == 1 ? "a statement that was to come behind it went to another one" : "#{count} others went to other ones"
        Warnings.tell("ringspun: #{text_of(sql)} took #{format("%.1f", seconds)} s on a shared connection, and #{others} " \
                      "after a pause. A slow statement is best asked in session { |s| ... }, which has a connection of its own")
      end

      private

      def due?
        @lock.synchronize do
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          next false if @next_at && now < @next_at

          @next_at = now + QUIET
          true
        end
      end

      def text_of(sql)
        return "a statement whose answer nobody waits for" unless sql

        text = sql.gsub(/\s+/, " ").strip
        (text.size > LENGTH ? "#{text[0, LENGTH]}..." : text).inspect
      end
    end
    private_constant :Sharing
  end
end
