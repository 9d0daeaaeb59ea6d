# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # Lines over time as SVG: drawn here, so that a page needs no script for it.
      #
      # @api private
      class Chart
        # The picture, and its margins: on the left and below for the numbers of the axes. In units of the SVG, which pages scale.
        WIDTH = 600
        HEIGHT = 160
        LEFT = 56
        BOTTOM = 24
        TOP = 8
        STEPS = [1, 2, 5, 10].freeze

        # @param title [String]
        # @param seconds [Numeric] how far it goes back
        # @param lines [Hash{String => Array<Array(Numeric, Numeric)>}] by their names: points of time and value
        # @param now [Numeric] the time at the right edge
        # @yieldparam value [Numeric]
        # @yieldreturn [String] the value as it is written
        def initialize(title, seconds, lines, now, &written)
          @title = title
          @seconds = seconds
          @lines = lines
          @now = now
          @written = written
          @top = round_up(lines.each_value.flat_map { |points| points.map(&:last) }.max || 0)
        end

        # @param markup [Markup]
        def draw(markup)
          markup.svg(class: "chart", viewBox: "0 0 #{WIDTH} #{HEIGHT}", role: "img", aria_label: summary) do
            [0, @top / 2.0, @top].each { |value| rule(markup, value) }
            markup.text("#{Words.duration(@seconds)} ago", x: LEFT, y: HEIGHT - 6)
            markup.text("now", x: WIDTH - 4, y: HEIGHT - 6, class: "end")
            @lines.each_value.with_index(1) do |points, number|
              markup.polyline(class: "line-#{number}", points: points.map { |point| place(point) }.join(" "))
            end
          end
          markup.p(class: "legend") do
            @lines.each.with_index(1) do |(name, points), number|
              markup.span("#{name}: #{points.any? ? @written.call(points.last.last) : "nothing yet"}", class: "key-#{number}")
            end
          end
        end

        private

        def summary
          now = @lines.map { |name, points| "#{name} #{points.any? ? @written.call(points.last.last) : "nothing yet"}" }
          "#{@title}: #{now.join(", ")}"
        end

        # To the next of 1, 2, 5, 10, 20 ...
        def round_up(value)
          return 1 if value <= 1

          power = 10**Math.log10(value).floor
          power * STEPS.find { |step| step * power >= value }
        end

        def rule(markup, value)
          height = y(value)
          markup.line(x1: LEFT, x2: WIDTH, y1: height, y2: height)
          markup.text(@written.call(value), x: LEFT - 6, y: (height + 4).round(1), class: "end")
        end

        def place((time, value))
          x = LEFT + ((WIDTH - LEFT) * (1 - ((@now - time) / @seconds.to_f)))
          "#{x.clamp(LEFT, WIDTH).round(1)},#{y(value)}"
        end

        def y(value) = (TOP + ((HEIGHT - TOP - BOTTOM) * (1 - (value / @top.to_f)))).round(1)
      end
      private_constant :Chart
    end
  end
end
