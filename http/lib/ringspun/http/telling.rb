# frozen_string_literal: true

module Ringspun
  module HTTP
    # Tells what goes wrong, in the place that the program has named for that. Where that takes nothing, as a disk that is full or
    # a pipe whose reader has ended, requests and connections go on all the same. What was to be told is a warning then, the first
    # time.
    #
    # @api private
    class Telling
      # @param errors [#puts]
      # @raise [UsageError] that takes no lines
      def initialize(errors)
        raise UsageError, "errors: must have puts, as an IO has it, got #{errors.inspect}" unless errors.respond_to?(:puts)

        @errors = errors
      end

      # May switch strands.
      #
      # @param text [#to_s]
      # @return [nil]
      def puts(text) = tell(text) { "ringspun-http: #{text}" }

      # The same, without a name before it.
      #
      # May switch strands.
      #
      # @param line [String]
      # @return [nil]
      def say(line) = tell(line) { line }

      private

      def tell(what)
        @errors.puts(yield)
        @errors.flush if @errors.respond_to?(:flush)
        nil
      rescue StandardError => error
        return if @told

        @told = true
        warn_of(error, what)
      end

      # The two may be of encodings that go into no text together.
      def warn_of(error, what)
        reason, text = [error.message, what].map { |part| part.to_s.b }
        Warnings.tell("ringspun-http: errors: takes nothing (#{reason}), which is told once; it was to take: #{text}")
      rescue StandardError => another
        Warnings.tell("ringspun-http: errors: takes nothing (#{error.class}); what it was to take is no text (#{another.class})")
      end
    end
    private_constant :Telling
  end
end
