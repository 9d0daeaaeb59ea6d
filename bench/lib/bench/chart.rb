# frozen_string_literal: true

require "cgi/escape"

module Bench
  # A horizontal bar chart as SVG. Tables differ by orders of magnitude, so every row has a scale of its own: its
  # longest bar is the slowest contender, and each bar carries its number.
  class Chart
    # A contender without a colour is not drawn.
    COLOURS = { "threads" => "#9aa5b1", "async" => "#e0a458", "uringmachine" => "#b07aa1",
                ConcurrentProcs::PEER => "#b5651d", SUBJECT => "#2a7de1",
                Bench.subject_on("epoll") => "#8fbcee", DROP_IN => "#5aa9a3", "engine" => "#1b4f91", "floor" => "#3c4858" }.freeze
    BAR = 12
    GAP = 22
    LEFT = 240
    WIDTH = 520
    RIGHT = 120
    KEY = 92

    Group = Data.define(:label, :bars)
    Bar = Data.define(:name, :value, :text)

    def initialize(results)
      @groups = results.flat_map { |result| result.comparisons.filter_map { |row| group(result.table, row) } }
    end

    def to_s
      top = 48
      body = @groups.map do |group|
        drawn = draw(group, top)
        top += group.bars.size * BAR + GAP
        drawn
      end
      [head(top), legend, body, "</svg>", ""].flatten.join("\n")
    end

    private

    def group(table, row)
      metric = Metric[table.headline]
      bars = table.contenders.filter_map do |contender|
        name = contender.floor? ? "floor" : contender.name
        value = row.median(contender, metric.name) if COLOURS.key?(name)
        Bar.new(name:, value:, text: metric.brief(value)) if value
      end
      label = row.label == table.name ? table.title : "#{table.title}, #{row.label}"
      Group.new(label:, bars:) unless bars.empty?
    end

    def head(height)
      width = LEFT + WIDTH + RIGHT
      %(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" width="#{width}" height="#{height}" ) +
        %(font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="#ffffff"/>)
    end

    def legend
      drawn = @groups.flat_map { |group| group.bars.map(&:name) }
      keys = COLOURS.slice(*drawn)
      left = [LEFT, LEFT + WIDTH + RIGHT - keys.size * KEY].min
      keys.each_with_index.map do |(name, colour), index|
        x = left + index * KEY
        [rectangle(x, 16, 10, 10, colour), text(x + 16, 25, name)]
      end
    end

    def draw(group, top)
      slowest = group.bars.map(&:value).max
      bars = group.bars.each_with_index.map do |bar, index|
        y = top + index * BAR
        # A bar of no length would look like a missing one.
        length = slowest.zero? ? 1 : [bar.value * WIDTH / slowest.to_f, 1].max
        [rectangle(LEFT, y, length, BAR - 2, COLOURS.fetch(bar.name), kind: "bar"),
         text(LEFT + length + 6, y + 9, bar.text)]
      end
      [text(LEFT - 10, top + group.bars.size * BAR / 2 + 3, group.label, anchor: "end"), *bars].join("\n")
    end

    def rectangle(x, y, width, height, colour, kind: "key")
      format('<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>', kind, x, y, width, height, colour)
    end

    def text(x, y, content, anchor: "start")
      format('<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222222">%s</text>', x, y, anchor, CGI.escapeHTML(content))
    end
  end
end
