# frozen_string_literal: true

module Bench
  # The report of a table whose seed was measured with Benchee (https://github.com/bencheeorg/benchee), in Benchee's words and
  # columns: for each row a head with its settings, the time of a call, and by how much the others are slower than the fastest.
  # `ips` is the rate of one caller, as in Benchee.
  #
  # Each sample has notes: average, median and p99 in nanoseconds, and deviation as a share of the average. Only the average must
  # be there.
  class BencheeForm
    TIMES = { "ns" => 1, "μs" => 1e3, "ms" => 1e6, "s" => 1e9 }.freeze
    RATES = { "" => 1, "K" => 1e3, "M" => 1e6 }.freeze
    HEADERS = { "ips" => 14, "average" => 15, "deviation" => 11, "median" => 15, "99th %" => 15 }.freeze

    Scenario = Data.define(:name, :average, :deviation, :median, :p99) do
      def ips = 1e9 / average
    end

    # The head of the report: what it was measured on.
    def self.system(facts)
      { "Operating System" => facts[:kernel], "CPU Information" => facts[:cpu], "Number of Available Cores" => facts[:cores],
        "Available memory" => memory, "Ruby" => RUBY_VERSION, "Redis" => facts[:"redis-server"] }
    end

    def self.memory
      kilobytes = File.read("/proc/meminfo")[/^MemTotal:\s+(\d+)/, 1].to_f
      format("%.2f GB", kilobytes / (1 << 20))
    rescue SystemCallError
      "unknown"
    end

    private_class_method :memory

    class << self
      # @param scenarios [Array<Scenario>] in the order of the table
      # @return [Array<String>]
      def table(scenarios)
        width = name_width(scenarios)
        rate = unit(RATES, scenarios.map(&:ips))
        time = unit(TIMES, scenarios.map(&:average))
        lines = scenarios.map do |scenario|
          cells = [in_unit(scenario.ips, RATES, rate), in_unit(scenario.average, TIMES, time),
                   scenario.deviation ? format("±%.2f%%", scenario.deviation * 100) : "-",
                   in_unit(scenario.median, TIMES, time), in_unit(scenario.p99, TIMES, time)]
          justify(scenario.name, width, cells)
        end
        [justify("Name", width, HEADERS.keys), *lines]
      end

      # @param scenarios [Array<Scenario>] the fastest first
      # @return [Array<String>] by how much the others are slower
      def comparison(scenarios)
        width = name_width(scenarios)
        rate = unit(RATES, scenarios.map(&:ips))
        time = unit(TIMES, scenarios.map(&:average))
        fastest, *others = scenarios
        lines = others.map do |scenario|
          format("%s - %.2fx slower +%s", justify(scenario.name, width, [in_unit(scenario.ips, RATES, rate)]),
                 scenario.average.fdiv(fastest.average), in_unit(scenario.average - fastest.average, TIMES, time))
        end
        ["Comparison:", justify(fastest.name, width, [in_unit(fastest.ips, RATES, rate)]), *lines]
      end

      private

      def name_width(scenarios) = scenarios.map { |scenario| scenario.name.size }.max

      def justify(name, width, cells)
        name.ljust(width) + cells.zip(HEADERS.values).map { |cell, room| cell.rjust(room) }.join
      end

      # One unit for the whole column: the one that suits most of its values, the larger one on a tie.
      def unit(units, values)
        own = values.map { |value| units.select { |_, scale| value >= scale }.keys.last || units.keys.first }
        own.tally.max_by { |name, count| [count, units.fetch(name)] }.first
      end

      def in_unit(value, units, name)
        return "-" unless value

        scaled = value / units.fetch(name)
        # A small value gets more digits.
        text = format(scaled.abs < 0.1 ? "%.4f" : "%.2f", scaled)
        "#{text} #{name}".strip
      end
    end

    # @param system [Hash{String => Object}] the lines above the settings
    def initialize(result, system)
      @result = result
      @system = system
    end

    def to_s = @result.rows.map { |row| row_text(row) }.join("\n")

    private

    def row_text(row)
      lines = ["### Parallelism #{row.label}", "", *system_lines, "", *settings(row), ""]
      lines += contenders.map { |contender| "Benchmarking #{contender.name}..." }
      lines += remarks(row)
      scenarios = contenders.filter_map { |contender| scenario(row, contender) }.sort_by(&:average)
      lines += ["", *BencheeForm.table(scenarios), "", *BencheeForm.comparison(scenarios)] if scenarios.any?
      "#{lines.join("\n")}\n"
    end

    def contenders = @result.table.contenders

    def system_lines
      @system.map { |name, value| %w[Ruby Redis].include?(name) ? "#{name} #{value}" : "#{name}: #{value}" }
    end

    def settings(row)
      time = @result.table.size_of(row.row, contenders.first).fetch(:seconds)
      time = row.samples(contenders.first).filter_map { |sample| sample.dig("notes", "seconds") }.first || time
      warm_up = @result.table.warm_up_size({}).fetch(:seconds)
      ["Benchmark suite executing with the following configuration:", "warmup: #{seconds(warm_up)}", "time: #{seconds(time)}",
       "memory time: 0 ns", "parallel: #{row.label}", "inputs: none specified",
       "Estimated total run time: #{seconds((warm_up + time) * contenders.size)}"]
    end

    def remarks(row) = contenders.filter_map { |contender| (remark = row.remark(contender)) && "#{contender.name}: #{remark}" }

    def scenario(row, contender)
      sample = row.samples(contender).find { |candidate| candidate.dig("notes", "average") }
      return unless sample && row.remark(contender).nil?

      numbers = sample["notes"].slice("average", "deviation", "median", "p99").transform_keys(&:to_sym)
      Scenario.new(name: contender.name, **numbers)
    end

    def seconds(value) = value == value.round ? "#{value.round} s" : "#{value.round(2)} s"
  end
end
