# frozen_string_literal: true

module Ringspun
  module Jobs
    # Which queues are served, by what workers announce of themselves. Those that are quiet serve none.
    #
    # @api private
    class Served
      # @param nodes [Array<Hash{String => Object}>] see {Storage#nodes}
      def initialize(nodes)
        nodes = nodes.reject { |node| node["quiet"] == true }
        @any = nodes.any?
        @ours = nodes.count { |node| node["ringspun"] }
        @patterns = nodes.map { |node| [*node["patterns"]].grep(String) }.reject(&:empty?).tally
        @names = nodes.flat_map { |node| names_of(node) }.tally
      end

      # @return [Boolean] whether there is any worker
      def any? = @any

      # @param queue [String]
      # @return [Integer] how many processes serve it. Each of ours serves the quarantine, whatever its queues are.
      def count(queue)
        return @ours if queue == Storage::QUARANTINE

        @names.fetch(queue, 0) + @patterns.sum { |some, times| match?(some, queue) ? times : 0 }
      end

      # @param queues [Enumerable<String>]
      # @return [Array<String>] those that nobody serves
      def unserved(queues) = queues.select { |queue| count(queue).zero? && queue != Storage::QUARANTINE }

      private

      # What a pattern finds is counted by the pattern: workers find new queues from time to time only.
      def names_of(node)
        patterns = [*node["patterns"]].grep(String)
        [*node["queues"]].grep(String).uniq.reject { |name| match?(patterns, name) }
      end

      def match?(patterns, queue) = patterns.any? { |pattern| QueuePattern.match?(pattern, queue) }
    end
    private_constant :Served
  end
end
