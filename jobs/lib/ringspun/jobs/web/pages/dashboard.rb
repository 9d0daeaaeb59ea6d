# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # How much there is, how fast it goes, and how long jobs wait.
      #
      # @api private
      class Dashboard < Page
        NUMBERS = { processed: "Processed", failed: "Failed", enqueued: "Enqueued", in_flight: "In flight",
                    scheduled: "Scheduled", retries: "Retries", dead: "Dead", twice: "Ran twice" }.freeze
        HEADS = { "Queue" => nil, "Waiting" => "number", "Latency" => "number" }.freeze

        def title = "Dashboard"

        private

        def content = live_part("/live")

        # Whoever looks within the same second gets the same text.
        def live
          m.add(@view.shared.fetch(sample, request.base) { Page.new_markup { |markup| with(markup) { write } } })
        end

        def write
          stats = sample.stats
          m.dl(class: "numbers") do
            NUMBERS.each do |name, label|
              m.div do
                m.dt(label)
                m.dd(number(stats[name]))
              end
            end
          end
          m.div(class: "charts") { charts }
          m.h2("Queues")
          queues(stats[:queues])
          m.p("Jobs are kept in #{storage.identity}.", class: "soft")
        end

        def charts
          line = @view.sampler.line
          rates = line.each_cons(2).reject { |one, other| other.time <= one.time }
          done, failed = %i[processed failed].map do |name|
            rates.map { |one, other| [other.time, [(other.stats[name] - one.stats[name]) / (other.time - one.time), 0].max] }
          end
          rates = { "processed" => done, "of these failed" => failed }
          chart("Throughput", Sampler::KEPT_SECONDS, rates, sample.time) { |value| "#{short(value)}/s" }
          waits = line.map { |one| [one.time, one.latencies.values.compact.max || 0] }
          waits = { "the next job has waited" => waits }
          chart("Latency of the slowest queue", Sampler::KEPT_SECONDS, waits, sample.time) { |value| duration(value) }
        end

        def queues(sizes)
          rows = sizes.max_by(Sampler::QUEUES_MAX, &:last)
          table("The #{rows.size} longest of #{number(sizes.size)}", HEADS, rows) do |name, size|
            row_head("Queue") { queue_link(name) }
            cell("Waiting", number(size), kind: "number")
            cell("Latency", size.zero? ? "none" : duration(sample.latencies[name]), kind: "number")
          end
        end
      end
      private_constant :Dashboard
    end
  end
end
