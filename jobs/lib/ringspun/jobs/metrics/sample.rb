# frozen_string_literal: true

module Ringspun
  module Jobs
    class Metrics
      # How things are in a storage at one time.
      #
      # - `time`: seconds since the epoch, by the storage's clock
      # - `stats`, `nodes`, `paused`: see {Storage#stats}, {Storage#nodes} and {Storage#paused}
      # - `latencies`: by the names of queues that have jobs, or of some of them, for how many seconds the one that is fetched
      #   next has waited; nil: its entry does not say
      #
      # @api private
      Sample = Struct.new(:time, :stats, :nodes, :paused, :latencies) do
        # Reads as many entries as there are queues with jobs. May switch strands.
        #
        # @param storage [Storage]
        # @param latencies [Integer, nil] see {Metrics.sample}
        # @param connection [Object, nil] of the storage
        # @return [Sample]
        def self.take(storage, latencies: nil, connection: nil)
          time = storage.time(connection: connection)
          stats = storage.stats(connection: connection)
          full = stats[:queues].select { |_, size| size.positive? }
          full = full.max_by(latencies, &:last).to_h if latencies
          latencies = full.keys.to_h { |queue| [queue, waited(storage.list(queue, 0, 1, connection: connection).first, time)] }
          new(time, stats, storage.nodes(connection: connection), storage.paused(connection: connection), latencies)
        end

        def self.waited(stored, time)
          job = stored && Wire.read(stored.entry)
          since = job && Wire.seconds(job["enqueued_at"])
          since && [time - since, 0.0].max
        end
        private_class_method :waited

        # @return [Array<String>] all queues that have jobs, had some or are paused
        def queues = (stats[:queues].keys | paused).sort

        # @return [Integer] jobs that run, as the processes have announced it
        def busy = nodes.sum { |node| node["busy"] }
      end
      private_constant :Sample
    end
  end
end
