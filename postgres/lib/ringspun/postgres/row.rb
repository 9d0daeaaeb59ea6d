# frozen_string_literal: true

module Ringspun
  module Postgres
    # A row of a {Result} or a {Client#stream}. The extension has the rest.
    #
    # @since 0.1.0
    class Row
      # @return [Boolean] whether it has the same columns and values
      # @since 0.1.0
      def ==(other) = other.is_a?(Row) && columns == other.columns && to_a == other.to_a

      # For `in [id, name]`.
      #
      # @return [Array]
      # @since 0.1.0
      def deconstruct = to_a

      # For `in { id:, name: }`.
      #
      # @param _keys [Array<Symbol>, nil]
      # @return [Hash{Symbol => Object}]
      # @since 0.1.0
      def deconstruct_keys(_keys) = to_h.transform_keys(&:to_sym)

      # @return [String]
      # @since 0.1.0
      def inspect = "#<#{self.class} #{columns.zip(to_a).map { |name, value| "#{name}: #{value.inspect}" }.join(", ")}>"
    end

    # What a statement has answered. The extension has the rest.
    #
    # @since 0.1.0
    class Result
      # @return [String]
      # @since 0.1.0
      def inspect = "#<#{[self.class, tag, *columns.join(", ")].reject { |part| part.to_s.empty? }.join(" ")}>"
    end
  end
end
