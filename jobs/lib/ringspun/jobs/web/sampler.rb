# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # What pages show of the whole, read from the storage at most once a second, however many look. While somebody looks it
      # keeps what it has read, for the charts; while nobody does it reads nothing.
      #
      # @api private
      class Sampler
        # Seconds for which a sample is shown.
        FRESH_SECONDS = 1.0
        # Seconds that the charts go back.
        KEPT_SECONDS = 300
        # The most queues, those with most jobs, whose latency is read.
        QUEUES_MAX = 50
        # The most running jobs that are read.
        WORK_MAX = 1000

        # @yieldreturn [Storage]
        # @param clock [#call] answers seconds
        def initialize(clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }, &storage)
          @storage = storage
          @clock = clock
          @mutex = Thread::Mutex.new
          @samples = []
          @work = {} # nodes => [when, jobs]
          @asked = {} # node => when it was asked to tell what its jobs wait for
        end

        # @return [Metrics::Sample] the last one. Only one caller waits for a new one; the others get the one before, if
        #   there is one
        # @raise [Error] of the storage; until the second is over, all get the same
        def last
          return current if fresh? || (@samples.any? && @mutex.locked?)

          @mutex.synchronize do
            read unless fresh?
            current
          end
        end

        # @return [Array<Metrics::Sample>] those that there are, the oldest first
        def line = @samples

        # Something has changed by our own hand, which the next page is to show.
        def forget
          @read_at = nil
          @work = {}
        end

        # @param nodes [Array<String>]
        # @return [Array<Array<Storage::Running>>]
        def work(nodes)
          @mutex.synchronize do
            @work.delete_if { |_, (read_at, _)| now - read_at >= FRESH_SECONDS }
            (@work[nodes] ||= [now, @storage.call.work(nodes)]).last
          end
        end

        # Asks workers, from time to time, to announce what their jobs wait for.
        #
        # @param nodes [Array<String>]
        def ask_waits(nodes)
          @mutex.synchronize do
            @asked.delete_if { |_, asked_at| now - asked_at > Worker::WAITS_SECONDS / 3.0 }
            (nodes - @asked.keys).each do |node|
              @asked[node] = now
              Worker.ask_waits(node, storage: @storage.call)
            end
          end
        end

        private

        def now = @clock.call

        def fresh? = @read_at && now - @read_at < FRESH_SECONDS

        def current = @error ? raise(@error) : @samples.last

        def read
          @error = nil
          sample = Metrics.sample(@storage.call, latencies: QUEUES_MAX)
          @samples = [*@samples.drop_while { |one| one.time < sample.time - KEPT_SECONDS }, sample]
        rescue UnavailableError, UnknownOutcomeError, StorageError => error
          @error = error
        ensure
          @read_at = now
        end
      end
      private_constant :Sampler
    end
  end
end
