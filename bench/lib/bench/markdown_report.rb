# frozen_string_literal: true

require "bench/report/standing"

module Bench
  # Tables for docs/performance.md, from the JSON of a run: one line per row, with the headline metric of each contender and of
  # the floor. To keep them narrow, a column without numbers is left out, and so is ours on sqpoll, which few machines should use.
  class MarkdownReport
    RATIOS = ["to the floor", "to the best peer"].freeze
    LEGEND = "The ratios are its own; that to the floor is of CPU time (of memory for parked strands). Less is better everywhere."

    # Whose contenders have a column, in this order.
    ROLES = %w[peer subject variant floor].freeze

    # Of a version, without the build and what else comes behind it.
    SHORT = /\A.*?\d+\.\d+(?:\.\d+)?|.*/

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
    def to_s = "#{table(@tables)}\n\n#{machine} #{LEGEND}\n"

    # The page with the tables in their places. One that has none becomes {#to_s}.
    # @param page [String]
    # @return [String]
    def within(page)
      return to_s if self.class.places(page).empty?

      filled = page.gsub(PLACE) do
        opening, names, closing = Regexp.last_match.values_at(:opening, :names, :closing)
        "#{opening}#{table(named(names.split(/, */)))}\n#{closing}"
      end
      filled.sub(%r{(?<=^<!-- bench:machine -->\n).*?(?=^<!-- /bench:machine -->$)}m) { "#{machine} #{LEGEND}\n" }
    end

    # What it was measured on.
    # @return [String]
    def machine
      facts = @data.fetch("facts").transform_values { |value| value.to_s[SHORT] }
      text = "Median of #{@data.fetch("samples")} on #{facts["cpu"]}, #{facts["cores"]} cores, #{facts["kernel"]}, " \
             "#{facts["ruby"]}, async #{facts["async"]}, ringspun #{facts["ringspun"]}, `#{SUBJECT}` on io_uring."
      @data.fetch("for_judgement") ? text : "#{text} **#{TextReport::NOT_FOR_JUDGEMENT}**"
    end

    private

    def named(names) = names.filter_map { |name| @tables.find { |table| table.name == name } }

    def table(tables)
      names = names_in(tables)
      lines = [cells(["", *names, *RATIOS]), cells(["---", *["---:"] * (names.size + RATIOS.size)])]
      lines += tables.flat_map(&:comparisons).map { |row| cells(line(row, names)) }
      lines.join("\n")
    end

    # Floors have names of their own, and one column.
    def names_in(tables)
      measured = tables.flat_map(&:comparisons).flat_map(&:measured).group_by(&:role)
      names = measured.values_at(*ROLES).map { |contenders| Array(contenders).map(&:name).uniq }
      names[-1] = ["floor"] if names.last.any?
      names.flatten - [Bench.subject_on("sqpoll")]
    end

    def line(row, names)
      [row.title, *names.map { |name| cell(row, name) }, times(row.subject&.floor_ratio), times(row.ratio)]
    end

    def cell(row, name)
      contender = row.contenders.find { |each| each.name == name || (name == "floor" && each.role == "floor") }
      return "-" unless contender
      return "n/a" unless contender.measured?

      contender.subject? ? "**#{contender.text}**" : contender.text
    end

    def times(ratio) = ratio ? format("%.2f x", ratio) : "-"
    def cells(texts) = "| #{texts.join(" | ")} |"
  end
end
