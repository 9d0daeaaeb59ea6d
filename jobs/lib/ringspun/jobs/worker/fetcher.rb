# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Fetches jobs for the free places, and never more: many at once as long as queues have some, and then it waits at each
      # queue. A wait takes one of the free places, for it may bring a job at any time.
      #
      # It does not wait at queues that are paused or have a limit, for waits ignore both. It polls those.
      #
      # @api private
      class Fetcher
        # At most so many in one call, so that the first run while the next are fetched.
        BURST_MAX = 256
        # Seconds between polls of queues at which nobody waits.
        LOOK_SECONDS = 0.5
        # The same, where there are fewer free places than queues to wait at.
        LOOK_SOON_SECONDS = 0.1
        # Seconds that one wait lasts.
        WAIT_SECONDS = 2

        # @param intake [Intake] from which jobs come
        # @param processor [Processor] starts them
        # @param runs [Runs] know how many places are free
        # @param scope [Scope] which owns the strands that wait
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
          @waits = {} # queue => the strand that waits there
          @paused = []
          @changed = Condition.new
          @look = true
        end

        # Returns when the intake is closed. May switch strands.
        def work
          refresh_paused
          until @intake.closed?
            free = free_places
            next take_found(free) if @found.any? && free.positive?
            next fetch(free) if @look && free.positive?

            wait_at_queues unless @look
            pause
          end
        end

        # A place has become free.
        def freed(queue)
          @look = true if @limits[queue]
          @changed.signal if @look || @waits.size < @queue_order.size
        end

        # There may be jobs: a queue that was paused goes on, or one is new.
        def look
          @look = true
          @changed.signal
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

        # Called when the intake is closed: gives back what waits for a place. What waits still bring goes back too.
        def close
          give_back(@found.shift(@found.size))
          @changed.broadcast
        end

        private

        def free_places = (@intake.open? ? @runs.free_places(@config.concurrency) : 0) - @waits.size

        # The intake may be closed before the answer comes.
        def fetch(free)
          max = [free, BURST_MAX].min
          count = @intake.fetch(@queue_order.draw, max, limits: @limits) do |fetched|
            @intake.closed? ? give_back(fetched) : start(fetched)
          end
          @look = count == max if count
        end

        def take_found(free) = start(@found.shift(free))

        # @return [Integer] how many
        def start(fetched) = fetched.each { |one| @processor.start(one) }.size

        # @return (see #start)
        def give_back(fetched) = fetched.each { |one| @processor.give_back(one) }.size

        # With fewer free places than idle queues nobody waits, for each wait takes a place.
        def wait_at_queues
          idle = waitable - @waits.keys
          @short = free_places < idle.size
          idle.each { |queue| @waits[queue] = @scope.spin { wait_at(queue) } } unless @short
        end

        def waitable = @queue_order.names.reject { |queue| @limits[queue] || @paused.include?(queue) }

        # Its strand may begin late.
        def wait_at(queue)
          return if @intake.closed?

          @look = true if @intake.wait(queue, WAIT_SECONDS) { |fetched| take(queue, fetched) }
        ensure
          end_wait(queue)
          @changed.signal
        end

        def take(queue, fetched)
          refresh_paused
          end_wait(queue) # its place is the job's from now on
          @intake.closed? || !waitable.include?(queue) ? @processor.give_back(fetched) : @processor.start(fetched)
          true
        end

        # Only this strand's own. Once it has brought a job, another strand may wait at the queue.
        def end_wait(queue)
          @waits.delete(queue) if @waits[queue].equal?(Machine.current.running)
        end

        def pause
          seconds = if @short && !@look then LOOK_SOON_SECONDS
                    elsif @paused.any? || @limits.any? then LOOK_SECONDS
                    end
          @changed.wait(timeout: seconds)
        rescue TimeoutError
          refresh_paused if @paused.any?
          @look = true
        end

        def refresh_paused
          @paused = @intake.paused || @paused
        end
      end
      private_constant :Fetcher
    end
  end
end
