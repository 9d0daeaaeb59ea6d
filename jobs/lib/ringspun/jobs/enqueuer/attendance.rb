# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Says that jobs wait and that no worker runs, most likely since the workers look at another storage. Once in a process.
      #
      # A thread of its own looks, whoever has stored the job: a strand may store a single one and wait. A thread keeps no run and
      # no process from its end. It ends when it has nothing to look for, and goes by a clock that nobody sets.
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
        # @param clock [#call, nil] answers seconds
        # @param pause [#call, nil] waits for a number of seconds
        # @yieldparam text [String]
        def initialize(storage, clock: nil, pause: nil, &say)
          @storage = storage
          @clock = clock || -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
          @pause = pause || method(:sleep)
          @say = say
          @lock = Thread::Mutex.new
          @due = nil # when to look; nil: nothing was stored since the last look
          @missed = nil # whether the last look has found no worker
          @thread = nil
          @closed = false
        end

        # Called with each batch that was stored. Never waits. A forked child has no thread of its parent, and begins anew.
        #
        # @param now [Float]
        def pass(now)
          return if Attendance.told || (@due && @thread&.alive?)

          @lock.synchronize do
            next if @closed

            @due = @missed = nil unless @thread&.alive?
            @due ||= now + FIRST_SECONDS
            @thread = start unless @thread&.alive?
          end
        end

        # Ends the thread for good.
        def close
          @lock.synchronize do
            @closed = true
            @thread&.kill
          end
        end

        private

        def start
          thread = Thread.new { look while wait }
          thread.name = "ringspun attendance"
          thread.report_on_exception = false # it is no matter of the jobs
          thread
        end

        # @return [Boolean] false: there is nothing to look for
        def wait
          due = @lock.synchronize { @due || (@thread = nil) } or return false
          left = due - @clock.call
          @pause.call(left) if left.positive?
          true
        end

        # Looks for a worker. What the storage has against it is no matter of the jobs.
        def look
          @due = nil
          waiting = @storage.nodes.empty? ? @storage.stats[:enqueued] : 0
          @due = @clock.call + SECOND_SECONDS if waiting.positive? && !@missed
          tell(waiting) if waiting.positive? && @missed
          @missed = waiting.positive?
        rescue Error
          nil
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
