# frozen_string_literal: true

module Ringspun
  module Postgres
    # What the server says beside its answers: `raise notice` of a function, a table that exists already. For `on_notice:`.
    #
    # @since 0.1.0
    class Notice
      # https://www.postgresql.org/docs/17/protocol-error-fields.html
      FIELDS = {
        severity: "V", sqlstate: "C", message: "M", detail: "D", hint: "H", context: "W", schema: "s", table: "t", column: "c",
        data_type: "d", constraint: "n"
      }.freeze
      private_constant :FIELDS

      # @return [String, nil] the statement; nil: it belongs to none that is known
      # @since 0.1.0
      attr_reader :sql

      # For what each is see the signature.
      FIELDS.each { |name, letter| define_method(name) { @fields[letter] } }

      # @api private
      # @param body [String] of a NoticeResponse
      def initialize(body, sql)
        @fields = Postgres.fields_of(body).freeze
        @sql = sql
      end

      # @return [Hash{Symbol => String}] all fields that it has
      # @since 0.1.0
      def fields = FIELDS.filter_map { |name, letter| [name, @fields[letter]] if @fields[letter] }.to_h

      # @return [String] as NOTICE: the text
      # @since 0.1.0
      def to_s = "#{severity || @fields["S"]}: #{message}"

      # @return [String]
      def inspect = "#<#{self.class} #{self}>"
    end
  end
end
