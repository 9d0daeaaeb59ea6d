# frozen_string_literal: true

module Ringspun
  module Postgres
    class Options
      # Options of the pool in a URI: `?pool_max=20&pool_pipelining=false`. What is not said by text, as a block, is not there.
      #
      # @api private
      module OfPool
        ALL = {
          lanes: :whole, max: :whole, min: :whole, timeout: :seconds, checkout_timeout: :seconds, max_lifetime: :seconds,
          statement_cache: :whole, pipelining: :boolean, log_slower_than: :seconds
        }.freeze
        EXPECTED = { whole: "a whole number", seconds: "seconds", boolean: "true or false" }.freeze
        BOOLEANS = { "true" => true, "1" => true, "false" => false, "0" => false }.freeze
        NAMES = ALL.keys.map { |name| "pool_#{name}" }.freeze
        private_constant :EXPECTED, :BOOLEANS

        class << self
          # @param values [Hash{String => String}] of a URI; those of the pool are deleted from it
          # @return [Hash{Symbol => Object}]
          # @raise [UsageError]
          def take(values)
            ALL.filter_map do |name, kind|
              text = values.delete("pool_#{name}") or next
              value = __send__(kind, text)
              raise UsageError, "pool_#{name}: expected #{EXPECTED[kind]}, got #{text.inspect}" if value.nil?

              [name, value]
            end.to_h
          end

          private

          def whole(text) = Integer(text, 10, exception: false)
          def seconds(text) = Float(text, exception: false)&.then { |number| number if number.finite? && !text.include?("_") }
          def boolean(text) = BOOLEANS[text]
        end
      end
      private_constant :OfPool
    end
  end
end
