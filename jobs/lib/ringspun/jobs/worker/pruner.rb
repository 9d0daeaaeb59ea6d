# frozen_string_literal: true

require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Forgets dead jobs that are too many or too old.
      #
      # @api private
      class Pruner < Maintenance
        # Seconds between two rounds: jobs are kept by the month, so that a minute more is nothing.
        PRUNE_SECONDS = 60.0

        private

        def round
          @backoff.attempt(:trim_dead) { @storage.trim_dead(@config.dead_max, @config.dead_seconds) }
          jittered(PRUNE_SECONDS)
        end
      end
      private_constant :Pruner
    end
  end
end
