# frozen_string_literal: true

require "victor"

module Bench
  class Report
    # A bar for each contender of each row, as SVG. Lengths are in percent and texts in pixels, so that it fits any width. Rows
    # differ by orders of magnitude, so each has a scale of its own. A whisker spans the samples.
    class Bars
      TITLE = 24
      GAP = 10
      # Of the width, for the longest.
      FULL = 100.0

      # @param rows [Array<Standing::Row>]
      # @param line [Integer] pixels for a bar and its texts
      def initialize(rows, line: 30)
        @rows = rows.reject { |row| row.measured.empty? }
        @line = line
      end

      # For a page.
      # @return [String]
      def to_s = svg(template: :minimal, width: "100%", class: "bars")

      # A file of its own, which brings its colours.
      # @param style [String]
      # @param width [Integer] pixels
      # @return [String]
      def file(style, width:) = svg(style, template: :minimal, width:, xmlns: "http://www.w3.org/2000/svg", class: "bars")

      # @return [Integer] pixels
      def height = @rows.sum { |row| height_of(row) }

      private

      def svg(style = nil, **attributes)
        svg = Victor::SVG.new(height:, role: "img", "aria-label": words, **attributes)
        svg.tag("style", style) if style
        @rows.inject(0) { |top, row| draw(svg, row, top) }
        svg.render
      end

      def height_of(row) = TITLE + (row.measured.size * @line) + GAP

      # For who does not see it.
      def words
        @rows.map { |row| "#{row.label}: #{row.measured.map { |each| "#{each.name} #{each.text}" }.join(", ")}" }.join(". ")
      end

      def draw(svg, row, top)
        longest = row.measured.map(&:high).max
        svg.g(class: row.clear? ? nil : "pale") do
          svg.text(row.label, x: 0, y: top + 16, class: "row")
          row.measured.each_with_index { |each, index| bar(svg, each, longest, top + TITLE + (index * @line)) }
        end
        top + height_of(row)
      end

      def bar(svg, contender, longest, top)
        svg.text(contender.name, x: 0, y: top + 12)
        svg.text(contender.text, x: "100%", y: top + 12, "text-anchor": "end")
        svg.rect(x: 0, y: top + 16, width: percent(contender.value, longest), height: 8, rx: 1, class: "bar #{contender.role}")
        return unless contender.high > contender.low

        ends = { x1: percent(contender.low, longest), x2: percent(contender.high, longest) }
        svg.line(**ends, y1: top + 20, y2: top + 20, class: "whisker")
      end

      # A bar of no length would look like a missing one.
      def percent(value, longest) = format("%.2f%%", longest.positive? ? [value * FULL / longest, 0.3].max : 0.3)
    end
  end
end
