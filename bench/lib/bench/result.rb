# frozen_string_literal: true

module Bench
  # All samples of one table, and the values computed from them.
  class Result
    attr_reader :table, :rows

    def initialize(table)
      @table = table
      @rows = table.rows.map { |row| RowResult.new(table, row) }
    end

    def comparisons = rows.select { |row| row.row.comparison? }
    def failures = rows.flat_map(&:failures)
    def verdicts = table.targets.map { |target| target.check(self) }
  end

  # One row: contender => samples.
  class RowResult
    attr_reader :row

    def initialize(table, row)
      @table = table
      @row = row
      @samples = table.contenders.to_h { |contender| [contender.name, []] }
    end

    def label = row.label
    def add(contender, sample) = @samples.fetch(contender.name) << sample
    def samples(contender) = @samples.fetch(contender.name)

    # nil if there are numbers, else why there are none: "FAILED ..." or "n/a (...)".
    def remark(contender)
      failed = samples(contender).find { |sample| sample["failed"] }
      return "FAILED: #{failed["failed"]}" if failed

      unavailable = samples(contender).find { |sample| sample["unavailable"] }
      "n/a (#{unavailable["unavailable"]})" if unavailable
    end

    def failures
      @table.contenders.select { |contender| remark(contender)&.start_with?("FAILED") }
            .map { |contender| "#{[@table.name, label, contender.name].uniq.join(" ")} #{remark(contender)}" }
    end

    # The median of a metric. `name` is a contender's name, "floor", "best floor" or "best peer".
    def value(name, metric)
      case name
      when "floor" then @table.floor && median(@table.floor, metric)
      when "best floor" then best(@table.floors, metric)
      when "best peer" then best(@table.peers, metric)
      else
        contender = @table.contender(name)
        contender && median(contender, metric)
      end
    end

    def median(contender, metric)
      values = values(contender, metric)
      Statistics.median(values) if values
    end

    def spread(contender, metric)
      values = values(contender, metric)
      Statistics.spread(values) if values
    end

    # The cost of a contender as a multiple of the floor's, and of the best peer's; nil if there is none.
    def floor_ratio(contender, metric) = ratio(median(contender, metric), value("floor", metric))
    def peer_ratio(contender, metric) = ratio(median(contender, metric), value("best peer", metric))

    private

    def values(contender, metric)
      return nil if remark(contender)

      values = samples(contender).map { |sample| Metric[metric].read(sample) }.compact
      values unless values.empty?
    end

    def best(contenders, metric) = contenders.filter_map { |contender| median(contender, metric) }.min

    def ratio(ours, theirs)
      ours.to_f / theirs if ours && theirs && !theirs.zero?
    end
  end
end
