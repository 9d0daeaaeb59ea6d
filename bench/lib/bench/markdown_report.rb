# frozen_string_literal: true

module Bench
  # The table for the README: one line per row, the headline metric of each contender, and what the floor says.
  class MarkdownReport
    HEADER = ["", "threads", "async", "ringspun", "floor", "to the floor", "to the best peer"].freeze

    def initialize(facts, options, results)
      @facts = facts
      @options = options
      @results = results
    end

    def to_s
      lines = [cells(HEADER), cells(["---", *["---:"] * (HEADER.size - 1)])]
      lines += @results.flat_map { |result| result.comparisons.map { |row| cells(line(result.table, row)) } }
      "#{lines.join("\n")}\n\n#{footnote}\n"
    end

    private

    def line(table, row)
      metric = table.headline
      subject = table.contender(SUBJECT)
      [name(table, row), brief(table, row, "threads", metric), brief(table, row, "async", metric),
       "**#{brief(table, row, SUBJECT, metric)}**", floor(row, metric),
       times(subject && row.floor_ratio(subject, table.against_floor)),
       times(subject && row.peer_ratio(subject, metric))]
    end

    def name(table, row) = row.label == table.name ? table.title : "#{table.title}, #{row.label}"

    def brief(table, row, name, metric)
      contender = table.contender(name)
      value = contender && row.median(contender, metric)
      value ? Metric[metric].brief(value) : "n/a"
    end

    def floor(row, metric)
      value = row.value("floor", metric)
      value ? Metric[metric].brief(value) : "-"
    end

    def times(ratio) = ratio ? format("%.2f x", ratio) : "-"
    def cells(texts) = "| #{texts.join(" | ")} |"

    def footnote
      facts = @facts.to_h
      text = "Median of #{@options.samples} on #{facts[:cpu]}, #{facts[:cores]} cores, #{facts[:kernel]}, " \
             "#{facts[:ruby]}, async #{facts[:async]}, ringspun #{facts[:ringspun]}. The ratio to the floor is of " \
             "CPU time (of memory for parked strands). Less is better everywhere."
      @options.quick? ? "#{text} **#{TextReport::NOT_FOR_JUDGEMENT}**" : text
    end
  end
end
