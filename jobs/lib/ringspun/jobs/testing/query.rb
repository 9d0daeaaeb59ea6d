# frozen_string_literal: true

require_relative "../testing"

module Ringspun
  module Jobs
    module Testing
      # The jobs that a test looks for among those that were enqueued.
      #
      # @api private
      class Query
        # Seconds by which a time may differ if test and job have read the clock one after the other.
        NEAR = 1.0
        EXACTLY = 0.001

        # @param job_class [Class, String]
        # @param wanted [Hash{Symbol => Object}] :args, each by `===`; :queue; :at; :in
        # @yield compares arguments in another way
        # @yieldparam expected [Array]
        # @yieldparam actual [Array]
        def initialize(job_class, wanted, &compare)
          unless Testing.mode == :fake
            raise UsageError, "jobs are kept only in the mode fake!, and this is #{Testing.mode}!"
          end

          @name = job_class.is_a?(Module) ? job_class.name : job_class.to_s
          @wanted = wanted.compact
          @compare = compare || method(:same?)
        end

        # @param records [Array<Record>]
        # @return [Array<Record>]
        def among(records) = records.select { |record| match?(record) }

        # @return [String]
        def to_s
          [@name, *@wanted.map { |name, value| "#{name}: #{value.inspect}" }].join(", ")
        end

        # @param records [Array<Record>]
        # @return [String] what they are, one a line
        def self.list(records)
          return "nothing was enqueued" if records.empty?

          lines = records.map do |record|
            job = record.job
            time = ", at: #{Time.at(record.due)}" if record.due
            "  #{job["class"]}, args: #{job["args"].inspect}, queue: #{job["queue"].inspect}#{time}"
          end
          "these were enqueued:\n#{lines.join("\n")}"
        end

        private

        def match?(record)
          job = record.job
          job["class"] == @name && @wanted.all? do |name, value|
            case name
            when :args then @compare.call(value, job["args"])
            when :queue then job["queue"] == value.to_s
            when :at then at?(record, value.to_f)
            when :in then in?(record, Seconds.limit("in", value))
            end
          end
        end

        def same?(expected, actual)
          expected.size == actual.size && expected.zip(actual).all? { |one, other| one === other }
        end

        def at?(record, time) = record.due && (record.due - time).abs <= (record.at ? EXACTLY : NEAR)

        def in?(record, seconds)
          record.due && (record.due - record.now - seconds).abs <= (record.delay ? EXACTLY : NEAR)
        end
      end
      private_constant :Query
    end
  end
end
