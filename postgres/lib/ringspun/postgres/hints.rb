# frozen_string_literal: true

module Ringspun
  module Postgres
    # What might help where the server's own words do not: an Array is an array of Postgres, and neither a list nor json.
    #
    # @api private
    module Hints
      LIST = /\b(?<no>not\s+)?in\s*\(?\s*\z/i
      IN = /\A(?<no>not\s+)?in\b/i
      FOR_JSON = "for json give Ringspun::Postgres::Json.new"
      ARRAY = "where a parameter is an Array that the server takes as text, it is written as an array of Postgres; " \
              "#{FOR_JSON}(array)".freeze
      DATA = /\AJSON data, line 1: (?<data>.*)/
      private_constant :LIST, :IN, :FOR_JSON, :ARRAY, :DATA

      class << self
        # @param fields [Hash{String => String}] of an error, by their letters in the protocol
        # @param sql [String, nil]
        # @return [String, nil]
        def for(fields, sql)
          return unless sql

          case fields["C"]
          when "42601" then list(sql, fields["P"].to_i)
          when "42883" then operator(sql, fields)
          when "22P02" then value(sql, fields)
          end
        end

        private

        # `in $1`.
        def list(sql, position)
          found = position.positive? && LIST.match(sql[0, position - 1].to_s)
          parameter = found && sql[(position - 1)..].to_s[/\A\$\d+/]
          instead(parameter, found[:no]) if parameter
        end

        # `in ($1::int[])`.
        def operator(sql, fields)
          found = fields["M"].to_s.include?("[]") && fields["P"] && IN.match(sql[(fields["P"].to_i - 1)..].to_s)
          parameter = found && found.post_match[/\A\s*\(\s*(\$\d+)/, 1]
          instead(parameter, found[:no]) if parameter
        end

        # Of a parameter, whose number the context names, where that one is of the type.
        def value(sql, fields)
          parameter = fields["W"].to_s[/\$\d+/]
          return json(sql, fields["W"].to_s, parameter) if fields["M"].to_s.include?("json")
          return unless parameter

          found = fields["M"].to_s.include?("{") && /\b(?<no>not\s+)?in\s*\(\s*#{Regexp.escape(parameter)}\s*\)/i.match(sql)
          instead(parameter, found[:no]) if found
        end

        def json(sql, context, parameter)
          data = context[DATA, :data] or return
          return (ARRAY if sql.match?(/\$\d/) && data.start_with?("{")) unless parameter

          value = { "t" => true, "f" => false }[data]
          "where the parameter is #{value}, it is sent as a boolean; #{FOR_JSON}(#{value})" unless value.nil?
        end

        def instead(parameter, no)
          "for an Array write #{no ? "<> all(#{parameter})" : "= any(#{parameter})"} in place of #{"not " if no}in"
        end
      end
    end
    private_constant :Hints
  end
end
