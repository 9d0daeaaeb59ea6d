# frozen_string_literal: true

module Bench
  class Report
    # One of the runs that a report shows. The first is what the report is about. Another one, of another Ruby or with a name of
    # its own, has figures of its own beside it, and ratios only within itself.
    class Run
      # The libraries that the line about a run names, in this order.
      LIBRARIES = %w[async uringmachine sidekiq exq redix elixir erlang pg redis-server ringspun].freeze

      # What the first run says of Redis is in its table of facts.
      ONLY_OF_OTHERS = %w[redis-server].freeze
      private_constant :LIBRARIES, :ONLY_OF_OTHERS

      # @param data [Hash] as {Report.read} returns it
      # @return [Array<Run>] the first one first
      def self.all(data) = [new(data), *data.fetch("others", []).map { |other| new(other, beside: true) }]

      # @param data [Hash] as {JsonReport} has it
      # @return [String] the version of its Ruby, and with YJIT the word
      def self.ruby(data)
        text = data.fetch("facts")["ruby"].to_s
        "Ruby #{version(text)}#{" with YJIT" if text.include?("+YJIT")}"
      end

      # @return [String, nil] the first version in a text
      def self.version(text) = text[/\d+(?:\.\d+)*/]

      # @return [Standing]
      attr_reader :standing

      # @param beside [Boolean] whether another run is the first
      def initialize(data, beside: false)
        @data = data
        @beside = beside
        @standing = Standing.new(data)
      end

      # What a column of its figures is called.
      # @return [String]
      def name = @data["name"] || Run.ruby(@data)

      def beside? = @beside

      # What a reader must know of it.
      # @return [String]
      def in_words = @data.fetch("warnings").map { |text| "#{text[0].upcase}#{text[1..]}." }.join(" ")

      # @return [Hash] as {JsonReport} has it
      attr_reader :data

      # The seed whose own scripts it ran.
      # @return [String, nil]
      def scripts_of = @data["scripts_of"]

      # What it was measured on.
      # @param all [Boolean] whether its date is told, as it is of a run that stands beside another
      # @return [String]
      def machine(all: beside?)
        ruby = facts["ruby"].include?("+YJIT") ? Run.ruby(@data) : "#{Run.ruby(@data)} without YJIT"
        machine = "#{facts["cpu"]}, #{facts["cores"]} cores, Linux #{Run.version(facts["kernel"])}"
        date = @data["date"] if all
        "Median of #{@data.fetch("samples")} on #{[machine, ruby, *libraries, *date].join(", ")}, `#{SUBJECT}` on io_uring."
      end

      private

      def facts = @data.fetch("facts")

      def libraries
        names = beside? ? LIBRARIES : LIBRARIES - ONLY_OF_OTHERS
        names.filter_map { |name| (version = facts[name] && Run.version(facts[name])) && "#{name} #{version}" }
      end
    end
  end
end
