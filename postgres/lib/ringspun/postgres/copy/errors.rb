# frozen_string_literal: true

module Ringspun
  module Postgres
    # What is raised for a row of {Copying#copy_in} or {Inserting#insert_many} that is wrong: {InvalidRow} before it is sent, and
    # what the server raises of one that it has got. The latter is also the {ServerError} of its SQLSTATE, as {UniqueViolation}.
    #
    # @since 0.1.0
    module CopyRowError
      # @return [Integer, nil] the number of the row, from 1 on; nil: only its line is known, because the bytes were not made
      #   here, or because values had line breaks
      # @since 0.1.0
      attr_reader :row

      # @return [String, Integer, nil] the column's name, or its number from 1 on; nil: the row as a whole is wrong
      # @since 0.1.0
      attr_reader :column

      # @return [Integer, nil] the line of what was copied, as the server counts them
      # @since 0.1.0
      attr_reader :line

      # @api private
      # Of the context of a server's error, in whatever language that is: COPY table, line 3, column name: "value"
      CONTEXT = /^COPY .*?, [^\s\d,]+ (?<line>\d+)(?:, [^\s,:]+ (?<column>.+?))?(?::\s|$)/
      private_constant :CONTEXT

      # @api private
      # @param error [ServerError]
      # @param lines [Boolean] whether lines are rows
      # @return [ServerError] the same, which knows its row
      def self.locate(error, lines)
        found = CONTEXT.match(error.context.to_s) or return error
        error.extend(self)
        error.__send__(:locate, lines ? found[:line].to_i : nil, found[:column], found[:line].to_i)
        error
      end

      # @return [String]
      # @since 0.1.0
      def message = @where ? "#{@where}: #{super}" : super

      private

      def locate(row, column, line)
        place(row, column, line)
        @where = "#{row ? "row #{row}" : "line #{line}"}#{", column #{column}" if column}"
      end

      def place(row, column, line = nil)
        @row = row
        @column = column
        @line = line
      end
    end

    # A row with a Ruby value that Postgres cannot have. Nothing of it was sent.
    #
    # @since 0.1.0
    class InvalidRow < UsageError
      include CopyRowError

      # @api private
      def initialize(reason, row, column)
        place(row, column)
        super("row #{row}#{", column #{column}" if column}: #{reason}")
      end
    end

    class << self
      # @api private
      # The extension calls it.
      def invalid_row(reason, row, column) = InvalidRow.new(reason, row, column)

      # @api private
      # The extension calls it, for values that it does not write itself.
      def copy_text(value, json, row, column)
        json && Literals.json?(value) ? Literals.json(value, 0) : Lane.text(value, 0)
      rescue UsageError => error
        raise InvalidRow.new(error.message.sub(/\Aparameter 0 /, ""), row, column)
      end
    end
  end
end
