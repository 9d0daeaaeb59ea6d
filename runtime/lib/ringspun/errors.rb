# frozen_string_literal: true

module Ringspun
  # Errors that came after the one that a scope raised.
  module Suppressed
    # @return [Array<Exception>] in the order in which they came
    # @since 0.1.0
    attr_reader :suppressed

    # @return [String] the message and backtrace, followed by those of the suppressed errors
    # @since 0.1.0
    def full_message(**options)
      [super, *suppressed.map { |error| "Suppressed: #{error.full_message(**options)}" }].join("\n")
    end
  end
  private_constant :Suppressed

  class << self
    # Errors that came after this one in the scope that raised it.
    #
    # @param error [Exception]
    # @return [Array<Exception>]
    # @since 0.1.0
    def suppressed(error) = Suppressed === error ? error.suppressed : []

    private

    def suppress(error, others)
      return if error.frozen?

      all = suppressed(error) | others
      error.extend(Suppressed)
      error.instance_variable_set(:@suppressed, all)
    end
  end
end
