# frozen_string_literal: true

require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Moves jobs that are due into their queues. It looks when the next is due, when another one is stored that is due earlier,
      # and in any case every few seconds, for other clients than ours tell nobody. Of all workers one wakes for a job, see
      # {Storage#due}.
      #
      # @api private
      class Poller < Maintenance
        # Jobs that one call of the storage moves; when there were as many, the next call follows at once.
        PAGE = 100
        # Polls at least this often, and at most twice as often.
        POLL_SECONDS = Storage::POLL_SECONDS / 2.0
        # Seconds that one wait to be told lasts: a process that is frozen must not be told for long.
        WAIT_SECONDS = 2
        # The shortest pause: the storage's clock differs from this one, and a pause that ends too early must not become a
        # thousand.
        LEAST_SECONDS = 0.001
        # Seconds after the next job is due at which it looks. If it looked a moment too early, by how the time left was rounded,
        # it would have to look again after the shortest pause.
        AFTER_SECONDS = 0.0001
        # Characters of an entry that the log shows.
        SHOWN_LENGTH = 200

        # @param node [String] by which the storage knows who wakes
        def initialize(*, node:, **)
          super(*, **)
          @node = node
          @told = false
        end

        # Returns when it is closed. May switch strands.
        def work
          Ringspun.scope do |scope|
            listener = scope.spin { listen }
            super
            Machine.current.terminate(listener)
          end
        end

        private

        def listen
          until @closed
            next unless @backoff.attempt(:wait_due) { @storage.wait_due(WAIT_SECONDS) }

            @told = true
            @changed.broadcast
          end
        end

        def round
          @told = false
          moved, seconds, dead = @backoff.attempt(:due) { @storage.due(PAGE, by: @node) }
          dead&.each { |entry, why| @log.event(:error, "no job: #{why}", entry: entry[0, SHOWN_LENGTH].scrub) }
          return 0 if moved && moved + dead.size == PAGE

          [*(seconds + AFTER_SECONDS if seconds), jittered(POLL_SECONDS)].min.clamp(LEAST_SECONDS..)
        end

        # It may have been told while it looked.
        def nap(seconds) = @told || super
      end
      private_constant :Poller
    end
  end
end
