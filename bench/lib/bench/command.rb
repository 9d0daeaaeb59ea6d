# frozen_string_literal: true

require "etc"

module Bench
  # The command line. Exit status: 0 when every contender delivered, 1 when one failed, 2 when the options are wrong.
  # A missed target is no failure, for it depends on the machine; --full lists it.
  class Command
    # Samples of --quick that run beside each other, if there are so many cores.
    AT_ONCE_MAX = 4
    private_constant :AT_ONCE_MAX

    def initialize(arguments, out:, err:)
      @arguments = arguments
      @out = out
      @err = err
    end

    def run
      Bench.load_tables if Bench.tables.empty?
      @options = Options.parse(@arguments)
      { help: method(:help), list: method(:list), report: method(:report), run: method(:run_tables) }.fetch(@options.action).call
    rescue Invalid => error
      @err.puts "bench: #{error.message}", "Try --help."
      2
    rescue Interrupt
      @err.puts "", "bench: interrupted"
      130
    end

    private

    def help
      @out.puts @options.help
      0
    end

    def list
      width = Bench.tables.map { |table| table.name.size }.max
      Bench.tables.each { |table| @out.puts "#{table.name.ljust(width)}  #{table.title}" }
      0
    end

    def report
      data = Report.read(*@options.from)
      TextReport.new(@out).rubies(Report::Rubies.new(data))
      write(@options.json) { JsonReport.text(data) }
      write_report(data)
      write_markdown(data)
      0
    end

    def run_tables
      tables = selected
      facts = Facts.new
      report = TextReport.new(@out)
      report.opening(facts, @options)
      warnings = [facts.warning]
      results = measure(tables, report)
      interrupted = results.size < tables.size
      warnings << "interrupted after #{results.size} of #{tables.size} tables" if interrupted
      report.targets(results) if @options.full?
      failures = results.flat_map(&:failures)
      report.failures(failures)
      warnings << facts.warning(own: own_load(tables))
      warnings.drop(1).each { |warning| report.warning(warning) }
      write_files(facts, results, warnings.compact, whole: !interrupted) if results.any?
      say_how_to_have_all unless interrupted
      return 130 if interrupted

      failures.empty? ? 0 : 1
    end

    def say_how_to_have_all
      return unless @options.main?

      @out.puts "These were main rows. `bin/bench --all` runs all #{Bench.tables.size} tables, which takes about " \
                "#{ExpectedTime.new.words(@options.samples)}; `--list` names them, and `--only` runs some."
    end

    # @return [Array<Result>] of the tables that were done before somebody interrupts it
    def measure(tables, report)
      results = []
      @progress = Progress.new(@err, tables, @options.samples)
      tables.each { |table| results << runner.run(table).tap { |result| finish(report, result) } }
      results
    rescue Interrupt
      @err.puts
      results
    end

    def selected
      chosen = Bench.tables.select { |table| @options.only.include?(table.name) }
      unknown = @options.sizes.keys - chosen.flat_map(&:sizes)
      raise Invalid, "no table here has a size #{unknown.first}" if unknown.any?

      chosen = growing(chosen) if @options.scaling?
      narrowed = chosen.map { |table| table.narrowed(**@options.narrowing(table.name)) }
      narrowed.reject! { |table| table.contenders.empty? }
      return narrowed if narrowed.any?

      raise Invalid, "no table here has a contender #{@options.contenders.join(" or ")}"
    end

    def growing(tables)
      scaled = tables.filter_map(&:scaled)
      raise Invalid, "nothing in #{tables.map(&:name).join(", ")} grows: take other tables" if scaled.empty?

      scaled
    end

    def at_once = @options.quick? ? [Etc.nprocessors, AT_ONCE_MAX].min : 1

    # A sample keeps one process busy, where it is not about several.
    def own_load(tables)
      at_once * (tables.flat_map(&:sizes).include?(:processes) ? Etc.nprocessors : 1)
    end

    def runner
      time_limit = @options.quick? ? Sampler::QUICK_TIME_LIMIT : Sampler::TIME_LIMIT
      counters = Counters.new if @options.counters?
      syscalls = Syscalls.new if @options.traces?
      @runner ||= Runner.new(samples: @options.samples, quick: @options.quick?, seed: @options.seed, at_once:, syscalls:,
                             long_sample: @options.long_sample, long_roles: @options.long_roles,
                             progress: @progress.method(:step),
                             sampler: Sampler.new(time_limit:, load: Load.method(:factor), counters:))
    end

    def finish(report, result)
      @progress.finish(result.table)
      report.table(result)
    end

    def write_files(facts, results, warnings, whole:)
      json = JsonReport.new(facts, @options, results, warnings).to_s
      write(@options.json) { json }
      data = JSON.parse(json)
      write_report(data)
      write_markdown(data) if whole
    end

    def write_report(data)
      report = Report.new(data, @options.compare && Report.read(@options.compare))
      TextReport.new(@out).comparison(report.comparison, @options.compare) if report.comparison
      @out.puts "wrote #{report.write(@options.report)}"
    end

    def write_markdown(data)
      write(@options.markdown) { |page| MarkdownReport.new(data).within(File.exist?(page) ? File.read(page) : "") }
    end

    def write(path)
      return unless path

      File.write(path, yield(path).to_s)
      @out.puts "wrote #{path}"
    end
  end
end
