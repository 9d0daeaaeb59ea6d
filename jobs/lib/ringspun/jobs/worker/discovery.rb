# frozen_string_literal: true

require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Finds the queues that a worker's patterns mean.
      #
      # @api private
      class Discovery < Maintenance
        # @param queue_order [QueueOrder]
        # @yield when there is a new queue
        def initialize(*, queue_order:, random:, &found)
          super(*, random:)
          @queue_order = queue_order
          @found = found
        end

        private

        def round
          names = @backoff.attempt(:queues) { @storage.queues } if @queue_order.patterns.any?
          @found.call if names && @queue_order.know(names.select { |name| Wire.queue?(name) })
          @config.beat
        end
      end
      private_constant :Discovery
    end
  end
end
