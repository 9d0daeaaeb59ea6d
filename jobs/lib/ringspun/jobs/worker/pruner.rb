# frozen_string_literal: true

require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Forgets dead jobs that are too many or too old, and jobs that are done and were kept for long enough.
      #
      # @api private
      class Pruner < Maintenance
        # Seconds between two rounds: jobs are kept by the month, so that a minute more is nothing.
        PRUNE_SECONDS = 60.0

        private

        def round
          @backoff.attempt(:trim_dead) { @storage.trim_dead(@config.dead_max, @config.dead_seconds) }
          @backoff.attempt(:trim_done) { @storage.trim_done(@config.keep_done) }
          jittered(PRUNE_SECONDS)
        end
      end
      private_constant :Pruner
    end
  end
end
