# frozen_string_literal: true

module Ringspun
  module Cluster
    # One of the cluster's worker indices: its process, during a reload the successor, and the time of the next start.
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

      # Called when a process of the slot is ready.
      def came_up = @came_up = true

      # Whether every start has failed.
      def never_came_up? = !@came_up && @failed

      # Schedules a start after a longer pause. True if the pause has changed, false once it is the longest.
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

      # When the next start is due; nil while the slot has a process.
      def next_start = (@due unless @process || @successor)

      def due?(now) = next_start&.<=(now)

      def promote
        @process, @successor = @successor, nil
      end
    end
  end
end
