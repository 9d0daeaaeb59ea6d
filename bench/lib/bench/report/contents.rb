# frozen_string_literal: true

module Bench
  class Report
    # The order of a page: the tables that answer to a seed stand with it, a seed's own scripts behind it, all others by what they
    # are about.
    class Contents
      KINDS = { "Strands and time" => %w[select channel switch timeout spawn first_run beside_cpu parked timers ticker interrupt
                                         batch waiting_evaluations],
                "Input and output" => %w[echo armed accept files idle lines idle_streams splice_forwarder],
                "HTTP and TLS" => %w[http http_* tls tls_echo keep_alive cluster],
                "Postgres" => %w[pg pg_*], "Jobs" => %w[jobs_* active_job_* sqlite_*], "mruby" => %w[mruby mruby_*] }.freeze
      OTHERS = "Other work"
      GROWING = "As the work grows"
      private_constant :KINDS, :OTHERS

      # A heading with its tables, and its seed if it has one.
      Group = Data.define(:title, :seed, :tables) do
        # @return [String] for links
        def id = "group-#{title.downcase.gsub(/[^a-z]+/, "-")}"
      end

      # @param runs [Array<Run>]
      # @param seeds [Array<Seed>]
      def initialize(runs, seeds)
        @tables = runs.first.standing.tables
        @scripts = runs.select(&:scripts_of)
        @seeds = seeds
      end

      # @return [Array<Group>] without those that have no tables
      def groups
        all = @seeds.flat_map { |seed| [of_seed(seed), *scripts_of(seed)] } + kinds +
              [Group.new(GROWING, nil, @tables.select(&:grows_by))]
        all.reject { |group| group.tables.empty? }
      end

      private

      def of_seed(seed) = Group.new(seed.title, seed, @tables.select { |table| seed.answers.include?(table.name) })

      def scripts_of(seed)
        @scripts.select { |run| run.scripts_of == seed.title }
                .map { |run| Group.new("#{seed.title}: its own scripts, #{run.name}", nil, run.standing.tables) }
      end

      def kinds
        answering = @seeds.flat_map(&:answers)
        others = @tables.reject { |table| table.grows_by || answering.include?(table.name) }
        others.group_by { |table| kind(table.name) }
              .sort_by { |title, _| KINDS.keys.index(title) || KINDS.size }
              .map { |title, tables| Group.new(title, nil, tables) }
      end

      def kind(name) = KINDS.find { |_, globs| globs.any? { |glob| File.fnmatch(glob, name) } }&.first || OTHERS
    end
  end
end
