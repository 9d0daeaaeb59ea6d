# frozen_string_literal: true

require "erb"

module Bench
  # What the repository says of its speed, made from the JSON of what is kept: the tables of docs/performance.md, the rows and the
  # chart of the README, and docs/seeds.md.
  class Documents
    # The JSON of what is kept: a run of all tables, one with --scaling, and beside them a run on another Ruby, one of
    # Exq, and scripts of UringMachine's.
    RESULTS = %w[ruby-3.3 scaling ruby-4.0 exq uringmachine-scripts].map { |name| "#{ROOT}/bench/results/#{name}.json" }.freeze

    # The main rows on one Ruby after the other, which `rake bench:rubies` measures. There may be none.
    RUBIES = %w[default newer yjit].map { |name| "#{ROOT}/bench/results/main-#{name}.json" }.freeze

    CHART_WIDTH = 760
    CHART_LINE = 24
    CHART_STYLE = "svg.bars { background: var(--back); font-family: system-ui, sans-serif; }\n"
    private_constant :CHART_WIDTH, :CHART_LINE, :CHART_STYLE

    # @return [Hash] the run that is kept, with the tables of both
    def self.run = Report.read(*RESULTS)

    # @return [Hash, nil] the main rows on each Ruby
    def self.rubies
      paths = RUBIES.select { |path| File.exist?(path) }
      Report.read(*paths) if paths.any?
    end

    # @return [Documents] of it
    def self.kept = new(run, rubies)

    # @param data [Hash] as {JsonReport} has it
    # @param rubies [Hash, nil] the same, of the main rows
    def initialize(data, rubies = nil)
      @markdown = MarkdownReport.new(data)
      @report = Report.new(data)
      @rubies = rubies
      @standing = Report::Standing.new(data)
      @runs = Report::Run.all(data)
      @scripts = @runs.select(&:scripts_of).group_by(&:scripts_of)
    end

    # @return [Hash{String => String}] path in the repository => what it is to contain
    def to_h
      { "README.md" => readme, "docs/costs.svg" => "#{chart}\n", "docs/performance.md" => performance, "docs/seeds.md" => seeds }
    end

    # @return [Array<String>] the paths
    def write = to_h.each { |path, content| File.write(File.join(ROOT, path), content) }.keys

    private

    def read(path) = File.read(File.join(ROOT, path))

    def performance
      marks = { "rubies" => rubies, "losses" => losses, "targets" => targets }
      marks.reduce(@markdown.within(read("docs/performance.md"))) { |page, (mark, lines)| between(mark, page, lines) }
    end

    def rubies
      return ["No such run is kept yet."] unless @rubies

      rubies = Report::Rubies.new(@rubies)
      rows = [rubies.header, ["---", *["---:"] * (rubies.header.size - 1)], *rubies.lines]
      [*rows.map { |cells| "| #{cells.join(" | ")} |" }, "", rubies.machines]
    end

    # How many are met, and of each that is missed the word.
    def targets
      rows = MissedTargets::WORDS.flat_map { |word| missed.select { |_, target| target.reason&.word == word } }
      lines = rows.map do |table, target|
        "| #{table.title} | `#{target.sentence}` | #{target.measured} | #{target.reason.word} | #{target.reason.text} |"
      end
      [Report::Verdict.new(@standing).targets_in_words, "", "| | target | measured | | why, or what next |",
       "| --- | --- | ---: | --- | --- |", *lines]
    end

    def missed = @standing.tables.flat_map { |table| table.targets.map { |target| [table, target] } }

    # Those that are beyond both spreads, the largest first, and then those of the runs beside it.
    def losses
      rows = [*@runs, *(@rubies ? Report::Run.all(@rubies).drop(1) : [])].flat_map do |run|
        run.standing.clear_losses.map do |loss|
          title = run.beside? ? "#{run.name}: #{loss.title}" : loss.title
          format("| %s | %s | %s | %s | %.2f x |", title, loss.peer.name, loss.peer.text, loss.ours.text, loss.ratio)
        end
      end
      ["| | best peer | its | ringspun | |", "| --- | --- | ---: | ---: | ---: |", *rows]
    end

    # The page with other lines between a pair of marks.
    def between(mark, page, lines)
      page.sub(%r{(?<=^<!-- bench:#{mark} -->\n).*?(?=^<!-- /bench:#{mark} -->$)}m) { "#{lines.join("\n")}\n" }
    end

    def chart
      @report.headline_bars(line: CHART_LINE).file(Report.template("chart.css") + CHART_STYLE, width: CHART_WIDTH)
    end

    def readme = between("headline", read("README.md"), headline)

    def headline
      ["| | threads | async | ringspun |", "| --- | ---: | ---: | ---: |", *@report.headline.map { |row| line(row) }, "",
       @markdown.machine]
    end

    def line(row)
      best = row.measured.select { |each| each.peer? || each.subject? }.min_by(&:value)
      cells = [row.named("threads"), row.named("async"), row.subject]
      cells[0] ||= row.best_peer unless cells[1]
      texts = cells.map { |each| each ? cell(each, best) : "-" }
      "| #{row.label}#{": **we lose**" if row.ratio&.> 1} | #{texts.join(" | ")} |"
    end

    def cell(contender, best)
      text = contender.equal?(best) ? "**#{contender.text}**" : contender.text
      %w[threads async ringspun].include?(contender.name) ? text : "#{text} (#{contender.name})"
    end

    def seeds = ERB.new(Report.template("seeds.md.erb"), trim_mode: "-").result(binding)
  end
end
