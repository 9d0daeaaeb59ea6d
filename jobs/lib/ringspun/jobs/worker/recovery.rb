# frozen_string_literal: true

require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Takes over what dead nodes had in flight.
      #
      # @api private
      class Recovery < Maintenance
        # Jobs that one call of the storage recovers; when there were as many, the next call follows at once.
        PAGE = 100
        RECOVER_SECONDS = 2.0
        # Leases for which a job that waits in the quarantine holds its place, where its queue has a limit.
        HOLD_LEASES = 3

        # @param deaths [Deaths] hears of each job that is taken over
        def initialize(*, deaths:, **)
          super(*, **)
          @deaths = deaths
        end

        # Returns when it is closed. May switch strands.
        def work
          let_others_beat
          super
        end

        private

        def round
          recovered = @backoff.attempt(:recover) { @storage.recover(PAGE, hold: HOLD_LEASES * @config.lease) }
          unless recovered
            let_others_beat
            return 0
          end

          pause_after(recovered, RECOVER_SECONDS)
        end

        # When the storage was away for a while, the leases of all nodes have run out. Living nodes get the time to extend theirs
        # first, or all jobs that run would run again, in quarantine.
        def let_others_beat
          nil until @closed || @backoff.attempt(:recover) { @storage.time }
          nap(2 * @config.beat)
        end

        # @return [Numeric] seconds: 0 after a full page, for there may be another
        def pause_after(recovered, seconds)
          recovered.each { |one| report(one) }
          recovered.size == PAGE ? 0 : jittered(seconds)
        end

        def report(recovered)
          job = Wire.read(recovered.entry) || {}
          next_step = recovered.to == :queue ? "back in its queue" : "in quarantine"
          @log.event(:warn, "taken over from a dead process: #{next_step}", jid: job["jid"], class: job["class"],
                                                                            queue: recovered.queue, node: recovered.node)
          @deaths.report(job, :taken_over, queue: recovered.queue, node: recovered.node)
        end
      end

      # The same for nodes of Exq, which have no leases.
      #
      # @api private
      class ExqRecovery < Recovery
        # Rarer, for the storage scans all its keys for it.
        RECOVER_SECONDS = 30.0

        private

        def let_others_beat = nil

        def round
          pause_after(@backoff.attempt(:recover_exq) { @storage.recover_exq(PAGE) } || [], RECOVER_SECONDS)
        end
      end
      private_constant :Recovery, :ExqRecovery
    end
  end
end
