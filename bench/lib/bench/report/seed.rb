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

      Line = Data.define(:label, :figures, :row, :peer)

      # `beside` names our contenders that stand beside the seed's, the one that ratios are about first.
      Table = Data.define(:seed, :title, :name, :why, :beside, :lines) do
        # The seed's own table.
        # @return [String]
        def theirs = seed.form.text(lines.to_h { |line| [line.label, line.figures] })

        # The same table of a run: the seed's contenders, and ours, without those that have no figures.
        # @param standing [Standing]
        # @return [String]
        def here(standing)
          contenders = lines.to_h { |line| [line.label, peer(standing, line)] }.merge(ours(standing))
          seed.form.text(contenders.transform_values { |each| figures_of(each) }.compact)
        end

        # Those that have a figure of one of the seed's contenders.
        # @param runs [Array<Run>]
        # @return [Array<Run>]
        def measured_by(runs) = runs.select { |run| lines.any? { |line| figures_of(peer(run.standing, line)) } }

        # @return [Standing::Contender, nil]
        def peer(standing, line) = contender(standing, line, line.peer)

        # Ours, which the ratio is about.
        # @return [Standing::Contender, nil]
        def subject(standing, line) = contender(standing, line, beside.first)

        # What ours takes as a multiple of what the seed's contender takes in the same run.
        # @return [Float, nil]
        def ratio(standing, line)
          figures = [subject(standing, line), peer(standing, line)].map { |each| figures_of(each) }
          figures.map { |each| seed.form.cost(each) }.reduce(:/) if figures.all?
        end

        # @return [String]
        def brief(contender)
          figures = figures_of(contender)
          figures ? seed.form.brief(figures) : "-"
        end

        # The seed's contenders that have no figures in a run, with what was said instead.
        # @return [Hash{String => String}]
        def missing(standing)
          contenders = lines.to_h { |line| [line.peer, peer(standing, line)] }
          contenders.reject { |_, each| figures_of(each) }.transform_values { |each| each&.remark || "not run" }
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

      # @return [Array<Table>]
      attr_reader :tables

      # @return [SeedForms::Times, SeedForms::Executions, SeedForms::Benchee]
      attr_reader :form

      def initialize(data)
        @title, @about, @differs = data.values_at("title", "about", "differs")
        @beside = data.fetch("beside")
        @form = SeedForms.const_get(data.fetch("form").capitalize).new
        @peers = data.fetch("peers")
        @tables = data.fetch("tables").map { |table| table_of(table) }
      end

      # The names of our tables that answer to it.
      # @return [Array<String>]
      def answers = @tables.map(&:name).uniq

      # Those that have measured one of its contenders.
      # @param runs [Array<Run>]
      # @return [Array<Run>]
      def measured_by(runs) = runs & @tables.flat_map { |table| table.measured_by(runs) }

      # Which of its contenders have no figures, said once for all its tables.
      # @param runs [Array<Run>]
      # @return [Array<String>] sentences
      def remarks(runs)
        measured_by(runs).flat_map do |run|
          tables = @tables.select { |table| table.measured_by([run]).any? }
          found = tables.flat_map { |table| table.missing(run.standing).to_a }
          found.tally.group_by { |(_, remark), _| remark }.map do |remark, all|
            names = all.map { |(name, _), times| times < tables.size ? "#{name} (in #{times} of #{tables.size} tables)" : name }
            "No figures on #{run.name} of #{names.join(", ")}: #{remark.delete_prefix("n/a (").delete_suffix(")")}."
          end
        end
      end

      private

      def table_of(data)
        lines = data.fetch("lines").map { |label, line| line_of(label, line.is_a?(Hash) ? line : { "figures" => line }, data) }
        title, name = data.fetch("title"), data.fetch("table")
        Table.new(seed: self, title:, name:, why: data["why"], beside: data.fetch("beside", @beside), lines:)
      end

      def line_of(label, line, table)
        row, peer = line.fetch("row") { table.fetch("row") }, line.fetch("peer") { @peers.fetch(label) }
        Line.new(label:, figures: line.fetch("figures"), row:, peer:)
      end
    end
  end
end
