# frozen_string_literal: true

module Bench
  class Report
    # What one run has measured, from its JSON: tables, rows, and how the contenders stand in each.
    class Standing
      # A contender of a row. `low` and `high` are the extremes of its samples, `value` is their median; `medians` has those of
      # all metrics, `notes` what its first sample has noted.
      Contender = Data.define(:name, :role, :value, :low, :high, :text, :floor_ratio, :peer_ratio, :remark, :medians, :notes) do
        def measured? = !value.nil?
        def peer? = role == "peer"
        def subject? = role == "subject"
        def ours? = subject? || role == "variant"

        # @return [Boolean] whether the samples of both lie apart
        def apart?(other) = high < other.low || other.high < low
      end

      # A row is a `comparison` when nobody skips it.
      Row = Data.define(:table, :label, :contenders, :comparison) do
        def title = label == table.name ? table.title : "#{table.title}, #{label}"
        def measured = contenders.select(&:measured?)
        def named(name) = measured.find { |each| each.name == name }
        def subject = measured.find(&:subject?)
        def best_peer = measured.select(&:peer?).min_by(&:value)

        # @return [Float, nil] above 1 where a peer is better
        def ratio = subject&.peer_ratio

        # @return [Boolean] whether the difference is larger than what the samples lie apart by themselves
        def clear? = !subject || !best_peer || subject.apart?(best_peer)
      end

      # What one of ours takes in a row, and the peer that takes less.
      Loss = Data.define(:title, :peer, :ours) do
        def ratio = ours.value.to_f / peer.value
      end

      # Ours for callers that are no strands, and the peer that these would take instead.
      OF_OTHER_CALLERS = { "courier" => "threads", "plain threads" => "sidekiq" }.freeze

      # `reason` is what is said of it where it is missed, or nil.
      Target = Data.define(:sentence, :met, :measured, :reason) do
        # @return [Symbol] :met, :missed, :unknown, or what is said of one that is missed: :withdrawn, :open
        def state = met.nil? ? :unknown : (reason && reason.word.to_sym) || (met ? :met : :missed)
      end

      Table = Data.define(:name, :title, :about, :metric, :against_floor, :form, :grows_by, :rows, :targets) do
        def columns? = form == "columns"
        def comparisons = rows.select(&:comparison)
      end

      # @return [Array<Table>]
      attr_reader :tables

      # @return [String] what it was measured on
      attr_reader :machine

      # @return [String]
      attr_reader :ruby

      # @param data [Hash] as {JsonReport} has it
      def initialize(data)
        @machine = data.fetch("facts").values_at("cpu", "cores").join(", ")
        @ruby = data.fetch("facts")["ruby"]
        @tables = data.fetch("tables").map { |table| table_of(table) }
      end

      # @return [Array<Row>] in which a peer is better, the largest loss first
      def losses
        @tables.flat_map(&:rows).select { |row| row.ratio && row.ratio > 1 }.sort_by { |row| -row.ratio }
      end

      # @return [Array<Loss>] the same beyond both spreads, of rows that do not grow, and those of ours for other callers as well
      def clear_losses
        rows = @tables.reject(&:grows_by).flat_map(&:rows)
        of_strands = losses.select { |row| rows.include?(row) && row.clear? && row.best_peer }
                           .map { |row| Loss.new(row.title, row.best_peer, row.subject) }
        (of_strands + rows.flat_map { |row| losses_of_other_callers(row) }).sort_by { |loss| -loss.ratio }
      end

      # @return [Array<Array(String, String, Table)>] why, the contender, and the table of those that could not be measured
      def without_numbers
        @tables.flat_map do |table|
          all = table.rows.flat_map(&:contenders).select { |each| each.remark&.start_with?("n/a") }
          all.map { |each| [each.remark.delete_prefix("n/a (").delete_suffix(")"), each.name, table] }.uniq
        end
      end

      # @return [Row, nil]
      def row(table, label) = @tables.find { |each| each.name == table }&.rows&.find { |row| row.label == label }

      private

      def losses_of_other_callers(row)
        OF_OTHER_CALLERS.filter_map do |name, other|
          ours, peer = row.named(name), row.named(other)
          next unless ours && peer && ours.value > peer.value && ours.apart?(peer)

          Loss.new("#{row.title}, #{name}", peer, ours)
        end
      end

      def table_of(data)
        metric = Metric[data.fetch("headline").to_sym]
        targets = data.fetch("targets").map { |target| target_of(data.fetch("name"), target) }
        name, title, about = %w[name title about].map { |key| data.fetch(key) }
        against_floor = data.fetch("against_floor", metric.name).to_sym
        form, grows_by = data.fetch("form", "columns"), data["grows_by"]
        table = Table.new(name:, title:, about:, metric:, against_floor:, form:, grows_by:, rows: [], targets:)
        table.rows.concat(data.fetch("rows").map { |row| row_of(table, row) })
        table
      end

      def target_of(table, data)
        sentence, met, measured = data.values_at("sentence", "met", "measured")
        Target.new(sentence:, met:, measured:, reason: (MissedTargets.of(table, sentence) if met == false))
      end

      def row_of(table, data)
        contenders = data.fetch("contenders").map { |each| contender_of(table.metric, each) }
        Row.new(table:, label: data.fetch("label"), contenders:, comparison: data.fetch("comparison", true))
      end

      def contender_of(metric, data)
        value = data["medians"][metric.name.to_s]
        low, high = extremes(metric, data, value)
        Contender.new(name: data.fetch("name"), role: data.fetch("role"), value:, low:, high:,
                      text: metric.brief(value), floor_ratio: data["floor_ratio"],
                      peer_ratio: data["peer_ratios"][metric.name.to_s], remark: data["remark"],
                      medians: data.fetch("medians"), notes: data["notes"] || data["samples"].dig(0, "notes") || {})
      end

      # The least and the most of the samples. Where they were not kept there may be a `spread`, as a share of the median, which
      # is taken to lie evenly around it.
      def extremes(metric, data, value)
        all = data.fetch("samples").filter_map { |sample| metric.read(sample) if sample.key?("real") }
        return all.minmax if all.any?

        half = value && (value * data.fetch("spread", 0) / 2.0)
        half ? [value - half, value + half] : [value, value]
      end
    end
  end
end
