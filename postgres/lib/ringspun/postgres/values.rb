# frozen_string_literal: true

require "bigdecimal"
require "date"
require "ipaddr"
require "json"

module Ringspun
  module Postgres
    # A span of time as Postgres has it: months and days have no fixed length.
    #
    # @since 0.1.0
    Interval = Data.define(:months, :days, :microseconds) do
      # @return [String] as ISO 8601 has it, which Postgres reads
      def to_s
        # The server reads seconds as a double, which from 2**32 on does not hold each microsecond. Hours it reads exactly.
        rest = microseconds.abs < 2**32 * 1_000_000 ? microseconds : microseconds.remainder(3_600_000_000)
        hours = (microseconds - rest) / 3_600_000_000
        "P#{months}M#{days}DT#{"#{hours}H" unless hours.zero?}#{format("%.6f", rest.to_r / 1_000_000)}S"
      end
    end

    # What values of the server become for which Ruby code is needed; the others are decoded in C.
    #
    # @api private
    module Values
      ISO = /\AP(?:(?<years>-?\d+)Y)?(?:(?<months>-?\d+)M)?(?:(?<days>-?\d+)D)?
             (?:T(?:(?<hours>-?\d+)H)?(?:(?<minutes>-?\d+)M)?(?:(?<seconds>-?\d+(?:\.\d{1,6})?)S)?)?\z/x
      private_constant :ISO

      module_function

      def decimal(text) = BigDecimal(text)

      # A json, other than a jsonb, may have a key several times: the last counts, as for the server.
      def json(text)
        JSON.parse(text, max_nesting: false, allow_duplicate_key: true)
      rescue JSON::ParserError => error
        raise DecodeError, "no json: #{error.message}"
      rescue SystemStackError
        raise DecodeError, "no json that this Ruby can read: it is too deep"
      end

      def address(text)
        IPAddr.new(text)
      rescue IPAddr::Error => error
        raise DecodeError, "no inet: #{error.message}"
      end

      def interval_of(months, days, microseconds) = Interval.new(months:, days:, microseconds:)

      # In the style iso_8601, which is asked for when a connection begins.
      def interval(text)
        found = ISO.match(text) or raise DecodeError, "no interval in the style iso_8601: #{text}"
        seconds = (found[:hours].to_i * 3600) + (found[:minutes].to_i * 60) + found[:seconds].to_r
        interval_of((found[:years].to_i * 12) + found[:months].to_i, found[:days].to_i, (seconds * 1_000_000).to_i)
      end
    end
    private_constant :Values

    # Bytes, for a parameter of the type bytea: also where the server cannot tell the type, and without asking it for the type
    # first, as a String whose encoding is BINARY does.
    #
    # @since 0.1.0
    class Bytes
      # @return [String] the bytes, whose encoding is BINARY
      # @since 0.1.0
      attr_reader :to_s

      # @param string [String] the bytes, whatever its encoding
      # @raise [UsageError]
      # @since 0.1.0
      def initialize(string)
        raise UsageError, "expected the Bytes of a String, got #{string.inspect}" unless string.is_a?(String)

        @to_s = string.b.freeze
        freeze
      end

      # @return [Boolean] whether it has the same bytes
      # @since 0.1.0
      def ==(other) = other.instance_of?(Bytes) && to_s == other.to_s
      alias eql? ==

      # @return [Integer]
      # @since 0.1.0
      def hash = [Bytes, to_s].hash
    end

    # Parameters whose texts the extension does not make.
    #
    # @api private
    module Texts
      @others = {} # classes => their texts

      class << self
        # Of instances of a further class. Of several that fit the first counts.
        #
        # @yieldparam value [Object]
        # @yieldparam place [Integer]
        # @yieldreturn [String]
        def add(type, &text) = @others[type] = text

        # @param value [Object]
        # @param place [Integer] which parameter it is, from 1 on
        # @return [String, Time]
        # @raise [UsageError]
        def of(value, place)
          case value
          when Interval then value.to_s
          when String, Symbol then utf8(value.to_s, place)
          when BigDecimal then value.to_s("F").delete_suffix(".0")
          when Time, DateTime then Time.at(value.to_time)
          when IPAddr then "#{value}/#{value.prefix}"
          else other(value, place) || refuse(value, place)
          end
        end

        private

        def utf8(text, place)
          text.encode(Encoding::UTF_8)
        rescue EncodingError => error
          raise UsageError, "parameter #{place} cannot be had in UTF-8: #{error.message}"
        end

        def other(value, place) = @others.find { |type, _| type === value }&.last&.call(value, place)

        def refuse(value, place)
          raise UsageError, "parameter #{place} is of #{value.class}, of which Postgres has no type; give nil, true, false, " \
                            "a String, Symbol, Integer, Float, BigDecimal, Rational, Time, Date, TimeOfDay, Interval, Array, " \
                            "Set, Range, Hash (json), Json, Struct or Data (a composite), IPAddr or Bytes"
        end
      end
    end
    private_constant :Texts

    # @api private
    def self.encode(value, place) = Texts.of(value, place)
  end
end
