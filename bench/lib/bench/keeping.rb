# frozen_string_literal: true

require "fileutils"

module Bench
  # Measures what is kept in bench/results: the figures that the repository shows.
  class Keeping
    BENCH = File.join(ROOT, "bin/bench")

    # Ours on io_uring with a thread of the kernel's has no column on any page that is made of these.
    BACKENDS_SHOWN = "uring,epoll"
    private_constant :BACKENDS_SHOWN

    # @param results [String] the folder of what is kept
    # @param parts [String] the folder of what was measured, table by table
    # @param run [#call] runs a command, given the environment that it gets beside its own; true when it went well
    def initialize(results: File.join(ROOT, "bench/results"), parts: File.join(ROOT, "tmp/keep"), run: method(:system))
      @results = results
      @parts = parts
      @run = run
    end

    # The main rows on each Ruby. They take turns table by table, so that each row meets the machine at one speed.
    # @param rubies [Hash{String => Array(Hash, Array<String>)}] name => environment and options of bin/bench
    # @return [Array<String>] what was written
    def main_rows(rubies)
      parts = Hash.new { |all, name| all[name] = [] }
      Options::MAIN_ROWS.map(&:first).product(rubies.to_a) do |table, (name, (environment, options))|
        parts[name] << measure("#{name}-#{table}", environment, "--main", "--only", table, *options)
      end
      parts.map { |name, paths| keep("main-#{name}", Report.read(*paths)) }
    end

    # Tables as they are by themselves, for the place of those that are kept.
    # @param globs [Array<String>] of names of tables; none: all
    # @return [Array<String>] what was written
    def tables(globs)
      part = measure("tables", {}, *(globs.any? ? ["--only", globs.join(",")] : ["--all"]),
                     "--brief", "--backends", BACKENDS_SHOWN)
      kept = File.join(@results, "ruby-3.3.json")
      all = names(kept) - names(part)
      data = all.empty? ? Report.read(part) : Report.read(kept, part)
      raise Invalid, "what is kept is of another Ruby than this run: measure all tables" if data.key?("others")

      [keep("ruby-3.3", data)]
    end

    private

    # A contender that has failed is in the report, and ends nothing.
    def measure(name, environment, *options)
      FileUtils.mkdir_p(@parts)
      path = File.join(@parts, "#{name}.json")
      FileUtils.rm_f(path)
      @run.call(environment, BENCH, *options, "--json", path)
      File.exist?(path) ? path : raise(Invalid, "bin/bench #{options.join(" ")} has measured nothing")
    end

    def names(path) = JSON.parse(File.read(path)).fetch("tables").map { |table| table.fetch("name") }

    def keep(name, data) = File.join(@results, "#{name}.json").tap { |path| File.write(path, JsonReport.text(data)) }
  end
end
