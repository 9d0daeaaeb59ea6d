# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Says that jobs wait and that no worker runs, most likely since the workers look at another storage. Once in a process.
      #
      # It has no thread and no strand, which would keep a run or a process from its end. Whoever stores a batch says so, and what
      # looks is the thread that stores jobs, while it waits for more; or else the caller whose job is the first after a look is
      # due. By a clock that nobody sets.
      #
      # @api private
      class Attendance
        # Seconds from a job to the first look, and from there to the second: a minute in all. Only both of them count, for a
        # worker that is being replaced is away for some seconds.
        FIRST_SECONDS = 45
        SECOND_SECONDS = 15

        @told = false

        class << self
          # @return [Boolean] whether this process has said it
          attr_accessor :told
        end

        # @param storage [Storage]
        # @param clock [#call] answers seconds
        # @yieldparam text [String]
        def initialize(storage, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }, &say)
          @storage = storage
          @clock = clock
          @say = say
          @lock = Thread::Mutex.new
          @due = nil # when to look; nil: nothing was stored since the last look
          @late = false
          @missed = false # whether the last look has found no worker
        end

        # Called with each batch that is stored. Never waits.
        #
        # @param now [Float]
        def pass(now)
          return if Attendance.told

          @due ||= now + FIRST_SECONDS
          @late = true if now >= @due
        end

        # @return [Boolean] whether a batch has come since a look is due
        def late? = @late

        # @return [Numeric, nil] seconds until a look is due; nil: there is none
        def left
          due = @due
          [due - @clock.call, 0].max if due && !Attendance.told
        end

        # Looks for a worker, if that is due. What the storage has against it is no matter of the jobs. May switch strands.
        def look
          return unless begin_to_look

          waiting = @storage.nodes.empty? ? @storage.stats[:enqueued] : 0
          @due = @clock.call + SECOND_SECONDS if waiting.positive? && !@missed
          tell(waiting) if waiting.positive? && @missed
          @missed = waiting.positive?
        rescue Error
          nil
        end

        private

        # One looks when several come at the same time.
        def begin_to_look
          @lock.synchronize do
            next false if @due.nil? || @clock.call < @due

            @late = false
            @due = nil
            true
          end
        end

        def tell(waiting)
          return if Attendance.told

          Attendance.told = true
          @say.call("no worker runs, and #{Words.count(waiting, "job")} #{Words.noun(waiting, "waits", "wait")} in " \
                    "#{@storage.identity}: start ringspun-jobs, and see that its log names the same place")
        end
      end
      private_constant :Attendance
    end
  end
end
