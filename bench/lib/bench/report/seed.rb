# frozen_string_literal: true

require "yaml"

require "bench/report/seed_forms"

module Bench
  class Report
    # A published benchmark that the product answers to, with the figures that were published: bench/seeds/NAME.yml. Each line of
    # its tables names its counterpart here, a contender of a row of one of our tables.
    class Seed
      FOLDER = File.join(ROOT, "bench/seeds")

      # The order in which they are shown.
      NAMES = %w[uringmachine concurrently exq em-pg-client].freeze

      # `recorded` is what somebody has measured on another machine, as text.
      Line = Data.define(:label, :figures, :row, :peer, :recorded)

      # `beside` names our contenders that stand beside the seed's, the one that ratios are about first.
      Table = Data.define(:seed, :title, :name, :why, :beside, :lines) do
        # The seed's own table.
        # @return [String]
        def theirs = seed.form.text(lines.to_h { |line| [line.label, line.figures] })

        # What was recorded elsewhere.
        # @return [String, nil]
        def recorded
          seed.form.recorded(lines.to_h { |line| [line.label, line.recorded] }) if lines.any?(&:recorded)
        end

        # The same table of this run: the seed's contenders, and ours.
        # @param standing [Standing]
        # @return [String]
        def here(standing)
          contenders = lines.to_h { |line| [line.label, peer(standing, line)] }.merge(ours(standing))
          measured = contenders.transform_values { |each| figures_of(each) }.compact
          remarks = contenders.except(*measured.keys).map { |label, each| "#{label}: #{each&.remark || "not run"}" }
          [seed.form.text(measured), *remarks].reject(&:empty?).join("\n")
        end

        # @return [Standing::Contender, nil]
        def peer(standing, line) = contender(standing, line, line.peer)

        # Ours, which the ratio is about.
        # @return [Standing::Contender, nil]
        def subject(standing, line) = contender(standing, line, beside.first)

        # What ours takes as a multiple of what the seed's contender takes here.
        # @return [Float, nil]
        def ratio(standing, line)
          figures = [subject(standing, line), peer(standing, line)].map { |each| figures_of(each) }
          figures.map { |each| seed.form.cost(each) }.reduce(:/) if figures.all?
        end

        # @return [String]
        def brief(contender)
          figures = figures_of(contender)
          figures ? seed.form.brief(figures) : "n/a"
        end

        # Why some lines have no figures.
        # @return [Array<String>]
        def remarks(standing)
          contenders = lines.flat_map { |line| [[line.peer, peer(standing, line)], [beside.first, subject(standing, line)]] }.uniq
          missing = contenders.reject { |_, each| figures_of(each) }
          missing.group_by { |_, each| each&.remark || "not run" }
                 .map { |remark, those| "#{those.map(&:first).uniq.join(", ")}: #{remark}." }
        end

        # @return [String]
        def command = "bin/bench --only #{name}"

        private

        def figures_of(contender) = contender && seed.form.read(contender)

        def contender(standing, line, name)
          standing.row(self.name, line.row)&.contenders&.find { |each| each.name == name }
        end

        # A line for each of our contenders and each row that the seed's lines are about.
        def ours(standing)
          of_rows = lines.uniq(&:row)
          beside.product(of_rows).to_h do |name, line|
            [of_rows.one? ? name : "#{name}, #{line.row}", contender(standing, line, name)]
          end
        end
      end

      # @return [Array<Seed>]
      def self.all = NAMES.map { |name| new(YAML.load_file(File.join(FOLDER, "#{name}.yml"))) }

      # @return [String]
      attr_reader :title, :about, :differs

      # Where and how what is recorded was measured.
      # @return [String, nil]
      attr_reader :recorded

      # @return [Array<Table>]
      attr_reader :tables

      # @return [SeedForms::Times, SeedForms::Executions, SeedForms::Benchee]
      attr_reader :form

      def initialize(data)
        @title, @about, @differs, @recorded = data.values_at("title", "about", "differs", "recorded")
        @beside = data.fetch("beside")
        @form = SeedForms.const_get(data.fetch("form").capitalize).new
        @peers = data.fetch("peers")
        @tables = data.fetch("tables").map { |table| table_of(table) }
      end

      # The names of our tables that answer to it.
      # @return [Array<String>]
      def answers = @tables.map(&:name).uniq

      private

      def table_of(data)
        lines = data.fetch("lines").map { |label, line| line_of(label, line.is_a?(Hash) ? line : { "figures" => line }, data) }
        title, name = data.fetch("title"), data.fetch("table")
        Table.new(seed: self, title:, name:, why: data["why"], beside: data.fetch("beside", @beside), lines:)
      end

      def line_of(label, line, table)
        row, peer = line.fetch("row") { table.fetch("row") }, line.fetch("peer") { @peers.fetch(label) }
        Line.new(label:, figures: line.fetch("figures"), row:, peer:, recorded: line["recorded"])
      end
    end
  end
end
