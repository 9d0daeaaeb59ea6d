# frozen_string_literal: true

module Bench
  # The cells that a report shows for one contender of one row: the table's metrics, then the ratios. Text for a
  # person; the numbers themselves are in Result.
  class Columns
    Column = Data.define(:header, :cell)

    def initialize(table)
      @table = table
    end

    def all = metrics + floor_ratio + peer_ratios + spread
    def headers = all.map(&:header)
    def cells(row, contender) = all.map { |column| column.cell.call(row, contender) }

    private

    def metrics
      @table.columns.map do |name|
        metric = Metric[name]
        Column.new(metric.header, ->(row, contender) { metric.show(row.median(contender, name)) })
      end
    end

    def floor_ratio
      return [] unless @table.floor

      metric = @table.against_floor
      [Column.new("#{short(metric)}/floor", ->(row, contender) { times(row.floor_ratio(contender, metric)) })]
    end

    def peer_ratios
      @table.against_peer.map do |metric|
        Column.new("#{short(metric)}/peer", ->(row, contender) { times(row.peer_ratio(contender, metric)) })
      end
    end

    # The spread of the samples, in the metric that is judged.
    def spread
      metric = @table.headline
      [Column.new("spread", ->(row, contender) { percent(row.spread(contender, metric)) })]
    end

    def short(metric) = Metric[metric].header[/\A\w+/].downcase
    def times(ratio) = ratio ? format("%.2f", ratio) : "-"
    def percent(spread) = spread ? format("%.0f%%", spread * 100) : "-"
  end
end
