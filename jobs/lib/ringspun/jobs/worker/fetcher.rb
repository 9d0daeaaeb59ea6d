# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Fetches jobs for the free places, and never more: many at once as long as queues have some, and then it waits. A wait
      # takes free places, for it may bring jobs at any time.
      #
      # @api private
      class Fetcher
        # The most jobs in one call, so that the first run while the next are fetched.
        BURST_MAX = 256
        # Seconds that one wait lasts.
        WAIT_SECONDS = 2

        # @param intake [Intake] from which jobs come
        # @param processor [Processor] starts them
        # @param runs [Runs] know how many places are free
        # @param scope [Scope] which owns the strand that waits
        # @param config [Config]
        # @param queue_order [QueueOrder]
        def initialize(intake, processor, runs, scope, config, queue_order)
          @intake = intake
          @processor = processor
          @runs = runs
          @scope = scope
          @config = config
          @queue_order = queue_order
          @limits = config.limits
          @found = []
          @waiting = nil # the strand that waits
          @taken = 0 # the places that it has taken
          @changed = Condition.new
          @look = true
        end

        # Returns when the intake is closed. May switch strands.
        def work
          until @intake.closed?
            free = free_places
            next take_found(free) if @found.any? && free.positive?
            next fetch(free) if @look && free.positive?

            begin_to_wait(free) if @waiting.nil? && free.positive?
            @changed.wait
          end
        end

        # A place has become free.
        def freed(queue)
          @look = true if @limits[queue]
          @changed.signal if @look || @waiting.nil? || @found.any?
        end

        # There may be jobs: a queue that was paused goes on, or one is new.
        def look
          @look = true
          @changed.signal
          @scope.spin { @intake.rouse } if @waiting
        end

        # Takes jobs that are in flight here already, and have no place yet.
        #
        # @param fetched [Array<Storage::Fetched>]
        def found(fetched)
          @intake.closed? ? give_back(fetched) : @found.concat(fetched)
          @changed.signal
        end

        # @return [Array<Storage::Fetched>]
        def waiting_for_places = @found

        # Called when the intake is closed: gives back what waits for a place. What a wait still brings goes back too.
        def close
          give_back(@found.shift(@found.size))
          @changed.broadcast
        end

        private

        def free_places
          (@intake.open? && !@queue_order.empty? ? @runs.free_places(@config.concurrency) : 0) - @taken
        end

        def fetch(free)
          max = [free, BURST_MAX].min
          count = @intake.fetch(@queue_order.draw, max, limits: @limits) { |fetched| take(fetched) }
          @look = count == max if count
        end

        def take_found(free) = take(@found.shift(free))

        # The intake may be closed before the answer comes.
        #
        # @return [Integer] how many
        def take(fetched)
          return give_back(fetched) if @intake.closed?

          fetched.each { |one| @processor.start(one) }.size
        end

        # @return (see #take)
        def give_back(fetched) = fetched.each { |one| @processor.give_back(one) }.size

        def begin_to_wait(free)
          @taken = max = [free, BURST_MAX].min
          @waiting = @scope.spin { wait(max) }
        end

        # Its strand may begin late, and a queue may not be served any more when one of its jobs comes.
        def wait(max)
          return if @intake.closed?

          @intake.wait_any(@queue_order.draw, WAIT_SECONDS, max: max, limits: @limits) do |fetched|
            end_wait # its places are the jobs' from now on
            served, others = fetched.partition { |one| @queue_order.include?(one.queue) }
            give_back(others)
            @look = true if take(served) == max
          end
        ensure
          end_wait
          @changed.signal
        end

        # Only this strand's own: another one may wait by now.
        def end_wait
          return unless @waiting.equal?(Machine.current.running)

          @waiting = nil
          @taken = 0
        end
      end
      private_constant :Fetcher
    end
  end
end
