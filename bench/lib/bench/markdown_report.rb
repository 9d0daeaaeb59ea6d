# frozen_string_literal: true

require "bench/report/standing"
require "bench/report/run"

module Bench
  # Tables for docs/performance.md, from the JSON of a run: one line per row, with the headline metric of each contender and of
  # the floor. To keep them narrow, a column without numbers is left out, and so is ours on sqpoll, which few machines should use.
  class MarkdownReport
    RATIOS = ["to the floor", "to the best peer"].freeze
    LEGEND = "The ratios are its own, of what the row shows or of what they name: CPU time, real time, memory, or what is " \
             "beyond the time that has to be waited for. Less is better everywhere."

    # What a ratio to the floor is of, where that is not what the row shows.
    OF = { cpu_ns: "CPU", total: "CPU", real_ns: "real", real: "real", beyond: "beyond", rss_per_strand: "memory",
           rss_per_idle: "memory", held: "memory" }.freeze

    # Whose contenders have a column, in this order.
    ROLES = %w[peer subject variant floor].freeze

    # A page has such a pair of marks for each of its tables, with the names of what goes there.
    PLACE = %r{(?<opening>^<!-- bench:table (?<names>[\w, ]+) -->\n).*?(?<closing>^<!-- /bench:table -->$)}m

    # @param page [String]
    # @return [Array<String>] names of the tables that have a place in it
    def self.places(page) = page.scan(PLACE).flat_map { |_, names, _| names.split(/, */) }

    # @param data [Hash] as {JsonReport} has it
    def initialize(data)
      @data = data
      @tables = Report::Standing.new(data).tables.select { |table| table.columns? && !table.grows_by }
    end

    # All in one.
    # @return [String]
    def to_s = "#{all}\n\n#{machine} #{LEGEND}\n"

    # The page with the tables in their places. One that has none becomes {#to_s}.
    # @param page [String]
    # @return [String]
    # @raise [Invalid] when one of them was not run
    def within(page)
      places = self.class.places(page)
      return to_s if places.empty?

      missing = places - @tables.map(&:name)
      raise Invalid, "the page has a place for #{missing.first}, which was not run" if missing.any?

      filled = page.gsub(PLACE) do
        opening, names, closing = Regexp.last_match.values_at(:opening, :names, :closing)
        "#{opening}#{table(named(names.split(/, */)))}\n#{closing}"
      end
      filled.sub(%r{(?<=^<!-- bench:machine -->\n).*?(?=^<!-- /bench:machine -->$)}m) { "#{machine} #{LEGEND}\n" }
    end

    # What it was measured on.
    # @return [String]
    def machine
      text = Report::Run.new(@data).machine
      @data.fetch("for_judgement") ? text : "#{text} **#{TextReport::NOT_FOR_JUDGEMENT}**"
    end

    # All tables as one.
    # @return [String]
    def all = table(@tables)

    private

    def named(names) = names.map { |name| @tables.find { |table| table.name == name } }

    def table(tables)
      names = names_in(tables)
      lines = [cells(["", *names, *RATIOS]), cells(["---", *["---:"] * (names.size + RATIOS.size)])]
      lines += tables.flat_map(&:rows).select { |row| shown?(row) }.map { |row| cells(line(row, names)) }
      lines.join("\n")
    end

    # A row that some have skipped is shown where all others have, for it says what one of ours costs more than another.
    def shown?(row) = row.comparison || (row.subject && row.measured.all?(&:ours?))

    # Floors have names of their own, and one column.
    def names_in(tables)
      measured = tables.flat_map(&:comparisons).flat_map(&:measured).group_by(&:role)
      names = measured.values_at(*ROLES).map { |contenders| Array(contenders).map(&:name).uniq }
      names[-1] = ["floor"] if names.last.any?
      names.flatten - [Bench.subject_on("sqpoll")]
    end

    def line(row, names)
      [row.title, *names.map { |name| cell(row, name) }, to_floor(row), times(row.ratio)]
    end

    def cell(row, name)
      contender = row.contenders.find { |each| each.name == name || (name == "floor" && each.role == "floor") }
      return "-" if contender.nil? || !(row.comparison || contender.measured?)
      return "n/a" unless contender.measured?

      contender.subject? ? "**#{contender.text}**" : contender.text
    end

    def to_floor(row)
      metric = row.table.against_floor
      of = OF.fetch(metric) unless metric == row.table.metric.name
      [times(row.subject&.floor_ratio), *of].first(row.subject&.floor_ratio ? 2 : 1).join(" ")
    end

    def times(ratio) = ratio ? format("%.2f x", ratio) : "-"
    def cells(texts) = "| #{texts.join(" | ")} |"
  end
end
