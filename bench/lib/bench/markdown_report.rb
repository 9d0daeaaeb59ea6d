# frozen_string_literal: true

module Bench
  # The table of docs/performance.md: one line per row, with the headline metric of each contender and of the floor. To keep it
  # narrow, a column without numbers is left out, and so is ours on sqpoll, which few machines should use.
  class MarkdownReport
    CONTENDERS = ["threads", "async", *URING_MACHINE_RINGS.keys, URING_MACHINE_FS, ConcurrentProcs::PEER, "sidekiq",
                  SUBJECT, Bench.subject_on("epoll"), SCHEDULED, DROP_IN, "floor"].freeze
    RATIOS = ["to the floor", "to the best peer"].freeze

    # In a page that has these marks only the text between them is replaced.
    BETWEEN = /(?<=^<!-- bench:table -->\n).*(?=^<!-- \/bench:table -->$)/m

    def self.marked?(page) = page.match?(BETWEEN)

    def initialize(facts, options, results)
      @facts = facts
      @options = options
      @results = results
    end

    def to_s
      header = ["", *names, *RATIOS]
      lines = [cells(header), cells(["---", *["---:"] * (header.size - 1)])]
      lines += results.flat_map { |result| result.comparisons.map { |row| cells(line(result.table, row)) } }
      "#{lines.join("\n")}\n\n#{footnote}\n"
    end

    def within(page) = self.class.marked?(page) ? page.sub(BETWEEN) { to_s } : to_s

    private

    # Without the tables that have a form of their own.
    def results = @results.select { |result| result.table.form == :columns }

    def names
      @names ||= CONTENDERS.select do |name|
        results.any? { |result| result.comparisons.any? { |row| row.value(name, result.table.headline) } }
      end
    end

    def line(table, row)
      metric = table.headline
      subject = table.contender(SUBJECT)
      [name(table, row), *names.map { |name| cell(row, name, metric) },
       times(subject && row.floor_ratio(subject, table.against_floor)),
       times(subject && row.peer_ratio(subject, metric))]
    end

    def name(table, row) = row.label == table.name ? table.title : "#{table.title}, #{row.label}"

    def cell(row, name, metric)
      value = row.value(name, metric)
      return name == "floor" ? "-" : "n/a" unless value

      text = Metric[metric].brief(value)
      name == SUBJECT ? "**#{text}**" : text
    end

    def times(ratio) = ratio ? format("%.2f x", ratio) : "-"
    def cells(texts) = "| #{texts.join(" | ")} |"

    def footnote
      facts = @facts.to_h
      text = "Median of #{@options.samples} on #{facts[:cpu]}, #{facts[:cores]} cores, #{facts[:kernel]}, " \
             "#{facts[:ruby]}, async #{facts[:async]}, ringspun #{facts[:ringspun]}, " \
             "`#{SUBJECT}` on io_uring. The ratios are its own; that to the floor is of CPU time (of memory for parked " \
             "strands). Less is better everywhere."
      @options.quick? ? "#{text} **#{TextReport::NOT_FOR_JUDGEMENT}**" : text
    end
  end
end
