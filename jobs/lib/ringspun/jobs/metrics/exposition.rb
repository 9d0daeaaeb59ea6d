# frozen_string_literal: true

module Ringspun
  module Jobs
    class Metrics
      # The numbers as Prometheus reads them.
      #
      # @api private
      class Exposition
        SETS = { "scheduled" => :scheduled, "retries" => :retries, "dead" => :dead }.freeze

        # @param sample [Sample]
        # @param measured [Array<Storage::Measure>]
        def initialize(sample, measured)
          @sample = sample
          @measured = measured
        end

        # @return [String]
        def to_s
          @lines = []
          totals
          queues
          unreadable
          processes
          classes
          "#{@lines.join("\n")}\n"
        end

        private

        def totals
          stats = @sample.stats
          metric("processed_total", "counter", "Jobs that have ended well or failed.", [[{}, stats[:processed]]])
          metric("failed_total", "counter", "Runs that have failed.", [[{}, stats[:failed]]])
          metric("ran_twice_total", "counter", "Runs of jobs that ran elsewhere as well, for a lease had run out.",
                 [[{}, stats[:twice]]])
          metric("set_size", "gauge", "Jobs in no queue.", SETS.map { |name, set| [{ set: name }, stats[set]] })
          metric("in_flight", "gauge", "Jobs that processes have fetched and not finished.", [[{}, stats[:in_flight]]])
        end

        def queues
          sizes = @sample.stats[:queues]
          metric("queue_size", "gauge", "Jobs that wait in the queue.",
                 @sample.queues.map { |queue| [{ queue: }, sizes.fetch(queue, 0)] })
          latencies = sizes.map { |queue, size| [{ queue: }, size.zero? ? 0 : @sample.latencies[queue]] }
          metric("queue_latency_seconds", "gauge", "For how long the next job of the queue has waited.",
                 latencies.select { |_, seconds| seconds })
          metric("queue_paused", "gauge", "1: workers pass over the queue.",
                 @sample.queues.map { |queue| [{ queue: }, @sample.paused.include?(queue) ? 1 : 0] })
        end

        def unreadable
          metric("queue_unreadable", "gauge", "1: something else has the queue's place in the storage.",
                 @sample.stats[:unreadable].map { |queue| [{ queue: }, 1] })
        end

        def processes
          nodes = @sample.nodes
          metric("processes", "gauge", "Processes that run jobs.", [[{}, nodes.size]])
          metric("busy", "gauge", "Jobs that run, as the processes have announced it.", [[{}, @sample.busy]])
          metric("concurrency", "gauge", "Jobs that the processes may run at once.",
                 [[{}, nodes.sum { |node| node["concurrency"].to_i }]])
        end

        def classes
          metric("class_failed_total", "counter", "Runs of the class that have failed.",
                 @measured.map { |measure| [{ class: measure.class_name }, measure.failed] })
          return if @measured.empty?

          head("duration_seconds", "histogram", "How long runs of the class took that have not failed.")
          @measured.each { |measure| histogram(measure) }
        end

        # Prometheus counts in each what is in those before it as well.
        def histogram(measure)
          labels = { class: measure.class_name }
          count = 0
          Storage::LIMITS_MS.each_with_index do |limit, index|
            count += measure.histogram.fetch(index, 0)
            line("duration_seconds_bucket", { **labels, le: limit / 1000.0 }, count)
          end
          count += measure.histogram.fetch(Storage::LIMITS_MS.size, 0)
          line("duration_seconds_bucket", { **labels, le: "+Inf" }, count)
          line("duration_seconds_sum", labels, measure.milliseconds / 1000.0)
          line("duration_seconds_count", labels, count)
        end

        def metric(name, type, help, values)
          return if values.empty?

          head(name, type, help)
          values.each { |labels, value| line(name, labels, value) }
        end

        def head(name, type, help) = @lines.push("# HELP ringspun_jobs_#{name} #{help}", "# TYPE ringspun_jobs_#{name} #{type}")

        def line(name, labels, value)
          text = labels.map { |label, given| "#{label}=\"#{escaped(given)}\"" }.join(",")
          @lines << "ringspun_jobs_#{name}#{"{#{text}}" unless text.empty?} #{value}"
        end

        # Anybody may write names into the storage.
        def escaped(value)
          value.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[\\"\n]/, "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n")
        end
      end
      private_constant :Exposition
    end
  end
end
