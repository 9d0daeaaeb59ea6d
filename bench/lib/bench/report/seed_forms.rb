# frozen_string_literal: true

require "bench/benchee_form"

module Bench
  class Report
    # The forms in which the seeds print their figures. Each reads the same figures from what a contender of ours has measured.
    module SeedForms
      # What the forms share.
      class Form
        private

        def width(lines) = lines.keys.map(&:size).max
      end

      # As Ruby's Benchmark prints them: seconds of the processor and of the clock.
      class Times < Form
        # @param contender [Standing::Contender]
        # @return [Array<Float>, nil]
        def read(contender)
          figures = contender.medians.values_at("user", "system", "total", "real")
          figures if figures.all?
        end

        # @param lines [Hash{String => Array<Float>}] label => figures
        # @return [String]
        def text(lines)
          return "" if lines.empty?

          head = format("%s %10s %10s %10s %12s", " " * width(lines), "user", "system", "total", "real")
          [head, *lines.map { |label, figures| format("%s %10.6f %10.6f %10.6f (%10.6f)", label.ljust(width(lines)), *figures) }]
            .join("\n")
        end

        # Seconds on the clock.
        # @return [Float]
        def cost(figures) = figures.last

        # @return [String]
        def brief(figures) = Metric.duration(figures.last)
      end

      # As the gem concurrently prints them: how often in a second.
      class Executions < Form
        def read(contender) = contender.medians["rate"]&.then { |rate| [rate] }

        def text(lines)
          lines.map { |label, (rate)| format("%s %11d executions in 1.0000 seconds", "#{label}:".ljust(width(lines) + 1), rate) }
               .join("\n")
        end

        def cost(figures) = 1.0 / figures.first

        def brief(figures) = "#{Metric.thousands(figures.first.round)} /s"
      end

      # As Benchee prints them: nanoseconds of a call, their deviation as a share of the average.
      class Benchee < Form
        def read(contender)
          figures = contender.notes.values_at("average", "deviation", "median", "p99")
          figures if figures.first
        end

        def text(lines)
          return "" if lines.empty?

          scenarios = lines.map { |name, figures| BencheeForm::Scenario.new(name, *figures) }
          BencheeForm.table(scenarios.sort_by(&:average)).join("\n")
        end

        def cost(figures) = figures.first.to_f

        def brief(figures) = Metric.duration(figures.first / 1e9)
      end
    end
  end
end
