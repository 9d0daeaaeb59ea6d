# frozen_string_literal: true

module Ringspun
  module Cluster
    # The place of one worker: who has it, who is to have it next, and when the next one may be started.
    #
    # @api private
    class Slot
      attr_reader :index, :starts, :pause
      attr_accessor :process, :successor

      def initialize(index, backoff)
        @index = index
        @backoff = backoff
        @starts = 0
        @pause = 0
      end

      def count_start
        @starts += 1
        @due = nil
      end

      # One that is ready, now or ever.
      def came_up = @came_up = true

      # Whether all that were started here have failed.
      def never_came_up? = !@came_up && @failed

      # True when that changes the pause.
      def failed(now)
        before = @pause
        @failed = true
        @pause = @pause.zero? ? @backoff.begin : [@pause * 2, @backoff.end].min
        @due = now + @pause
        @pause != before
      end

      def restart(now)
        @pause = 0
        @due = now
      end

      # Nobody is here, nor coming.
      def next_start = (@due unless @process || @successor)

      def due?(now) = next_start&.<=(now)

      def promote
        @process, @successor = @successor, nil
      end
    end
  end
end
