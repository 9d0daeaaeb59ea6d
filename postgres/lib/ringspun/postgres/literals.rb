# frozen_string_literal: true

require "json"
require_relative "time_of_day"
require_relative "values"

module Ringspun
  module Postgres
    # A parameter that is json, whatever it is: true by itself is a boolean, a String is json already, an Array is json where the
    # type of the parameter is.
    #
    # @!attribute [r] value
    #   @return [Object] what has json: an Array, a Hash, a String, a number, true, false or nil
    # @since 0.1.0
    Json = Data.define(:value) do
      # Also within an Array or Hash it is what it has.
      #
      # @return [String]
      def to_json(*) = value.to_json(*)
    end

    # Parameters of classes that have no type of their own in Ruby or in Postgres: a Range, a Set, a Rational, what is to be json,
    # and a Struct or Data, which is a composite.
    #
    # @api private
    module Literals
      # Significant digits of a Rational that no decimal fraction is equal to.
      DIGITS = 40

      JSONS = [Hash, Array, Set, Json, TrueClass, FalseClass].freeze
      private_constant :DIGITS, :JSONS

      class << self
        # https://www.postgresql.org/docs/17/rangetypes.html#RANGETYPES-IO
        def range(range, place)
          low, high = [range.begin, range.end].map { |bound| unbounded?(bound) ? "" : quoted(bound, place) }
          "#{low.empty? ? "(" : "["}#{low},#{high}#{high.empty? || range.exclude_end? ? ")" : "]"}"
        end

        # https://www.postgresql.org/docs/17/rowtypes.html#ROWTYPES-IO-SYNTAX
        def composite(values, place) = "(#{values.map { |value| value.nil? ? "" : quoted(value, place) }.join(",")})"

        # Exact, where its denominator divides a power of ten.
        def rational(number)
          rest, twos = without(number.denominator, 2)
          rest, fives = without(rest, 5)
          return BigDecimal(number, DIGITS).to_s("F") unless rest == 1

          places = [twos, fives].max
          digits = (number.abs * (10**places)).to_i.to_s.rjust(places + 1, "0")
          "#{"-" if number.negative?}#{digits[0, digits.size - places]}#{".#{digits[-places..]}" if places.positive?}"
        end

        # Of a value for a column of json: what by itself has another text there, or none.
        def json?(value) = JSONS.any? { |kind| kind === value }

        def json(value, place)
          JSON.generate(value.is_a?(Set) ? value.to_a : value)
        rescue JSON::JSONError => error
          raise UsageError, "parameter #{place} cannot be had as json: #{error.message}"
        end

        private

        def unbounded?(bound) = bound.nil? || (bound.is_a?(Float) && bound.infinite?)

        def quoted(value, place) = "\"#{text(value, place).gsub(/["\\]/) { |character| "\\#{character}" }}\""

        # The type of a member is not known: bytes are those that say so.
        def text(value, place) = value.is_a?(Bytes) ? "\\x#{value.to_s.unpack1("H*")}" : Lane.text(value, place)

        def without(number, factor)
          times = 0
          times += 1 while (number % (factor**(times + 1))).zero?
          [number / (factor**times), times]
        end
      end

      Texts.add(Hash) { |value, place| json(value, place) }
      Texts.add(Json) { |json, place| json(json.value, place) }
      Texts.add(Range) { |range, place| range(range, place) }
      Texts.add(Rational) { |number, _| rational(number) }
      Texts.add(TimeOfDay) { |time, _| time.to_s }
      Texts.add(Struct) { |struct, place| composite(struct.to_a, place) }
      Texts.add(Data) { |data, place| composite(data.to_h.values, place) }
    end
    private_constant :Literals

    # Of an Array for a parameter whose type is json. The extension calls it.
    #
    # @api private
    def self.json_of(list, place) = Literals.json(list, place)
  end
end
