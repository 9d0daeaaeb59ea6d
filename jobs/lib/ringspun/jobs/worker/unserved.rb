# frozen_string_literal: true

require "securerandom"
require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Says which queues have jobs, and no worker that serves them. Of all workers one looks at a time.
      #
      # @api private
      class Unserved < Maintenance
        # Seconds between two looks.
        LOOK_SECONDS = 60.0
        # From one line of a queue to the next.
        AGAIN_SECONDS = 600
        # Workers that are started together announce themselves one after the other.
        FIRST_SECONDS = 10.0

        def work
          nap(FIRST_SECONDS)
          super
        end

        private

        def round
          @backoff.attempt(:nodes) { look }
          jittered(LOOK_SECONDS)
        end

        def look
          return unless first?("ringspun:unserved", LOOK_SECONDS)

          waiting = @storage.stats[:queues].select { |_queue, size| size.positive? }
          Served.new(@storage.nodes).unserved(waiting.keys).each do |queue|
            next unless first?("ringspun:unserved:#{queue}", AGAIN_SECONDS)

            told = { queue:, waiting: waiting[queue] }
            @log.event(:warn, "no worker serves a queue that has jobs; -q NAME serves it, and -q '*' all", **told)
          end
        end

        # Whether no other look has been there for so long.
        def first?(token, seconds) = @storage.lock(token, SecureRandom.hex(8), seconds).nil?
      end
      private_constant :Unserved
    end
  end
end
