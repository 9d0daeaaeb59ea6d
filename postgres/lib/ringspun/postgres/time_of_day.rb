# frozen_string_literal: true

module Ringspun
  module Postgres
    # A time of day without a day, as `time` has it. As a decoder: `types: { time: TimeOfDay.method(:parse) }`.
    #
    # @!attribute [r] hour
    #   @return [Integer] from 0 to 24, which is the end of the day
    # @!attribute [r] minute
    #   @return [Integer]
    # @!attribute [r] second
    #   @return [Integer]
    # @!attribute [r] microsecond
    #   @return [Integer]
    # @since 0.1.0
    TimeOfDay = Data.define(:hour, :minute, :second, :microsecond) do
      include Comparable

      # @param time [Time, DateTime] in whatever zone it is
      # @return [TimeOfDay]
      # @since 0.1.0
      def self.of(time) = new(time.hour, time.min, time.sec, time.to_time.usec)

      # @param text [String] as the server writes it: 09:30:00.5
      # @return [TimeOfDay]
      # @raise [UsageError] it is none; one with a zone, as of `timetz`, is none either
      # @since 0.1.0
      def self.parse(text)
        found = /\A(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?\z/.match(text) or
          raise UsageError, "expected a time of day like 09:30:00.5, got #{text.inspect}"
        new(Integer(found[1], 10), Integer(found[2], 10), found[3].to_i, found[4].to_s.ljust(6, "0").to_i)
      end

      # @raise [UsageError] there is no such time of day
      # @since 0.1.0
      def initialize(hour:, minute: 0, second: 0, microsecond: 0)
        parts = { hour:, minute:, second:, microsecond: }
        parts.zip([24, 59, 59, 999_999]) do |(name, given), most|
          next if given.is_a?(Integer) && given.between?(0, most)

          raise UsageError, "#{name}: expected a whole number from 0 to #{most}, got #{given.inspect}"
        end
        raise UsageError, "24:00:00 is the end of the day, and nothing is behind it" if hour == 24 && parts.values.sum > 24

        super
      end

      # @return [Integer, nil]
      def <=>(other) = other.is_a?(self.class) ? to_h.values <=> other.to_h.values : nil

      # @return [String] as the server reads it
      def to_s = format("%02d:%02d:%02d.%06d", hour, minute, second, microsecond)
    end
  end
end
