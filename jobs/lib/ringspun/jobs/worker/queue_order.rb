# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # The order in which queues are asked for jobs: always the same, or drawn each time by weight.
      #
      # @api private
      class QueueOrder
        # @param queues [Array<String>, Hash{String => Integer}] names, and patterns; an Array is strict
        def initialize(queues, random: Random)
          @strict = queues.is_a?(Array)
          @asked = @strict ? queues.to_h { |name| [name, 1] } : queues.dup
          @random = random
          @known = @deleted = []
          arrange
        end

        # @return [Hash{String => Integer}]
        attr_reader :weights

        # @return [Array<String>]
        def names = @weights.keys

        # @return [Array<String>] those that the worker was told
        def asked = @asked.keys

        # @return [Array<String>] see {QueuePattern}
        def patterns = asked.grep(QueuePattern)

        # @return [Boolean]
        def include?(name) = @weights.key?(name)

        # @return [Boolean] whether there is no queue, as patterns find none
        def empty? = @weights.empty?

        # Finds what the patterns mean.
        #
        # @param names [Array<String>] all queues that there are
        # @return [Boolean] whether there is a new one
        def know(names)
          before = self.names
          @known = names.sort
          arrange
          (self.names - before).any?
        end

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
          @asked = @asked.merge(name => weight)
          @deleted -= [name]
          arrange
        end

        def delete(name)
          @asked = @asked.except(name)
          @deleted |= [name]
          arrange
        end

        private

        # What has a place of its own is not found by a pattern, nor what an earlier one has found.
        def arrange
          found = (@known - @asked.keys - @deleted).group_by { |name| @asked.keys.find { |one| matches?(one, name) } }
          @weights = @asked.each_with_object({}) do |(one, weight), all|
            names = QueuePattern === one ? found.fetch(one, []) : [one]
            names.each { |name| all[name] = weight }
          end
        end

        def matches?(one, name) = QueuePattern === one && QueuePattern.match?(one, name)
      end
      private_constant :QueueOrder
    end
  end
end
