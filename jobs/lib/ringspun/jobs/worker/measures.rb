# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Measures how the jobs of each class go, minute by minute, for dashboards, see {Storage#measure}. Adding belongs to the
      # loop, and sending to whoever beats, which may be a thread.
      #
      # @api private
      class Measures
        # The most minutes that are kept while the storage is away.
        WAITING_MAX = 60

        # The jobs of one class in one minute.
        class Row
          LIMITS = Storage::LIMITS_MS
          FIRST = LIMITS.first
          private_constant :LIMITS, :FIRST

          def initialize
            @processed = @failed = @milliseconds = @fast = 0
            @slower = Hash.new(0)
          end

          # Most jobs are fast.
          def time(milliseconds)
            @processed += 1
            @milliseconds += milliseconds
            return @fast += 1 if milliseconds < FIRST

            @slower[LIMITS.bsearch_index { |limit| milliseconds < limit } || LIMITS.size] += 1
          end

          def fail
            @processed += 1
            @failed += 1
          end

          def measure(minute, name)
            histogram = @fast.positive? ? { 0 => @fast, **@slower } : @slower
            Storage::Measure.new(minute, name, @processed, @failed, @milliseconds, histogram)
          end
        end
        private_constant :Row

        def initialize
          @minute = 0
          @over = 0 # when it is, in seconds since the epoch
          @by_class = {}
          @ended = Thread::Queue.new # Arrays of measures, of minutes that are over
        end

        # Runs that were returned or cancelled say nothing about their class.
        #
        # @param run [Run] which has ended
        # @param outcome [Outcome]
        def add(run, outcome)
          seconds = outcome.seconds || 0.0
          ended = run.began_at + seconds
          case outcome.kind
          when :done, :snoozed then measure_of(run.job, ended).time((seconds * 1000).round)
          when :retry, :dead, :dropped then measure_of(run.job, ended).fail
          end
        end

        # The minute that is over is no longer added to.
        #
        # @param minute [Integer] since the epoch
        def turn(minute = (Process.clock_gettime(Process::CLOCK_REALTIME) / 60).to_i)
          return if minute == @minute

          @ended.pop if @ended.size >= WAITING_MAX
          @ended << @by_class.map { |name, row| row.measure(@minute, name) } unless @by_class.empty?
          @by_class = {}
          @minute = minute
          @over = (minute + 1) * 60
        end

        # Sends the minutes that are over. May switch strands.
        #
        # @param connection [Object, nil] of the storage
        # @raise [UnavailableError] nothing was sent; they stay for the next call
        def send_ended(storage, connection = nil)
          until @ended.empty?
            measures = @ended.pop
            storage.measure(measures, connection: connection)
          end
        rescue UnavailableError
          @ended << measures
          raise
        rescue UnknownOutcomeError, StorageError # what a page shows is no reason to stop a heartbeat
          nil
        end

        private

        def measure_of(job, ended)
          turn((ended / 60).to_i) if ended >= @over
          @by_class[job["wrapped"] || job["class"]] ||= Row.new
        end
      end
      private_constant :Measures
    end
  end
end
