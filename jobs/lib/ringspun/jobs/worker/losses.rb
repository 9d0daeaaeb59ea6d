# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Notices that others have taken over jobs of this worker, for its lease had run out while it was frozen or the storage was
      # away, and ends their runs: they run elsewhere by now, or will.
      #
      # @api private
      class Losses
        # @param runs [Runs]
        # @param processor [Processor] ends runs
        # @param control [Control]
        # @param scope [Scope] which owns the strand that looks
        # @param backoff [Backoff]
        def initialize(node, storage, runs, processor, control, scope, backoff)
          @node = node
          @storage = storage
          @runs = runs
          @processor = processor
          @control = control
          @scope = scope
          @backoff = backoff
          @count = 0
        end

        # Called with each heartbeat, on its thread. May switch strands.
        #
        # @param connection [Object, nil] of the storage
        def look(connection)
          count = @storage.losses(@node, connection: connection)
          return if count == @count

          @count = count
          @control.order { @scope.spin { end_runs } }
        end

        private

        # Those that are not in flight here, of the runs that there were before the storage was asked. Of two with equal entries
        # the older one has been lost.
        def end_runs
          runs = @runs.to_a
          there = @backoff.persist(:in_flight, till: -> { @control.stopped? }) { @storage.in_flight(@node) } or return
          left = there.tally
          runs.reverse_each do |run|
            next left[run.fetched] -= 1 if left.fetch(run.fetched, 0).positive?

            @processor.lose(run) unless run.outcome || run.acknowledged?
          end
        end
      end
      private_constant :Losses
    end
  end
end
