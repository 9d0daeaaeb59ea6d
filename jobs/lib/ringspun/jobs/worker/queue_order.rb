# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # In which order queues are looked at: always the same, or drawn anew each time, by weight.
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

        # Each queue comes first as often as its weight says, second of those that are left, and so on: each draws the time
        # of its next event in a stream of events that many times as dense.
        #
        # @return [Array<String>]
        def draw
          return names if @strict || @weights.size == 1

          @weights.sort_by { |_name, weight| -Math.log(1.0 - @random.rand) / weight }.map(&:first)
        end

        # A strict order has it last.
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
