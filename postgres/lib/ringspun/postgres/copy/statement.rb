# frozen_string_literal: true

module Ringspun
  module Postgres
    # A COPY statement, as far as a client must know it: which way it goes, the format of the rows, and of what they are. What is
    # not understood here the server judges. https://www.postgresql.org/docs/17/sql-copy.html
    #
    # @api private
    class CopyStatement
      KINDS = { "text" => 0, "csv" => 1, "binary" => 2 }.freeze
      WAYS = { "from" => :in, "to" => :out }.freeze
      ENDS = { in: "stdin", out: "stdout" }.freeze
      NAMED = %w[delimiter null quote escape].freeze
      private_constant :KINDS, :WAYS, :ENDS, :NAMED

      # A piece of it. `kind` is :word, :quoted, :text or :other.
      Token = Data.define(:kind, :value, :from, :to)
      private_constant :Token

      # @return [String]
      attr_reader :sql

      # @return [:in, :out, nil]
      attr_reader :way

      # @return [Boolean]
      attr_reader :header

      # @return [String, nil] the name of the table as it is written
      attr_reader :table

      # @return [String, nil] the names of the columns as they are written, or the query
      attr_reader :columns, :query

      # @param sql [String]
      # @param way [:in, :out] that it must go
      # @raise [UsageError]
      def initialize(sql, way)
        raise UsageError, "expected a COPY statement, a String, got #{sql.inspect}" unless sql.is_a?(String)

        @sql = sql
        @tokens = Tokens.of(sql)
        @options = {}
        @header = false
        read
        check(way)
      end

      # @return [Boolean]
      def binary? = format == "binary"

      def csv? = format == "csv"

      # @return [Array] as CopyRows and CopyReader take them
      def options
        delimiter = @options.fetch("delimiter") { csv? ? "," : "\t" }
        quote = csv? ? @options.fetch("quote", '"') : ""
        escape = csv? ? @options.fetch("escape", quote) : ""
        [KINDS.fetch(format), delimiter, @options.fetch("null") { csv? ? "" : "\\N" }, quote, escape]
      end

      # Rows of values are written by what is known of the format.
      #
      # @raise [UsageError]
      def check_rows
        encoding = @options["encoding"]
        if encoding && encoding !~ /\Autf-?8\z/i
          raise UsageError, "rows are in UTF-8, and the statement has ENCODING #{encoding}; leave that out, or copy bytes"
        end

        _, delimiter, _, quote, escape = options
        return if delimiter.bytesize == 1 && [quote, escape].all? { |text| text.bytesize == (csv? ? 1 : 0) }

        raise UsageError, "DELIMITER, QUOTE and ESCAPE are one byte each"
      end

      private

      def format = @options.fetch("format", "text")

      def check(way)
        raise UsageError, "expected a COPY statement, got: #{sql[0, 60]}" unless word?(@tokens.first, "copy")
        return if @way == way

        raise UsageError, "copy_#{way} is for COPY ... #{way == :in ? "FROM STDIN" : "TO STDOUT"}, got: #{sql[0, 120]}"
      end

      def word?(token, *values) = token&.kind == :word && values.include?(token.value)

      def read
        at = word?(@tokens[1], "binary") && @tokens[2]&.value != "from" ? 2 : 1
        @options["format"] = "binary" if at == 2
        to = direction(at) or return
        way = WAYS.fetch(@tokens[to].value)
        return unless word?(@tokens[to + 1], ENDS.fetch(way))

        @way = way
        read_source(@tokens[at...to])
        read_options(@tokens[(to + 2)..])
      end

      # Outside of parentheses.
      def direction(at)
        depth = 0
        (at...@tokens.size).find do |place|
          token = @tokens[place]
          depth += { "(" => 1, ")" => -1 }.fetch(token.value, 0) if token.kind == :other
          depth.zero? && word?(token, *WAYS.keys)
        end
      end

      def text(tokens) = tokens.empty? ? nil : sql[tokens.first.from...tokens.last.to]

      def read_source(tokens)
        return if tokens.empty?
        return @query = text(tokens[1...-1]) if tokens.first.value == "(" && tokens.first.kind == :other

        name = tokens.take_while { |token| token.value != "(" || token.kind != :other }
        @table = text(name)
        @columns = text(tokens[(name.size + 1)...-1] || [])
      end

      def read_options(tokens)
        tokens = tokens.take_while { |token| !(token.kind == :other && token.value == ";") && !word?(token, "where") }
        tokens.each_cons(2) { |name, value| read_option(name, word?(value, "as") ? tokens[tokens.index(value) + 1] : value) }
        %w[csv binary].each { |word| @options["format"] ||= word if tokens.any? { |token| word?(token, word) } }
        @header ||= word?(tokens.last, "header")
      end

      def read_option(name, value)
        return unless name.kind == :word && value

        case name.value
        when "format" then @options["format"] = known_format(value.value.downcase)
        when *NAMED, "encoding" then @options[name.value] = value.value if value.kind == :text || name.value == "encoding"
        when "header" then @header = !%w[false off 0].include?(value.value.downcase)
        end
      end

      def known_format(name) = KINDS.key?(name) ? name : raise(UsageError, "COPY has no format #{name.inspect}")

      # Takes SQL apart: https://www.postgresql.org/docs/17/sql-syntax-lexical.html
      #
      # @api private
      module Tokens
        class << self
          def of(sql)
            tokens = []
            at = 0
            while at < sql.size
              from = behind_blanks(sql, at)
              break if from == sql.size

              kind, value, at = one(sql, from)
              tokens << Token.new(kind:, value:, from:, to: at)
            end
            tokens
          end

          private

          BLANK = /\G(?:\s+|--[^\r\n]*)+/
          COMMENT = %r{/\*|\*/}
          QUOTED = /\G"((?:[^"]|"")*)"/
          ESCAPED = /\Ge'((?:[^'\\]|''|\\.)*)'/im
          TEXT = /\G'((?:[^']|'')*)'/
          DOLLARS = /\G\$(\w*)\$.*?\$\1\$/m
          WORD = /\G[[:alpha:]_][[:alnum:]_$]*/
          private_constant :BLANK, :COMMENT, :QUOTED, :ESCAPED, :TEXT, :DOLLARS, :WORD

          def behind_blanks(sql, at)
            loop do
              before = at
              at = $~.end(0) if BLANK.match(sql, at)
              at = behind_comment(sql, at) if sql[at, 2] == "/*"
              return at if at == before
            end
          end

          # They nest.
          def behind_comment(sql, at)
            depth = 0
            while (found = COMMENT.match(sql, at))
              at = found.end(0)
              depth += found[0] == "/*" ? 1 : -1
              return at if depth.zero?
            end
            sql.size
          end

          def one(sql, at)
            if (found = QUOTED.match(sql, at)) then [:quoted, found[1].gsub('""', '"'), found.end(0)]
            elsif (found = ESCAPED.match(sql, at)) then [:text, escaped(found[1]), found.end(0)]
            elsif (found = TEXT.match(sql, at)) then [:text, found[1].gsub("''", "'"), found.end(0)]
            elsif (found = DOLLARS.match(sql, at)) then [:other, "$", found.end(0)]
            elsif (found = WORD.match(sql, at)) then [:word, found[0].downcase, found.end(0)]
            else [:other, sql[at], at + 1]
            end
          end

          LETTERS = { "b" => "\b", "f" => "\f", "n" => "\n", "r" => "\r", "t" => "\t" }.freeze
          private_constant :LETTERS

          def escaped(text)
            text.gsub(/''|\\x(\h{1,2})|\\([0-7]{1,3})|\\(.)/m) do
              next $1.hex.chr if $1
              next $2.oct.chr if $2

              $3 ? LETTERS.fetch($3, $3) : "'"
            end
          end
        end
      end
      private_constant :Tokens
    end
    private_constant :CopyStatement
  end
end
