# frozen_string_literal: true

require "victor"

module Bench
  class Report
    # What an operation costs as the work grows: a line for each contender, both axes logarithmic. It fits any width; who is who
    # is in a list below it. Lines differ by the form of their points as well as by colour. More than six are drawn as several
    # charts with the same axes: ours beside others, then beside its other forms.
    class Curves
      WIDTH = 640
      HEIGHT = 380
      # Of the drawing, around the lines: room for what the axes say.
      LEFT = 92
      RIGHT = 36
      TOP = 14
      BOTTOM = 58

      # Lines of a chart at most.
      MOST = 6

      POINTS = %i[circle square triangle diamond cross].freeze

      # Each role has lines of one colour, and the subject's is thick.
      Line = Data.define(:name, :role, :number, :contenders) do
        # @return [Array<Array(Integer, Float)>] how much there is, and what it takes
        def points = contenders.map { |x, each| [x, each.value] }
      end

      # @param table [Standing::Table] whose rows grow
      def initialize(table)
        @table = table
        @lines = lines_of(table)
      end

      # @return [String]
      def to_s
        return "" if @lines.empty? || ys.empty?

        "#{charts.map { |title, lines| chart(title, lines) }.join("\n")}#{missing}"
      end

      private

      # What is drawn together, and its title.
      # @return [Array<Array(String, Array<Line>)>]
      def charts
        return [[nil, @lines]] if @lines.size <= MOST

        subject, rest = @lines.partition { |line| line.role == "subject" }
        peers, forms = %w[peer variant].map { |role| rest.select { |line| line.role == role } }
        bounds = (rest - peers - forms).sort_by(&:role) # floors and references, wherever there is room
        room = MOST - subject.size
        peers.concat(bounds.shift([room - peers.size, 0].max))
        { "Beside others" => peers, "Beside its other forms" => forms + bounds }.flat_map do |title, lines|
          lines.each_slice(room).map { |some| [title, subject + some] }
        end
      end

      def chart(title, lines)
        svg = Victor::SVG.new(template: :minimal, width: "100%", height: nil, viewBox: "0 0 #{WIDTH} #{HEIGHT}", role: "img",
                              "aria-label": words(lines), class: "curves")
        grid(svg)
        lines.each { |line| draw(svg, line) }
        caption = "<figcaption>#{title}</figcaption>" if title
        "<figure>#{caption}#{svg.render}\n#{legend(lines)}</figure>"
      end

      # Contenders with more than one point.
      def lines_of(table)
        found = table.rows.flat_map { |row| row.measured.map { |each| [number_of(row), each] } }
        lines = found.group_by { |_, each| [each.name, each.role] }.select { |_, contenders| contenders.size > 1 }
        counts = Hash.new(0)
        lines.map { |(name, role), contenders| Line.new(name:, role:, number: (counts[role] += 1) - 1, contenders:) }
      end

      def number_of(row) = Integer(row.label.delete(","), 10)

      # For who does not see it.
      def words(lines)
        lines.map do |line|
          "#{line.name}: #{line.points.map { |x, y| "#{@table.metric.brief(y)} with #{Metric.thousands(x)}" }.join(", ")}"
        end.join(". ")
      end

      def grid(svg)
        xs.each do |x|
          svg.line(x1: across(x), x2: across(x), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid")
          svg.text(Metric.thousands(x), x: across(x), y: HEIGHT - BOTTOM + 22, "text-anchor": "middle")
        end
        decades.each do |y|
          svg.line(x1: LEFT, x2: WIDTH - RIGHT, y1: up(y), y2: up(y), class: "grid")
          svg.text(@table.metric.brief(y), x: LEFT - 8, y: up(y) + 5, "text-anchor": "end")
        end
        svg.text(@table.grows_by, x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle", class: "row")
      end

      def draw(svg, line)
        places = line.points.map { |x, y| [across(x), up(y)] }
        svg.g(class: "line #{line.role} n#{line.number % 5}") do
          svg.polyline(points: places.map { |place| place.join(",") }.join(" "))
          places.each { |x, y| point(svg, POINTS[line.number % POINTS.size], x, y) }
          line.contenders.each { |x, each| whisker(svg, across(x), each) }
        end
      end

      # From the least of the samples to the most.
      def whisker(svg, x, contender)
        svg.line(x1: x, x2: x, y1: up(contender.low), y2: up(contender.high), class: "whisker") if contender.high > contender.low
      end

      def point(svg, form, x, y)
        case form
        when :circle then svg.circle(cx: x, cy: y, r: 5)
        when :square then svg.rect(x: x - 5, y: y - 5, width: 10, height: 10)
        else svg.polygon(points: corners(form).map { |right, down| "#{(x + right).round(1)},#{(y + down).round(1)}" }.join(" "))
        end
      end

      def corners(form)
        { triangle: [[0, -6], [6, 5], [-6, 5]], diamond: [[0, -7], [7, 0], [0, 7], [-7, 0]],
          cross: [[-6, -2], [-2, -2], [-2, -6], [2, -6], [2, -2], [6, -2], [6, 2], [2, 2], [2, 6], [-2, 6], [-2, 2], [-6, 2]] }
          .fetch(form)
      end

      def legend(lines)
        items = lines.map do |line|
          svg = Victor::SVG.new(template: :minimal, width: 28, height: 14, viewBox: "0 0 28 14", "aria-hidden": "true",
                                class: "curves")
          svg.g(class: "line #{line.role} n#{line.number % 5}") do
            svg.polyline(points: "0,7 28,7")
            point(svg, POINTS[line.number % POINTS.size], 14, 7)
          end
          "<li>#{svg.render} #{ERB::Util.html_escape(line.name)}</li>"
        end
        "<ul class=\"legend\">#{items.join}</ul>"
      end

      # Where a line stops, and why; and failures. What has no line at all is told with the other tables' contenders.
      def missing
        there = @lines.map(&:name)
        without = @table.rows.flat_map { |row| row.contenders.select(&:remark).map { |each| [each, row.label] } }
        told = without.select { |each, _| there.include?(each.name) || each.remark.start_with?("FAILED") }
        remarks = told.group_by { |each, _| [each.name, each.remark] }.map do |(name, remark), all|
          "#{name} with #{all.map(&:last).join(" and ")}: #{remark}"
        end
        "\n<p class=\"faint\">#{ERB::Util.html_escape(remarks.join("; "))}</p>" if remarks.any?
      end

      def xs = @lines.flat_map { |line| line.points.map(&:first) }.uniq.sort
      def ys = @lines.flat_map { |line| line.points.map(&:last) }.select(&:positive?)

      # Powers of ten around all values.
      def decades
        first, last = ys.minmax.then { |least, most| [Math.log10(least).floor, Math.log10(most).ceil] }
        (first..[last, first + 1].max).map { |power| 10.0**power }
      end

      def across(x) = place(x, *xs.minmax, LEFT, WIDTH - RIGHT)
      def up(y) = place([y, decades.first].max, *decades.minmax, HEIGHT - BOTTOM, TOP)

      def place(value, least, most, from, to)
        share = least == most ? 0.5 : Math.log10(value.to_f / least) / Math.log10(most.to_f / least)
        (from + ((to - from) * share)).round(1)
      end
    end
  end
end
