# frozen_string_literal: true

module Bench
  class Report
    # How a run came out, in numbers: rows in which Ringspun and a peer were measured, and targets.
    class Verdict
      # State of a target => what it is called. `missed`: nothing is said about that one.
      WORDS = { met: "met", missed: "missed", open: "open", withdrawn: "withdrawn", unknown: "not measured" }.freeze

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
      def targets = WORDS.to_h { |state, _| [state, @targets.count { |target| target.state == state }] }

      # @return [Array<Standing::Target>] those that are missed, whatever is said of them
      def missed = @targets.select { |target| target.met == false }

      # @return [String]
      def targets_in_words
        counts = targets.values_at(:withdrawn, :open, :unknown)
        words = ["#{counts[0]} withdrawn for a reason", "#{counts[1]} left with the next idea", "#{counts[2]} not measured"]
        "Of #{@targets.size} targets #{targets.fetch(:met)} are met and #{missed.size} missed: #{words.first(2).join(", ")}" \
          "#{", #{targets.fetch(:missed)} without a word" if targets.fetch(:missed).positive?}. #{words.last.capitalize}."
      end

      # @return [String]
      def in_words
        "first in #{first} of #{rows} rows, behind in #{behind}, level with the best peer in #{level}"
      end
    end
  end
end
