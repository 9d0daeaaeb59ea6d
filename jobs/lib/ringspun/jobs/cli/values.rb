# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # Turns values of the command line and of files into the form that {Config} takes.
      class << self
        # @param words [Array] "critical,5", "default", ["critical", 5]
        # @return [Array<String>, Hash{String => Integer}] an Array, which is strict, where no weight is given
        # @raise [ConfigError]
        # @api private
        def queues_of(words)
          pairs = words.map { |word| queue_of(word) }
          twice = pairs.map(&:first).tally.find { |_, times| times > 1 }
          raise ConfigError, "the queue #{twice.first} is given twice" if twice

          pairs.any?(&:last) ? pairs.to_h { |name, weight| [name, weight || 1] } : pairs.map(&:first)
        end

        private

        def queue_of(word)
          name, weight, *more = word.is_a?(String) || word.is_a?(Numeric) ? word.to_s.split(",", -1) : word
          weight = Integer(weight, exception: false) || 0 if weight
          wrong = !name.is_a?(String) || name.empty? || more.any? || weight&.<(1)
          raise ConfigError, "a queue must be NAME or NAME,WEIGHT (1 or more), got #{word.inspect}" if wrong

          [name, weight]
        end
      end
    end
  end
end
