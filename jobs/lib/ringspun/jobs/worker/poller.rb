# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Moves jobs that are due into their queues.
      #
      # @api private
      class Poller < Maintenance
        PAGE = 100
        # Polls at least this often, for another process may add an earlier job.
        POLL_SECONDS = 2.0
        # The shortest pause: the storage's clock differs from this one, and a pause that ends too early must not become a
        # thousand.
        LEAST_SECONDS = 0.001
        # Characters of an entry that the log shows.
        SHOWN_LENGTH = 200

        private

        def round
          moved, seconds, dead = @backoff.attempt(:due) { @storage.due(PAGE) }
          dead&.each { |entry, why| @log.event(:error, "no job: #{why}", entry: entry[0, SHOWN_LENGTH].scrub) }
          return 0 if moved && moved + dead.size == PAGE

          [seconds, jittered(POLL_SECONDS)].compact.min.clamp(LEAST_SECONDS..)
        end
      end
      private_constant :Poller
    end
  end
end
