# frozen_string_literal: true

require "erb"
require "fileutils"
require "json"

require "bench/report/standing"
require "bench/report/bars"
require "bench/report/comparison"

module Bench
  # A page that shows what a run has measured: index.html, which needs no other file, no network and no script.
  class Report
    # Where every run writes it, unless it is told another folder.
    FOLDER = File.join(ROOT, "tmp/report")

    # What a reader sees first: rows of the README.
    HEADLINE = [["switch", "switch"], ["echo", "N=64"], ["http", "http"], ["jobs_calls", "jobs_calls"], ["parked", "30,000"],
                ["idle_streams", "10"]].freeze

    # The published benchmarks that the product answers to: title => the tables that answer.
    SEEDS = {
      "UringMachine: benchmarks" => %w[pipe socketpair mutex_cpu mutex_io queue],
      "Concurrently: performance, Ruby and mruby" => %w[call_methods calls_awaiting wait_methods call_methods_waiting mruby
                                                        mruby_memory],
      "Exq: throughput of the enqueuer" => %w[jobs_seed jobs_enqueue],
      "em-pg-client: benchmarks" => %w[pg_parallel pg_streams]
    }.freeze

    # What bars show.
    METRICS = { real: "seconds on the clock", total: "CPU time", real_ns: "time on the clock of an operation",
                cpu_ns: "CPU time of an operation", rss_per_strand: "memory of a strand", rss_per_idle: "memory of a connection",
                held: "memory", text: "code", gap_worst: "the longest gap", backend: "CPU time of the server" }.freeze
    private_constant :METRICS

    # @param path [String] of the JSON of a run
    # @return [Hash]
    # @raise [Options::Invalid] when it is none
    def self.read(path)
      JSON.parse(File.read(path)).tap { |data| Standing.new(data) }
    rescue SystemCallError, JSON::ParserError, KeyError, TypeError, NoMethodError => error
      raise Options::Invalid, "cannot read the JSON of a run from #{path}: #{error.message.lines.first.chomp}"
    end

    # @return [Comparison, nil]
    attr_reader :comparison

    # @param data [Hash] as {JsonReport} has it
    # @param old [Hash, nil] of an earlier run
    def initialize(data, old = nil)
      @data = data
      @standing = Standing.new(data)
      @comparison = Comparison.new(Standing.new(old), @standing) if old
    end

    # @return [String] the path of the page
    def write(folder)
      FileUtils.mkdir_p(folder)
      File.join(folder, "index.html").tap { |path| File.write(path, to_s) }
    end

    # @return [String]
    def to_s = ERB.new(template("page.html.erb"), trim_mode: "-").result(binding)

    private

    def template(name) = File.read(File.join(__dir__, "report", name))

    def h(text) = ERB::Util.html_escape(text)

    # Text in which code is between grave accents.
    def prose(text) = h(text).gsub(/`([^`]+)`/, '<code>\1</code>')

    def bars_are(metric) = METRICS.fetch(metric.name) { metric.header }

    def headline = HEADLINE.filter_map { |table, label| @standing.row(table, label) }.reject { |row| row.measured.empty? }

    # Without the contenders beside ours and the best peer.
    def duel(row) = row.with(contenders: [row.best_peer, row.subject].compact)

    # @return [Hash{String => Array<Standing::Table>}] sections with tables
    def sections
      named = SEEDS.transform_values { |names| @standing.tables.select { |table| names.include?(table.name) } }
      others = @standing.tables - named.values.flatten
      { **named, "All other tables" => others }.reject { |_, tables| tables.empty? }
    end

    def targets = @standing.tables.flat_map { |table| table.targets.map { |target| [table, target] } }

    def facts = @data.fetch("facts").reject { |_, value| value.to_s.empty? }

    def times(ratio) = ratio ? Kernel.format("%.2f x", ratio) : ""

    def range(table, contender)
      return "" unless contender.high > contender.low

      "#{table.metric.brief(contender.low)} to #{table.metric.brief(contender.high)}"
    end

    def word(met) = { true => "met", false => "missed", nil => "not measured" }.fetch(met)
  end
end
