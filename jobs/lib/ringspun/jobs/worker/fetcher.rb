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

        # @param intake [Intake] says whether it may fetch, and is told of the end of waits
        # @param runs [Runs] starts the jobs that were fetched
        # @param scope [Scope] which owns the strands that wait
        def initialize(intake, runs, scope, storage, config, queue_order, backoff, orphans)
          @intake = intake
          @runs = runs
          @scope = scope
          @storage = storage
          @queue_order = queue_order
          @backoff = backoff
          @orphans = orphans
          @found = []
          @config = config
          @limits = config.limits
          @changed = Condition.new
          @waits = {}
          @paused = []
          @look = true
          @fetching = @closed = false
        end

        # Returns when it is closed. May switch strands.
        def work
          refresh_paused
          until @closed
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
          @changed.signal if @look || @waits.size < @queue_order.names.size
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
          @closed ? fetched.each { |one| @runs.give_back(one) } : @found.concat(fetched)
          @changed.signal
        end

        # @return [Array<Storage::Fetched>]
        def waiting_for_places = @found

        # Fetches no more jobs. Those that waits still bring go back.
        def close
          @closed = true
          @runs.give_back(@found.shift) until @found.empty?
          @changed.broadcast
        end

        # @return [Boolean] whether a wait or a fetch may still bring a job
        def waiting? = @fetching || @waits.any?

        private

        def free_places = (@intake.open? ? @runs.free_places(@config.concurrency) : 0) - @waits.size

        def fetch(free)
          max = [free, BURST_MAX].min
          count = @backoff.attempt(:fetch) { @orphans.watch { fetch_many(max) } }
          @look = count == max if count
        end

        # It may be closed before the answer comes.
        def fetch_many(max)
          @fetching = true
          fetched = @storage.fetch(@intake.node, @queue_order.draw, max, limits: @limits)
          fetched.each { |one| @closed ? @runs.give_back(one) : @runs.start(one) }.size
        ensure
          @fetching = false
          @intake.ended if @closed
        end

        def take_found(free)
          @found.shift(free).each { |one| @runs.start(one) }
        end

        # With fewer free places than idle queues nobody waits, for each wait takes a place.
        def wait_at_queues
          idle = waitable - @waits.keys
          @short = free_places < idle.size
          idle.each { |queue| @waits[queue] = @scope.spin { wait_at(queue) } } unless @short
        end

        def waitable = @queue_order.names.reject { |queue| @limits[queue] || @paused.include?(queue) }

        def wait_at(queue)
          @look = true if @backoff.attempt(:wait) { @orphans.watch { wait_for_one(queue) } }
        ensure
          end_wait(queue)
          @changed.signal
          @intake.ended
        end

        # Only this strand's own. Once it has brought a job, another strand may wait at the queue.
        def end_wait(queue)
          @waits.delete(queue) if @waits[queue].equal?(Machine.current.running)
        end

        def wait_for_one(queue)
          fetched = @storage.wait(@intake.node, queue, WAIT_SECONDS) or return
          refresh_paused
          end_wait(queue) # its place is the job's from now on
          @closed || !waitable.include?(queue) ? @runs.give_back(fetched) : @runs.start(fetched)
          true
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
          @paused = @backoff.attempt(:fetch) { @storage.paused } || @paused
        end
      end
      private_constant :Fetcher
    end
  end
end
