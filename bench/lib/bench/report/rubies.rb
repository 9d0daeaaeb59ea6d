# frozen_string_literal: true

module Bench
  class Report
    # The same rows on several Rubies: what Ringspun takes on each, beside the best peer there. YJIT makes of a Ruby another one.
    class Rubies
      # @param data [Hash] as {Report.read} returns it
      def initialize(data)
        @runs = Run.all(data).reject { |run| run.data["name"] || run.scripts_of }
      end

      def several? = @runs.size > 1 && lines.any?

      # @return [Array<String>]
      def header = ["", *@runs.flat_map { |run| ["#{run.name}: best peer", SUBJECT, "ratio"] }]

      # @return [Array<Array<String>>] a line for each row that all of them have measured, with cells for each header
      def lines = @lines ||= titles.map { |title| [title, *@runs.flat_map { |run| cells(row(run, title)) }] }

      # @return [String] what they were measured on
      def machines = @runs.map { |run| run.machine(all: true) }.join(" ")

      private

      def titles = @runs.map { |run| rows(run).map(&:title) }.reduce(:&)

      def rows(run) = run.standing.tables.select { |table| table.columns? && !table.grows_by }.flat_map(&:rows).select(&:subject)

      def row(run, title) = rows(run).find { |each| each.title == title }

      def cells(row)
        peer = row.best_peer
        [peer ? "#{peer.text} (#{peer.name})" : "-", row.subject.text, row.ratio ? Kernel.format("%.2f x", row.ratio) : "-"]
      end
    end
  end
end
