# frozen_string_literal: true

require_relative "type_names"

module Ringspun
  module Postgres
    # A column of a {Result}.
    #
    # @!attribute [r] name
    #   @return [String]
    # @!attribute [r] oid
    #   @return [Integer] the OID of its type
    # @!attribute [r] type
    #   @return [String, nil] the name of its type, as `pg_type` has it: int4, text, _text for its array; nil: it is none that
    #     comes with the server. `select $1::regtype` tells of those
    # @since 0.1.0
    Column = Data.define(:name, :oid, :type)

    # What a statement has answered. The extension has the rest.
    #
    # @since 0.1.0
    class Result
      # As an Array of its rows has it: one row, or several.
      #
      # @param place [Integer, Range<Integer>] from the end where it is negative
      # @param count [Integer, nil] how many, from `place` on; nil: the one at that place
      # @return [Row, Array<Row>, nil] nil: there is none at that place
      # @since 0.1.0
      def [](place, count = nil) = count ? all[place, count] : all[place]

      # @return [Boolean] whether it has no rows
      # @since 0.1.0
      def empty? = size.zero?

      # @return [Integer] how many rows it has
      # @since 0.1.0
      def length = size

      # @param count [Integer, nil] how many; nil: one
      # @return [Row, nil, Array<Row>] the last row, nil where there is none; or the last of them
      # @since 0.1.0
      def last(count = nil) = count ? all.last(count) : all.last

      # @return [Array<Column>] the columns with their types; empty where there are none
      # @since 0.1.0
      def column_types = columns.zip(oids).map { |name, oid| Column.new(name, oid, TypeNames::BY_OID[oid]) }

      # @return [String]
      # @since 0.1.0
      def inspect = "#<#{[self.class, tag, *columns.join(", ")].reject { |part| part.to_s.empty? }.join(" ")}>"

      private

      # A row by its place would else be looked for from the first on.
      def all = @all ||= to_a.freeze
    end
  end
end
