# frozen_string_literal: true

module Ringspun
  # What may have been meant by a name that there is not, for the message of an error. A Ruby without DidYouMean has all names.
  #
  # @api private
  module Suggestion
    # The way in which OptionParser says it.
    OF_PARSER = /\s*Did you mean\?\s+(\S+).*/m
    private_constant :OF_PARSER

    class << self
      # @param name [String, Symbol] which there is not
      # @param known [Array<String, Symbol>] those that there are
      # @param nearest_of [Array<String, Symbol>] those that may have been meant
      # @return [String] the end of a message: the nearest, or all of `known` where none is near
      def for(name, known, nearest_of: known)
        near = nearest(name, nearest_of)
        near ? ", did you mean #{near}?" : "; there are #{known.join(", ")}"
      end

      # @param error [OptionParser::ParseError]
      # @return [String] its message
      def in_parse_error(error)
        "#{error.message.sub(OF_PARSER, ', did you mean --\1?')}; --help lists the options"
      end

      private

      def nearest(name, known)
        DidYouMean::SpellChecker.new(dictionary: known).correct(name).first if defined?(DidYouMean::SpellChecker)
      end
    end
  end
  private_constant :Suggestion
end
