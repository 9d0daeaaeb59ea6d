# frozen_string_literal: true

module Bench
  class Report
    # Two runs beside each other: what has become faster or slower, of ours.
    class Comparison
      # A contender of a row whose samples of both runs lie apart.
      Change = Data.define(:row, :before, :now) do
        def ratio = now.value.to_f / before.value
        def faster? = ratio < 1
        def title = "#{row.title}: #{now.name}"
        def in_words = "#{Kernel.format("%.2f x", ratio)}  #{before.text} -> #{now.text}  #{title}"

        # @return [Standing::Row] for a chart
        def as_row = row.with(label: title, contenders: [before.with(name: "before"), now.with(name: "now")])
      end

      # @return [Array<Change>] the most slowed down first
      attr_reader :changes

      # @param before [Standing]
      # @param now [Standing]
      def initialize(before, now)
        pairs = now.tables.flat_map(&:rows).flat_map { |row| pairs_of(before.row(row.table.name, row.label), row) }
        @compared = pairs.size
        @remarks = []
        @remarks << "it ran on another machine (#{before.machine}), so the times tell little" unless before.machine == now.machine
        @remarks << "it ran by #{before.ruby}" unless before.ruby == now.ruby
        @changes = pairs.select { |change| change.before.apart?(change.now) }.sort_by { |change| -change.ratio }
      end

      def faster = @changes.select(&:faster?)
      def slower = @changes.reject(&:faster?)

      def in_words
        same = @compared - @changes.size
        counts = "#{faster.size} faster, #{slower.size} slower, #{same} the same within what their samples lie apart"
        [counts, *@remarks].join("; ")
      end

      private

      def pairs_of(before, now)
        return [] unless before

        now.measured.select(&:ours?).filter_map do |contender|
          other = before.measured.find { |each| each.name == contender.name }
          Change.new(now, other, contender) if other
        end
      end
    end
  end
end
