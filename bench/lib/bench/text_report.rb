# frozen_string_literal: true

module Bench
  # The report for the terminal. Each table is printed as soon as it is done.
  class TextReport
    NOT_FOR_JUDGEMENT = "One small sample of each: NOT FOR JUDGEMENT. Use --full for numbers to quote."

    BACKENDS_IN_WORDS = { "uring" => "io_uring", "epoll" => "epoll",
                          "sqpoll" => "io_uring with a thread of the kernel's that submits" }.freeze

    # The forms in which a table's rows may be shown.
    FORMS = { columns: :in_columns, benchee: :as_benchee }.freeze

    WORD_WIDTH = MissedTargets::WORDS.map(&:size).max
    private_constant :WORD_WIDTH

    def initialize(out)
      @out = out
      @terminal = Terminal.new(out)
    end

    def opening(facts, options)
      @facts = facts.to_h
      @out.puts "Ringspun bench"
      width = facts.to_h.keys.map(&:size).max
      facts.to_h.each { |name, value| @out.puts "  #{name.to_s.ljust(width)}  #{value}" }
      @out.puts "  #{"backends".ljust(width)}  #{backends(options)}"
      @out.puts "  #{"samples".ljust(width)}  median of #{options.samples}, order by --seed #{options.seed}"
      @out.puts "  #{" " * width}  #{long(options)}" if options.long_sample
      @out.puts NOT_FOR_JUDGEMENT if options.quick?
      warning(facts.warning)
    end

    def warning(text)
      @out.puts @terminal.paint("WARNING: #{text}", :red) if text
    end

    def table(result)
      @out.puts "", "#{result.table.name}: #{result.table.title}", wrap(result.table.about)
      send(FORMS.fetch(result.table.form), result)
      @out.flush
    end

    def targets(results)
      @out.puts "", "Targets"
      verdicts = results.flat_map { |result| result.verdicts.map { |verdict| [result.table.name, verdict] } }
      verdicts.each { |name, verdict| @out.puts target_line(name, verdict) }
      counts = verdicts.map { |name, verdict| word(name, verdict).strip.downcase }.tally
      @out.puts "  #{counts.map { |word, count| "#{count} #{word == "?" ? "not measured" : word}" }.join(", ")}"
    end

    # @param comparison [Report::Comparison]
    # @param file [String] the earlier run
    def comparison(comparison, file)
      @out.puts "", "Compared with #{file}: #{comparison.in_words}", comparison.changes.map { |change| "  #{change.in_words}" }
    end

    # @param rubies [Report::Rubies] of runs that were read
    def rubies(rubies)
      return unless rubies.several?

      lines = [rubies.header, *rubies.lines]
      widths = lines.transpose.map { |cells| cells.map(&:size).max }
      @out.puts "", "On each Ruby", lines.map { |first, *cells| justify(first, widths.first, cells, widths.drop(1)).rstrip }
    end

    def failures(failures)
      return if failures.empty?

      @out.puts("", @terminal.paint("FAILED", :red), failures.map { |failure| "  #{failure}" })
    end

    private

    def long(options)
      "one alone #{options.long_roles ? "of a peer that" : "where it"} takes more than #{options.long_sample.round} s"
    end

    def backends(options)
      options.backends.map { |name| "`#{Bench.subject_on(name)}` is on #{BACKENDS_IN_WORDS.fetch(name)}" }.join(", ")
    end

    def in_columns(result)
      columns = Columns.new(result.table)
      result.rows.each { |row| row(result.table, row, columns) }
    end

    def as_benchee(result)
      @out.puts "", BencheeForm.new(result, BencheeForm.system(@facts))
    end

    def row(table, row, columns)
      lines = table.contenders.map { |contender| line(row, contender, columns) }
      cells = lines.map(&:last).grep(Array)
      widths = columns.headers.each_with_index.map { |header, index| [header, *cells.map { |line| line[index] }].map(&:size).max }
      label_width = [row.label, *lines.map(&:first)].map(&:size).max

      @out.puts "", justify(row.label, label_width, columns.headers, widths)
      lines.each do |name, content|
        @out.puts content.is_a?(Array) ? justify(name, label_width, content, widths) : "#{name.ljust(label_width)}  #{content}"
      end
      bars(table, row)
    end

    # Of the metric by which peers are compared first.
    def bars(table, row)
      values = table.contenders.to_h { |contender| [contender.name, row.median(contender, table.headline)] }.compact
      lines = @terminal.bars(values)
      @out.puts "", @terminal.paint("#{Metric[table.headline].header}, shorter is better", :faint), lines if lines.any?
    end

    def line(row, contender, columns)
      [contender.name, row.remark(contender) || columns.cells(row, contender)]
    end

    def justify(label, label_width, cells, widths)
      [label.ljust(label_width), *cells.zip(widths).map { |cell, width| cell.rjust(width) }].join("  ")
    end

    def target_line(name, verdict)
      colour = { true => :green, false => :red, nil => nil }.fetch(verdict.met)
      words = @terminal.paint(word(name, verdict).ljust(WORD_WIDTH), colour)
      reason = MissedTargets.of(name, verdict.sentence) if verdict.met == false
      "  #{words}  #{name.ljust(10)}  #{verdict.sentence.ljust(40)}  #{[verdict.measured, *reason&.text].join("  ")}"
    end

    def word(name, verdict)
      return verdict.met ? "met" : "?" unless verdict.met == false

      MissedTargets.of(name, verdict.sentence)&.word || "MISSED"
    end

    def wrap(text) = text.gsub(/\s+/, " ").strip.scan(/\S.{0,98}(?=\s|\z)/).join("\n")
  end
end
