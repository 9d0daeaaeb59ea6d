# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Finds the jobs that this worker has in flight and does not know of: the answer to a fetch or a wait was lost, or the
      # storage was restarted and has lost the acknowledgements of its last second.
      #
      # It compares what the storage says is in flight here with the runs that there were meanwhile, and with the jobs of all
      # fetches and waits that were under way then: between its coming and its start a job has no run yet.
      #
      # @api private
      class Orphans
        # Seconds after a lost answer at which to look. The command itself may be late.
        LOOKS = [1, 5, 15, 40].freeze
        # The shortest pause. One that only rounding has left over would end at once, again and again.
        LEAST_SECONDS = 0.001
        # Seconds between looks without a lost answer.
        LOOK_SECONDS = 60
        # The bytes in flight for which looks are a second further apart, for each look reads them all.
        BYTES_A_SECOND = 100_000

        # @yieldreturn [Array<Storage::Fetched>] the jobs in flight that the worker knows
        def initialize(machine, storage, node, backoff, &known)
          @machine = machine
          @storage = storage
          @node = node
          @backoff = backoff
          @known = known
          @changed = Condition.new
          @ended = Condition.new
          @under_way = {}
          @number = 0
          @looks = []
          @closed = false
        end

        # Calls the block, which fetches jobs and starts them. May switch strands.
        #
        # @yieldparam came [Array<Storage::Fetched>] to which the block adds the jobs that have come
        # @return [Object] the block's value
        def watch
          number = @number += 1
          @under_way[number] = came = []
          yield came
        rescue UnknownOutcomeError
          @looks = LOOKS.map { |seconds| @machine.now + seconds }
          @changed.broadcast
          raise
        ensure
          @under_way.delete(number)
          @seen&.merge(came)
          @ended.broadcast
        end

        # Returns when it is closed. May switch strands.
        #
        # @yieldparam orphans [Array<Storage::Fetched>]
        def work
          until @closed
            @looks << (@machine.now + now_and_then) if @looks.empty?
            next nap([@looks.first - @machine.now, LEAST_SECONDS].max) if @machine.now < @looks.first

            @looks.shift
            orphans = @backoff.attempt(:in_flight) { look }
            orphans ? (yield orphans if orphans.any?) : @looks.unshift(@machine.now)
          end
        end

        def close
          @closed = true
          [@changed, @ended].each(&:broadcast)
        end

        private

        def now_and_then = LOOK_SECONDS + (@known.call.sum { |fetched| fetched.entry.bytesize } / BYTES_A_SECOND)

        def look
          @seen = Set.new.compare_by_identity.merge(@known.call)
          there = @storage.in_flight(@node)
          last = @number
          @ended.wait while !@closed && @under_way.any? { |number, _| number <= last }
          known = @seen.tally
          there.reject { |fetched| known.fetch(fetched, 0).positive? && known[fetched] -= 1 }
        ensure
          @seen = nil
        end

        def nap(seconds)
          @changed.wait(timeout: seconds)
        rescue TimeoutError
          nil
        end
      end
      private_constant :Orphans
    end
  end
end
