# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # The order in which queues are asked for jobs: always the same, or drawn each time by weight.
      #
      # @api private
      class QueueOrder
        # @param queues [Array<String>, Hash{String => Integer}] an Array is strict
        def initialize(queues, random: Random)
          @strict = queues.is_a?(Array)
          @weights = @strict ? queues.to_h { |name| [name, 1] } : queues.dup
          @random = random
        end

        # @return [Hash{String => Integer}]
        attr_reader :weights

        # @return [Array<String>]
        def names = @weights.keys

        # @return [Boolean]
        def include?(name) = @weights.key?(name)

        # A weighted shuffle: each queue comes first with a probability in proportion to its weight, of the others each comes
        # second so, and so on. Each queue draws an exponential variate with its weight as the rate:
        # https://doi.org/10.1016/j.ipl.2005.11.003
        #
        # @return [Array<String>]
        def draw
          return names if @strict || @weights.size == 1

          @weights.sort_by { |_name, weight| -Math.log(1.0 - @random.rand) / weight }.map(&:first)
        end

        # A strict order gets the new queue last.
        def add(name, weight)
          @weights = @weights.merge(name => weight)
        end

        def delete(name)
          @weights = @weights.except(name)
        end
      end
      private_constant :QueueOrder
    end
  end
end
