# frozen_string_literal: true

module Ringspun
  module Jobs
    class Client
      # Says once of each queue that workers run, and none that serves it: a typing error, most likely.
      #
      # @api private
      class Unserved
        # A program may make a queue for each of its users.
        QUEUES_MAX = 1000

        @all = ObjectSpace::WeakKeyMap.new

        # @param enqueuer [#push] some are stand-ins without a storage
        # @return [Unserved] which all clients with that enqueuer have in common
        def self.of(enqueuer) = @all[enqueuer] ||= new(enqueuer.respond_to?(:storage) && enqueuer.storage)

        def initialize(storage)
          @storage = storage
          @seen = {}
        end

        # Called when a job is stored. May switch strands.
        #
        # @param queue [String]
        def see(queue)
          look(queue) if @storage && !@seen.key?(queue) && @seen.size < QUEUES_MAX
        end

        private

        # In a shield: the job is stored, whoever cancels its caller now.
        def look(queue)
          @seen[queue] = true
          served = Machine.current? ? Ringspun.shield { ask } : ask
          return if !served.any? || served.unserved([queue]).empty?

          Jobs.config.tell(:warn, "a job is stored for the queue #{queue}, which no worker serves")
        rescue Error
          nil # what the storage has against this is no matter of the job
        end

        def ask = Served.new(@storage.nodes)
      end
      private_constant :Unserved
    end
  end
end
