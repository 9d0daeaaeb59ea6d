# frozen_string_literal: true

module Ringspun
  module Jobs
    module Sidekiq
      # A worker inside of a process that does something else, on a thread of its own.
      class Embedded
        # Jobs that it runs at once unless it is told.
        CONCURRENCY = 2

        # @api private
        def initialize(config)
          @config = config
        end

        # Starts it. Returns at once.
        #
        # @return [nil]
        # @since 0.1.0
        def run
          @worker = Jobs::Worker.new(Jobs.config, storage: Jobs.storage, logger: @config.logger)
          @thread = Thread.new { @worker.run }
          nil
        end

        # It fetches no more jobs. Never waits.
        #
        # @return [nil]
        # @since 0.1.0
        def quiet = @worker&.quiet

        # Ends it, also in a strand that is cancelled: running jobs have the timeout to end, others go back to their queues. May
        # switch strands.
        #
        # @return [nil]
        # @since 0.1.0
        def stop
          @worker&.stop
          Shielded.call { @thread&.join }
          nil
        end
      end
    end
  end
end
