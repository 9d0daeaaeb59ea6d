# frozen_string_literal: true

module Ringspun
  # For `using Ringspun::Refinements`: methods of collections.
  module Refinements
    class << self
      private

      # Until each of the evaluations, which are not concluded, is so. Raises the first result that is an exception.
      def await_each(evaluations)
        selector = Selector.new do |on|
          evaluations.each { |evaluation| on.result(evaluation) { |result| take(on, evaluation, result) } }
        end
        evaluations.size.times { selector.wait }
      ensure
        selector&.close
      end

      def take(selector, evaluation, result)
        selector.delete(evaluation)
        raise result if result.is_a?(Exception)
      end
    end

    refine Enumerable do
      # Maps each element in a strand of its own, at most `limit` at once. The next element is fetched when one of them has ended.
      # The first error cancels the others and is raised.
      #
      # May switch strands.
      #
      # @param limit [Integer] strands at once
      # @yieldparam element [Object]
      # @return [Array<Object>] in the order of the elements
      # @since 0.1.0
      def map_concurrently(limit: 50, &block)
        raise UsageError, "map_concurrently needs a block" unless block

        room = Semaphore.new(limit)
        results = []
        Ringspun.scope do |scope|
          room.acquire
          each_entry.with_index do |element, index|
            scope.spin do
              results[index] = block.call(element)
            ensure
              room.release
            end
            room.acquire # before the next element is fetched
          end
        end
        results
      end
    end

    refine Array do
      # Waits for all of the evaluations. When one fails, its error is raised at once, and the others go on.
      #
      # May switch strands.
      #
      # @param within [Numeric, nil] seconds for all together; nil: no limit
      # @return [Array<Object>] their results, in their order
      # @raise [TimeoutError] when the time is up
      # @raise [Exception] the first result that is an exception; of those that are there already, the first in their order
      # @since 0.1.0
      def await_all(within: nil)
        Machine.current.timeout(within) do
          each { |evaluation| evaluation.await_result if evaluation.concluded? }
          Refinements.__send__(:await_each, reject(&:concluded?).uniq)
          map(&:await_result)
        end
      end

      # Waits for the first of the evaluations to be concluded.
      #
      # May switch strands.
      #
      # @param within [Numeric, nil] seconds; nil: no limit
      # @return [Object] its result
      # @raise [Evaluation::TimeoutError] when the time is up
      # @raise [Exception] its result, if that is an exception
      # @since 0.1.0
      def await_any(within: nil)
        raise UsageError, "await_any: there is no evaluation to wait for" if empty?
        return first.await_result(within: within) if size == 1

        Ringspun.await_fastest(*self, within: within).await_result
      end
    end
  end
end
