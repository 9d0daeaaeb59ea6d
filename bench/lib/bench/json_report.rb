# frozen_string_literal: true

require "json"

module Bench
  # Everything that was measured, for programs: each sample as its child reported it, not only the medians.
  class JsonReport
    def initialize(facts, options, results, warnings)
      @facts = facts
      @options = options
      @results = results
      @warnings = warnings
    end

    def to_s = self.class.text(to_h)

    # A line for each table, so that a diff of two runs says which have changed.
    # @param data [Hash]
    # @return [String]
    def self.text(data)
      members = data.map do |key, value|
        text = key.to_s == "tables" ? "[\n#{value.map { |table| JSON.generate(table) }.join(",\n")}\n]" : JSON.generate(value)
        "#{JSON.generate(key.to_s)}: #{text}"
      end
      "{#{members.join(",\n")}}\n"
    end

    def to_h
      { mode: @options.mode, date: Time.now.strftime("%F"), samples: @options.samples, seed: @options.seed,
        for_judgement: !@options.quick?, warnings: @warnings, facts: @facts.to_h,
        tables: @results.map { |result| table(result) } }
    end

    private

    def table(result)
      { name: result.table.name, title: result.table.title, about: result.table.about.gsub(/\s+/, " ").strip,
        headline: result.table.headline, form: result.table.form, against_floor: result.table.against_floor,
        grows_by: result.table.grows_by,
        rows: result.rows.map { |row| row(result.table, row) },
        targets: result.verdicts.map { |verdict| target(result.table, verdict) } }
    end

    # With the word for one that is missed.
    def target(table, verdict)
      reason = MissedTargets.of(table.name, verdict.sentence) unless verdict.met
      reason ? verdict.to_h.merge(reason.word.to_sym => reason.text) : verdict.to_h
    end

    def row(table, row)
      { label: row.label, comparison: row.row.comparison?,
        contenders: table.contenders.map { |contender| contender(table, row, contender) } }
    end

    def contender(table, row, contender)
      { name: contender.name, role: contender.role, remark: row.remark(contender),
        medians: Metric.names.to_h { |name| [name, row.median(contender, name)] }.compact,
        floor_ratio: row.floor_ratio(contender, table.against_floor),
        peer_ratios: table.against_peer.to_h { |metric| [metric, row.peer_ratio(contender, metric)] },
        samples: row.samples(contender) }
    end
  end
end
