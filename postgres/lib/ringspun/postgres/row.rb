# frozen_string_literal: true

module Ringspun
  module Postgres
    # A row of a {Result} or a {Client#stream}: its values by the names of their columns, or by their places. The extension
    # has the rest.
    #
    # @since 0.1.0
    class Row
      # One value, or what stands in for a column that is not there. A value that is NULL is there.
      #
      # @param key [Integer, String, Symbol] as of {#[]}
      # @param default [Object] for a column that is not there
      # @yieldparam key [Integer, String, Symbol] and the block returns what stands in
      # @return [Object, nil]
      # @raise [UsageError] there is no such column, and nothing stands in for it; names those that there are
      # @since 0.1.0
      def fetch(key, default = (none = true))
        return self[key] if key?(key)
        return yield(key) if block_given?
        return default unless none

        raise UsageError, "there is no column #{key.inspect}; there are #{columns.join(", ")}"
      end

      # @param key [Integer, String, Symbol] a name, or a place
      # @return [Boolean] whether there is that column, also where its value is NULL
      # @since 0.1.0
      def key?(key)
        case key
        when Integer then key.between?(-columns.size, columns.size - 1)
        when Symbol then columns.include?(key.name)
        else columns.include?(key)
        end
      end
      alias has_key? key?

      # @param keys [Array<Integer, String, Symbol>] as of {#[]}
      # @return [Array<Object>]
      # @raise [UsageError] there is no column of such a name
      # @since 0.1.0
      def values_at(*keys) = keys.map { |key| self[key] }

      # A value inside of a value: of json, of an array.
      #
      # @param key [Integer, String, Symbol] as of {#[]}
      # @param more [Array<Object>] what the value is asked for
      # @return [Object, nil]
      # @raise [UsageError] there is no column of that name
      # @raise [TypeError] a value on the way has nothing inside
      # @since 0.1.0
      def dig(key, *more)
        [self[key]].dig(0, *more)
      end

      # @yieldparam name [String]
      # @yieldparam value [Object, nil]
      # @return [self, Enumerator] the latter without a block
      # @since 0.1.0
      def each(&block)
        return to_enum(:each) { size } unless block

        columns.zip(to_a).each { |pair| yield(*pair) }
        self
      end
      alias each_pair each

      # @return [Array<String>] the names of the columns
      # @since 0.1.0
      def keys = columns

      # @return [Array] the values
      # @since 0.1.0
      def values = to_a

      # @return [Integer] how many columns it has
      # @since 0.1.0
      def size = columns.size
      alias length size

      # @return [Boolean] whether it has the same columns and values
      # @since 0.1.0
      def ==(other) = other.is_a?(Row) && columns == other.columns && to_a == other.to_a

      # For `uniq`, and for keys of a Hash: the values are compared as those do it.
      #
      # @return [Boolean]
      # @since 0.1.0
      def eql?(other) = other.is_a?(Row) && columns == other.columns && to_a.eql?(other.to_a)

      # @return [Integer]
      # @since 0.1.0
      def hash = [columns, to_a].hash

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
  end
end
