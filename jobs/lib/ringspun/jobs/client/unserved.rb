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
        def self.of(enqueuer)
          @all[enqueuer] ||= new(enqueuer.respond_to?(:storage) ? enqueuer.storage : nil)
        end

        # @param storage [Storage, nil]
        def initialize(storage)
          @storage = storage
          @seen = {}
        end

        # Called when a job is stored. May switch strands.
        #
        # @param queue [String]
        # @param connection [Object, nil] on which it is: of a database others may have to wait until its transaction ends, and
        #   elsewhere nothing else may have an answer before it
        def see(queue, connection = nil)
          look(queue, connection) if @storage && !@seen.key?(queue) && @seen.size < QUEUES_MAX
        end

        private

        # In a shield: the job is stored, whoever cancels its caller now.
        def look(queue, connection)
          @seen[queue] = true
          served = Shielded.call { Served.new(@storage.nodes(connection: (connection if @storage.respond_to?(:kept_by?)))) }
          return if !served.any? || served.unserved([queue]).empty?

          Jobs.config.tell(:warn, "a job is stored for the queue #{queue}, which no worker serves")
        rescue Error
          nil # what the storage has against this is no matter of the job
        end
      end
      private_constant :Unserved
    end
  end
end
