# frozen_string_literal: true

module Bench
  class Report
    # How a run came out, in numbers: rows in which Ringspun and a peer were measured, and targets.
    class Verdict
      STATES = { true => :met, false => :missed, nil => :unknown }.freeze
      WORDS = { met: "met", missed: "missed", unknown: "not measured" }.freeze

      # @param standing [Standing]
      def initialize(standing)
        @rows = standing.tables.flat_map(&:rows).select(&:ratio)
        @targets = standing.tables.flat_map(&:targets)
      end

      # @return [Integer] of rows in which both were measured
      def rows = @rows.size

      # @return [Integer] of rows in which ours takes less than every peer, beyond what samples lie apart
      def first = @rows.count { |row| row.clear? && row.ratio <= 1 }

      # @return [Integer] of rows in which a peer takes less, beyond that
      def behind = @rows.count { |row| row.clear? && row.ratio > 1 }

      # @return [Integer] of rows in which samples overlap
      def level = rows - first - behind

      # @return [Hash{Symbol => Integer}] state => how many targets
      def targets = WORDS.to_h { |state, _| [state, @targets.count { |target| STATES.fetch(target.met) == state }] }

      # @return [String]
      def in_words
        "first in #{first} of #{rows} rows, behind in #{behind}, level with the best peer in #{level}"
      end
    end
  end
end
