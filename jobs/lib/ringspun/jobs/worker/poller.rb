# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Puts jobs whose time has come into their queues.
      #
      # @api private
      class Poller < Maintenance
        PAGE = 100
        # Another process may add an earlier one meanwhile.
        POLL_SECONDS = 2.0
        # Two clocks are compared: a wait that ends a moment too early must not become a thousand of them.
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
