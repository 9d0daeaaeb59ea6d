# frozen_string_literal: true

require "erb"
require "fileutils"
require "json"

require "bench/report/standing"
require "bench/report/run"
require "bench/report/rubies"
require "bench/report/bars"
require "bench/report/comparison"
require "bench/report/curves"
require "bench/report/seed"
require "bench/report/contents"
require "bench/report/numbers"
require "bench/report/verdict"

module Bench
  # A page that shows what a run has measured: index.html, which needs no other file, no network and no script.
  class Report
    # Where every run writes it, unless it is told another folder.
    FOLDER = File.join(ROOT, "tmp/report")

    # What a reader sees first, here and in the README: table and row => what its bars show.
    HEADLINE = { %w[switch switch] => "a switch",
                 %w[echo N=64] => "echo of 64 bytes, 64 connections, CPU time",
                 %w[http http] => "200 requests by Net::HTTP at once",
                 %w[jobs_calls jobs_calls] => "1,000 jobs that wait 100 ms for HTTP",
                 %w[parked 30,000] => "memory of a strand that waits",
                 %w[idle_streams 10] => "an answer on one of 10 idle connections, CPU time" }.freeze

    # What bars show.
    METRICS = { real: "seconds on the clock", total: "CPU time", real_ns: "time on the clock of an operation",
                cpu_ns: "CPU time of an operation", rss_per_strand: "memory of a strand", rss_per_idle: "memory of a connection",
                held: "memory", text: "code", gap_worst: "the longest gap", backend: "CPU time of the server" }.freeze
    private_constant :METRICS

    # @param paths [Array<String>] of the JSON of runs
    # @return [Hash] the first of them, with each table as the last has it that ran it. Under "others" there are beside it runs of
    #   another Ruby, and those with a name of their own
    # @raise [Invalid] when one is none
    def self.read(*paths)
      runs = paths.map { |path| read_one(path) }
      first, *others = runs.group_by { |data| data["name"] || Run.ruby(data) }.values.map { |set| merged(set) }
      others.empty? ? first : first.merge("others" => others)
    end

    def self.merged(runs)
      tables = runs.flat_map { |data| data.fetch("tables") }.to_h { |table| [table.fetch("name"), table] }
      runs.first.merge("tables" => tables.values, "for_judgement" => runs.all? { |data| data.fetch("for_judgement") },
                       "warnings" => runs.flat_map { |data| data.fetch("warnings") }.uniq | differences(runs))
    end

    # What runs have been made by, where it is not the same for all.
    def self.differences(runs)
      facts = runs.map { |data| data.fetch("facts").slice("cpu", "cores", "kernel", "ruby").merge(data.slice("samples")) }
      facts.first.keys.filter_map do |name|
        values = facts.map { |each| each[name] }.uniq
        "these runs differ in #{name}: #{values.join(", ")}" if values.size > 1
      end
    end

    def self.read_one(path)
      JSON.parse(File.read(path)).tap { |data| new(data).to_s }
    rescue SystemCallError, JSON::ParserError, KeyError, ArgumentError, TypeError, NoMethodError => error
      raise Invalid, "cannot read the JSON of a run from #{path}: #{error.message.lines.first.chomp}"
    end

    private_class_method :merged, :differences, :read_one

    # @return [Comparison, nil]
    attr_reader :comparison

    # @param data [Hash] as {JsonReport} has it
    # @param old [Hash, nil] of an earlier run
    def initialize(data, old = nil)
      @data = data
      @runs = Run.all(data)
      @standing = @runs.first.standing
      @comparison = Comparison.new(Standing.new(old), @standing) if old
    end

    # @return [Array<Standing::Row>] those of {HEADLINE} that were measured, by their words
    def headline
      rows = HEADLINE.filter_map { |(table, label), words| @standing.row(table, label)&.with(label: words) }
      rows.reject { |row| row.measured.empty? }
    end

    # Ours beside the best peer of each.
    # @return [Bars]
    def headline_bars(**) = Bars.new(headline.map { |row| row.with(contenders: [row.best_peer, row.subject].compact) }, **)

    # @param name [String] of a file of this program's
    # @return [String]
    def self.template(name) = File.read(File.join(__dir__, "report", name))

    # @return [String] the path of the page
    def write(folder)
      FileUtils.mkdir_p(folder)
      File.join(folder, "index.html").tap { |path| File.write(path, to_s) }
    end

    # @return [String]
    def to_s = ERB.new(template("page.html.erb"), trim_mode: "-").result(binding)

    private

    # A table with its chart and its numbers.
    def section(table)
      @section ||= ERB.new(template("table.html.erb"), trim_mode: "-")
      @section.result(binding)
    end

    def template(name) = self.class.template(name)

    def h(text) = ERB::Util.html_escape(text)

    # Text in which code is between grave accents.
    def prose(text) = h(text).gsub(/`([^`]+)`/, '<code>\1</code>')

    def bars_are(metric) = METRICS.fetch(metric.name) { metric.header }

    def groups = @groups ||= Contents.new(@runs, seeds).groups

    # The same table of the runs that stand beside the first.
    # @return [Hash{Run => Standing::Table}]
    def beside(table)
      return {} unless @standing.tables.include?(table)

      @runs.drop(1).to_h { |run| [run, run.standing.tables.find { |each| each.name == table.name }] }.compact
    end

    def chart(table) = table.grows_by ? Curves.new(table) : Bars.new(table.rows)

    def seeds = @seeds ||= Seed.all

    # The tables of the seed that this one answers to.
    # @return [Array<Seed::Table>]
    def seed_tables(table) = seeds.flat_map(&:tables).select { |each| each.name == table.name }

    # Those that were missed come first.
    # @return [Array<Array(Standing::Table, Standing::Target)>]
    def targets
      all = @standing.tables.flat_map { |table| table.targets.map { |target| [table, target] } }
      %i[missed open withdrawn unknown met].flat_map { |wanted| all.select { |_, target| target.state == wanted } }
    end

    def verdict = @verdict ||= Verdict.new(@standing)

    def machine = @runs.first.machine

    # @return [Array<Array(Run, Standing::Row)>]
    def losses = @runs.flat_map { |run| run.standing.losses.map { |row| [run, row] } }

    # Why contenders have no numbers, each reason once.
    # @return [Hash{String => Array<String>}] reason => contenders, with their tables
    def missing
      @missing ||= @runs.flat_map { |run| run.standing.without_numbers }.group_by(&:first).transform_values do |all|
        all.map { |_, name, table| [name, table.title] }.uniq.group_by(&:first)
           .map { |name, tables| "#{name} (#{tables.map(&:last).join("; ")})" }
      end
    end

    def facts = @data.fetch("facts").reject { |_, value| value.to_s.empty? }

    def times(ratio) = ratio ? Kernel.format("%.2f x", ratio) : ""

    # A table as a program prints it.
    # @param label [String] for who does not see what it belongs to
    def printed(title, label, text)
      "<figure><figcaption>#{h title}</figcaption><pre class=\"scroll\" tabindex=\"0\" role=\"region\" " \
        "aria-label=\"#{h "#{label}: #{title}"}\">#{h text}</pre></figure>\n"
    end
  end
end
