# frozen_string_literal: true

module Ringspun
  module Jobs
    # Writes counts and durations for people, in every message, line of the log, page and command.
    #
    # @api private
    module Words
      # Seconds in each unit. A duration of less than two of them is written in the next one.
      UNITS = [[86_400, "d"], [3600, "h"], [60, "min"]].freeze

      # Said of a class where one of ours is needed.
      OF_ACTIVE_JOB = "is one of Active Job: enqueue its jobs by perform_later"

      module_function

      # @param value [Integer]
      # @return [String] as "1,234"
      def number(value) = value.to_i.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")

      # @param value [Integer]
      # @param one [String] the word for one thing
      # @param many [String] the word for any other number of them
      # @return [String] the word that goes with the number
      def noun(value, one, many = "#{one}s") = value == 1 ? one : many

      # @return [String] as "1 job" or "2 jobs". See {noun} for the parameters.
      def count(value, one, many = "#{one}s") = "#{value} #{noun(value, one, many)}"

      # @param value [Integer]
      # @return [String] how often, as "once"
      def times(value) = { 1 => "once", 2 => "twice" }.fetch(value) { "#{value} times" }

      # @param seconds [Numeric] below 0 is written as above it
      # @return [String] with the unit that suits it, as "200 ms" or "2.5 s"
      def duration(seconds)
        seconds = seconds.abs
        size, unit = UNITS.find { |each, _| seconds >= each * 2 }
        return "#{number(seconds / size)} #{unit}" if size
        return "#{short(seconds)} s" if seconds >= 0.9995 || seconds.zero?

        seconds < 0.000_05 ? "under 0.1 ms" : "#{short(seconds * 1000)} ms"
      end

      # One digit behind the point says enough, and only of a small number.
      def short(value)
        rounded = value.round(1)
        rounded < 10 && rounded % 1 != 0 ? rounded : value.round
      end
      private_class_method :short
    end
    private_constant :Words
  end
end
