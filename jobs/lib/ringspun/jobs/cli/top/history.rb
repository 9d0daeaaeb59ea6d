# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      class Top < Command
        # The last samples, from which follows what goes on in a second.
        #
        # @api private
        class History
          # A minute of seconds, for a rate is between two samples.
          SAMPLES_MAX = 61
          BARS = %w[▁ ▂ ▃ ▄ ▅ ▆ ▇ █].freeze

          # @return [Metrics::Sample, nil] the last one
          def last = @samples.last

          def initialize
            @samples = []
          end

          def add(sample)
            @samples.shift if @samples.size >= SAMPLES_MAX
            @samples << sample
          end

          # @param name [Symbol] :processed or :failed
          # @return [Float, nil] by the second, since the sample before; nil: there is none
          def rate(name) = rates(name).last

          # @return [Array<Float>] by the second, one less than there are samples
          def rates(name)
            @samples.each_cons(2).map do |one, other|
              seconds = other.time - one.time
              seconds.positive? ? [(other.stats[name] - one.stats[name]) / seconds, 0.0].max : 0.0
            end
          end

          # @return [String] a bar for each rate, the highest of which is full
          def bars(name)
            rates = rates(name)
            most = rates.max.to_f
            rates.map { |rate| BARS[most.zero? ? 0 : (rate / most * (BARS.size - 1)).round] }.join
          end
        end
      end
    end
  end
end
