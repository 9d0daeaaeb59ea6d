# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # How jobs come to this worker from the storage: whether any may come, and the fetches and waits for them. {Orphans} watches
      # each of these, for its answer may be lost. After an error {Backoff} makes a pause.
      #
      # @api private
      class Intake
        # @param lease [Lease]
        # @param control [Control]
        # @param backoff [Backoff]
        # @param orphans [Orphans]
        def initialize(node, storage, lease, control, backoff, orphans)
          @node = node
          @storage = storage
          @lease = lease
          @control = control
          @backoff = backoff
          @orphans = orphans
          @under_way = 0
        end

        # @return [Boolean] whether more jobs may be fetched now
        def open? = !closed? && @lease.lasts?

        # @return [Boolean] whether no more jobs will be fetched: those that still come are to go back
        def closed? = @control.quiet?

        # @return [Boolean] whether a fetch or a wait may still bring jobs
        def under_way? = @under_way.positive?

        # May switch strands.
        #
        # @param (see Storage#fetch)
        # @yieldparam fetched [Array<Storage::Fetched>]
        # @return [Object, nil] the block's value; nil, after a pause, when the fetch has failed
        def fetch(queues, max, limits: {})
          attempt(:fetch) do |came|
            fetched = @storage.fetch(@node, queues, max, limits: limits)
            came.concat(fetched)
            yield fetched
          end
        end

        # May switch strands.
        #
        # @param (see Storage#wait_any)
        # @yieldparam fetched [Array<Storage::Fetched>]
        # @return [Object, nil] the block's value; nil, after a pause, when the wait has failed
        def wait_any(queues, seconds, max:, limits: {})
          attempt(:wait_any) do |came|
            fetched = @storage.wait_any(@node, queues, seconds, max: max, limits: limits)
            came.concat(fetched)
            yield fetched
          end
        end

        # Ends the waits of this worker, also those that are not the caller's. May switch strands.
        def rouse = @backoff.attempt(:rouse) { @storage.rouse(@node) }

        # Tries until the storage has counted them. May switch strands.
        #
        # @param (see Storage#begin_quarantined)
        # @return (see Storage#begin_quarantined)
        def begin_quarantined(runs, isolated:)
          @backoff.persist(:begin_quarantined) { @storage.begin_quarantined(@node, runs, isolated: isolated) }
        end

        private

        def attempt(verb, &)
          @backoff.attempt(verb) { @orphans.watch { |came| count(came, &) } }
        end

        def count(came)
          @under_way += 1
          yield came
        ensure
          @under_way -= 1
          @control.wake if closed?
        end
      end
      private_constant :Intake
    end
  end
end
