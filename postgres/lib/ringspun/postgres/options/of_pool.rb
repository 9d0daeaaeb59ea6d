# frozen_string_literal: true

module Ringspun
  module Postgres
    class Options
      # Options of the pool in a URI: `?pool_max=20&pool_pipelining=false`. What is not said by text, as a block, is not there.
      #
      # @api private
      module OfPool
        WHOLE = ->(text) { Integer(text, 10, exception: false) }
        SECONDS = ->(text) { Float(text, exception: false)&.then { |number| number if number.finite? && !text.include?("_") } }
        BOOLEAN = ->(text) { { "true" => true, "1" => true, "false" => false, "0" => false }[text] }
        ALL = {
          lanes: WHOLE, max: WHOLE, min: WHOLE, timeout: SECONDS, checkout_timeout: SECONDS, max_lifetime: SECONDS,
          statement_cache: WHOLE, pipelining: BOOLEAN, log_slower_than: SECONDS
        }.freeze
        EXPECTED = { WHOLE => "a whole number", SECONDS => "seconds", BOOLEAN => "true or false" }.freeze
        NAMES = ALL.keys.map { |name| "pool_#{name}" }.freeze
        private_constant :WHOLE, :SECONDS, :BOOLEAN, :EXPECTED

        # @param values [Hash{String => String}] of a URI; those of the pool are deleted from it
        # @return [Hash{Symbol => Object}]
        # @raise [UsageError]
        def self.take(values)
          ALL.filter_map do |name, reader|
            text = values.delete("pool_#{name}") or next
            value = reader.call(text)
            raise UsageError, "pool_#{name}: expected #{EXPECTED[reader]}, got #{text.inspect}" if value.nil?

            [name, value]
          end.to_h
        end
      end
      private_constant :OfPool
    end
  end
end
