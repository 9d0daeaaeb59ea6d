# frozen_string_literal: true

module Ringspun
  module Postgres
    # A statement as logs and reports show it: in one line, without a password, and cut where it is long. Parameters are not in
    # it.
    #
    # @api private
    module Shown
      # Characters of a statement that a message shows.
      MAX = 500

      # What follows PASSWORD in statements about roles.
      PASSWORD = /\b(password\s+)(?:(?:e|u&)?'(?:[^']|'')*'?|\$(\w*)\$.*?(?:\$\2\$|\z))/im
      private_constant :PASSWORD

      # @return [String]
      def self.sql(text, max = MAX)
        line = text.gsub(PASSWORD, "\\1'...'").strip.gsub(/\s+/, " ")
        line.size > max ? "#{line[0, max]}..." : line
      end
    end
    private_constant :Shown
  end
end
