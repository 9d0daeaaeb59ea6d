# frozen_string_literal: true

require "strscan"
require_relative "errors"
require_relative "shown"

module Ringspun
  module Postgres
    # A statement of a script.
    #
    # @!attribute [r] number
    #   @return [Integer] from 1 on
    # @!attribute [r] line
    #   @return [Integer] of the script, on which it begins, from 1 on
    # @!attribute [r] sql
    #   @return [String] its text
    # @since 0.1.0
    ScriptPlace = Data.define(:number, :line, :sql) do
      # @return [String]
      def to_s = "in statement #{number} of the script, line #{line}: #{Shown.sql(sql, 100)}"

      # @return [String]
      def inspect = "#<#{self.class} #{self}>"

      # Of this alone `pp` knows.
      def pretty_print(printer) = printer.text(inspect)
    end

    # The text of a script, taken apart as the server does it: https://www.postgresql.org/docs/17/sql-syntax-lexical.html
    # What lies in quotes, between dollars, in comments and parentheses ends no statement, and neither does the body of a function
    # that begins with BEGIN ATOMIC.
    #
    # @api private
    class Script
      # Bytes. The server takes no longer message.
      MAX = 0x3fffff00

      LETTER = "[a-zA-Z_\\u0080-\\u{10ffff}]"
      BLANK = /\s+|--[^\n\r]*/
      ESCAPED = /e'(?:[^'\\]|\\.|'')*(?:'|\z)/im
      QUOTED = /'[^']*(?:'|\z)|"[^"]*(?:"|\z)/m
      DOLLAR = /\$(?:#{LETTER}(?:#{LETTER}|\d)*)?\$/
      WORD = /#{LETTER}(?:#{LETTER}|[\d$])*/
      NUMBER = /\d+/
      FUNCTION = /\Acreate(?: or replace)? (?:function|procedure)\b/
      STREAMED = /\A\s*copy\b.*\b(?:from\s+stdin|to\s+stdout)\b/im
      private_constant :MAX, :LETTER, :BLANK, :ESCAPED, :QUOTED, :DOLLAR, :WORD, :NUMBER, :FUNCTION, :STREAMED

      class << self
        # @raise [UsageError]
        def check(sql)
          Lane.check(sql, [])
          raise UsageError, "a script has at most #{MAX} bytes" if sql.bytesize > MAX
          return unless sql.match?(/\bcopy\b/i)

          found = new(sql).places.find { |place| STREAMED.match?(place.sql) } or return
          raise UsageError, "there is no COPY from or to the client in a script: #{found}"
        end

        # Of one in a transaction.
        #
        # @raise [UsageError]
        def refuse_ends(sql)
          return unless sql.match?(/\b(?:commit|end|abort|rollback|prepare)\b/i)

          found = new(sql).places.find { |place| Lane.ends_transaction?(place.sql) } or return
          raise UsageError, "the script is in a transaction, which no statement ends: #{found}"
        end
      end

      def initialize(sql)
        @sql = sql
        @scanner = StringScanner.new(sql)
        @places = []
        @ends = [] # of them, in bytes
      end

      # @return [Array<ScriptPlace>] the statements
      def places
        scan unless @scanned
        @places
      end

      # @param position [Integer, nil] a character of the script, from 1 on
      # @param whole [Integer] how many statements have come to their end
      # @return [ScriptPlace, nil] the one that is meant
      def place(position, whole)
        return places[whole] unless position

        byte = @sql[0, position - 1].to_s.bytesize
        places[@ends.index { |ends| byte < ends } || -1] if places.any?
      end

      private

      def scan
        @scanned = true
        begin_statement
        until @scanner.eos?
          at = @scanner.pos
          next if pass_blanks

          @first ||= at
          @scanner.skip(/;/) ? end_statement(at) : pass_token
        end
        finish(@scanner.pos)
      end

      def begin_statement
        @first = nil
        @depth = 0
        @body = 0
        @words = []
      end

      def end_statement(at) = (finish(at) if @depth <= 0 && @body.zero?)

      # One of nothing but blanks and comments is none.
      def finish(at)
        if @first && at > @first
          line = @sql.byteslice(0, @first).count("\n") + 1
          @places << ScriptPlace.new(@places.size + 1, line, @sql.byteslice(@first...at).rstrip)
          @ends << at
        end
        begin_statement
      end

      def pass_blanks = @scanner.skip(BLANK) || (@scanner.skip(%r{/\*}) && pass_comment)

      # They nest.
      def pass_comment
        depth = 1
        while depth.positive? && @scanner.skip_until(%r{/\*|\*/})
          depth += @scanner.matched == "/*" ? 1 : -1
        end
        @scanner.terminate if depth.positive?
        true
      end

      def pass_token
        if @scanner.skip(ESCAPED) || @scanner.skip(QUOTED) || @scanner.skip(NUMBER) then nil
        elsif (tag = @scanner.scan(DOLLAR)) then @scanner.skip_until(/#{Regexp.escape(tag)}/) || @scanner.terminate
        elsif (word = @scanner.scan(WORD)) then take_word(word.downcase)
        else take_sign(@scanner.getch)
        end
      end

      def take_sign(sign)
        @depth += { "(" => 1, ")" => -1 }.fetch(sign, 0)
      end

      # In the body of a function CASE has an END as BEGIN has.
      def take_word(word)
        @words << word if @words.size < 4
        return unless @depth <= 0 && FUNCTION.match?(@words.join(" "))

        case word
        when "begin" then @body += 1
        when "case" then @body += 1 if @body.positive?
        when "end" then @body -= 1 if @body.positive?
        end
      end
    end
    private_constant :Script

    # @api private
    # @param body [String] of an ErrorResponse
    # @param whole [Integer] statements of the script that have come to their end
    # @return [ServerError]
    def self.script_error(body, sql, whole)
      position = body.b[/\0P(\d+)\0/n, 1]&.to_i
      error_of(body, sql, Script.new(sql).place(position, whole))
    end
  end
end
