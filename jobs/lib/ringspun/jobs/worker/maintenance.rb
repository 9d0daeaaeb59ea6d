# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Work that every worker does for all of them, each kind in a strand of its own: {Poller}, {Recovery}, {ExqRecovery},
      # {Pruner}, {Ticker} and {Unserved}. And {Discovery} for itself, and {Beats} for the program.
      #
      # @api private
      class Maintenance
        # @param random [Random] for jitter: processes that were started together should not call the storage together for ever
        def initialize(storage, config, backoff, log, random:)
          @storage = storage
          @config = config
          @backoff = backoff
          @log = log
          @random = random
          @changed = Condition.new
          @closed = false
        end

        # Returns when it is closed. May switch strands.
        def work
          nap(round) until @closed
        end

        def close
          @closed = true
          @changed.broadcast
        end

        private

        # Does its work once.
        #
        # @return [Numeric] seconds until the next
        def round = raise(NotImplementedError)

        def jittered(seconds) = seconds * (1 + @random.rand)

        def nap(seconds)
          @changed.wait(timeout: seconds) if seconds.positive? && !@closed
        rescue TimeoutError
          nil
        end
      end
      private_constant :Maintenance
    end
  end
end
