# frozen_string_literal: true

module Ringspun
  # Checks spans of time that callers pass. `Seconds.of`, in C, is the one reading of them: it takes a real number, or what
  # Kernel#sleep takes besides, such as an ActiveSupport::Duration, and answers with a plain number; nil for all else.
  #
  # @api private
  module Seconds
    class << self
      # A limit. A negative one has passed.
      #
      # @return [Numeric] 0 or more
      # @raise [UsageError]
      def limit(name, value, expected = "a number of seconds, or nil")
        number = of(value)
        raise UsageError, "#{name}: must be #{expected}, got #{value.inspect}" unless number

        number.negative? ? 0 : number
      end

      # @return [Numeric, nil] nil: that is no finite span of more than 0 seconds
      def positive(value)
        number = of(value)
        number if number&.positive? && number.to_f.finite?
      end
    end
  end
  private_constant :Seconds
end
