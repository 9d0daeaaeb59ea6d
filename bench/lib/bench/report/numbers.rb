# frozen_string_literal: true

module Bench
  class Report
    # The numbers of a table: a line for each contender of each row. Runs that stand beside the first have columns of their own.
    class Numbers
      # `text` with its class; a cell that says why there is no number links to where that is said once.
      Cell = Data.define(:text, :kind) do
        def missing? = kind == :missing
      end

      NOTHING = Cell.new("", :number)
      private_constant :NOTHING

      # @param table [Standing::Table]
      # @param beside [Hash{Run => Standing::Table}] the same table of other runs
      def initialize(table, beside)
        @table = table
        @beside = beside
      end

      # @return [Array<String>] behind those of the row and the contender
      def headers
        others = @beside.keys.flat_map { |run| [run.name, "#{run.name}: to the best peer"] }
        [@table.metric.header, "samples", "to the floor", "to the best peer", *others]
      end

      # @return [Array<Array(String, String, Array<Cell>)>] row, contender, and a cell for each header
      def lines = @table.rows.flat_map { |row| names(row).map { |name| [row.label, name, cells(row, name)] } }

      private

      def names(row)
        rows = [row, *@beside.each_value.map { |table| same(table, row) }].compact
        rows.flat_map { |each| each.contenders.map(&:name) }.uniq
      end

      def same(table, row) = table.rows.find { |each| each.label == row.label }

      def cells(row, name)
        [*own(find(row, name)), *@beside.each_value.flat_map { |table| others(find(same(table, row), name)) }]
      end

      def find(row, name) = row&.contenders&.find { |each| each.name == name }

      def own(contender)
        return [without(contender), *[NOTHING] * 3] unless contender&.measured?

        [contender.text, range(contender), times(contender.floor_ratio), times(contender.peer_ratio)].map { |text| number(text) }
      end

      def others(contender)
        contender&.measured? ? [number(contender.text), number(times(contender.peer_ratio))] : [without(contender), NOTHING]
      end

      # A failure says what it was; for all else there is one place.
      def without(contender)
        remark = contender&.remark
        return Cell.new(remark, :failed) if remark&.start_with?("FAILED")

        remark ? Cell.new("n/a", :missing) : Cell.new("-", :number)
      end

      def number(text) = Cell.new(text, :number)
      def times(ratio) = ratio ? Kernel.format("%.2f x", ratio) : ""

      def range(contender)
        return "" unless contender.high > contender.low

        "#{@table.metric.brief(contender.low)} to #{@table.metric.brief(contender.high)}"
      end
    end
  end
end
