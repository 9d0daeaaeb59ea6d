# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      class Top < Command
        # The text of what there is to see: a head, and a table each for queues, processes, jobs that run, and classes.
        #
        # @api private
        class Report
          # @param history [History] which has a sample
          # @param work [Array<Storage::Running>] the longest runs first
          # @param measured [Array<Storage::Measure>]
          # @param place [String] see {Storage#identity}
          # @param now [Time]
          # @param away [String, nil] why there is no newer sample
          def initialize(history, work, measured, place:, now: Time.now, away: nil)
            @history = history
            @sample = history.last
            @work = work
            @measured = measured
            @place = place
            @now = now
            @away = away
          end

          # @param rows [Integer, nil] lines that there are; nil: as many as it takes
          # @return [Array<String>]
          def lines(rows = nil)
            head = [*head(rows), ""]
            sections = [queues, processes, running, classes].reject(&:empty?)
            (head + shared(sections, rows && (rows - head.size)).flat_map { |section| [*section, ""] })[..-2]
          end

          # @return [Hash{String => Object}]
          def to_h
            { "time" => @sample.time, "storage" => @place, **@sample.stats.transform_keys(&:to_s),
              "processed_per_second" => @history.rate(:processed)&.round(2),
              "failed_per_second" => @history.rate(:failed)&.round(2),
              "latencies" => @sample.latencies, "paused" => @sample.paused, "processes" => @sample.nodes,
              "classes" => @measured.map { |measure| class_of(measure) } }
          end

          private

          def head(live)
            stats = @sample.stats
            places = @sample.nodes.sum { |node| node["concurrency"].to_i }
            first = "#{@now.strftime("%T")}  processed #{number(stats[:processed])}#{rate(:processed)}  " \
                    "failed #{number(stats[:failed])}#{rate(:failed)}"
            first += "  #{@history.bars(:processed)}" if live
            second = "#{%i[enqueued scheduled retries dead].map { |name| "#{name} #{number(stats[name])}" }.join("  ")}  " \
                     "in flight #{number(stats[:in_flight])}  busy #{number(@sample.busy)} of #{number(places)}"
            [first, second, "in #{@place}", *("no answer: #{@away}" if @away)]
          end

          def rate(name) = @history.rate(name)&.then { |rate| format(" (%.1f/s)", rate) }

          def number(integer) = Words.number(integer)

          # A section that needs less than its share leaves the rest to those after it.
          def shared(sections, room)
            return sections unless room

            left = sections.size
            sections.filter_map do |section|
              share = [(room / left) - 1, section.size].min
              left -= 1
              room -= share + 1
              next if share < 2

              share < section.size ? [*section.first(share - 1), "  and #{section.size - share + 1} more"] : section
            end
          end

          def table(head, rows) = rows.empty? ? [] : Command.aligned(head, rows)

          def queues
            sizes = @sample.stats[:queues]
            rows = @sample.queues.sort_by { |queue| [-sizes.fetch(queue, 0), queue] }.map do |queue|
              latency = @sample.latencies[queue]
              [queue, sizes.fetch(queue, 0), latency && Words.duration(latency), ("paused" if @sample.paused.include?(queue))]
            end
            table(["queue", "waiting", "latency", nil], rows)
          end

          def processes
            rows = @sample.nodes.sort_by { |node| [-node["busy"], node["identity"]] }.map do |node|
              [node["identity"], node["busy"], node["concurrency"].to_i, "#{node["rss"].to_i / 1024} MB",
               [*node["queues"]].join(","), ("quiet" if node["quiet"])]
            end
            table(["process", "busy", "of", "memory", "serves", nil], rows)
          end

          def running
            rows = @work.map do |run|
              job = Wire.read(run.entry) || {}
              [Words.duration([@sample.time - run.began_at, 0].max), job["jid"], job["wrapped"] || job["class"], run.queue,
               Command.printable(Command.json(job["args"]))[0, 200]]
            end
            table(%w[runs jid class queue arguments], rows)
          end

          def classes
            rows = @measured.sort_by { |measure| -measure.processed }.map do |measure|
              *numbers, half, most = class_of(measure).values
              [*numbers, *[half, most].map { |limit| limit && Words.duration(limit / 1000.0) }]
            end
            table(["class, since ever", "runs", "failed", "50 % below", "95 % below"], rows)
          end

          def class_of(measure)
            { "class" => measure.class_name, "processed" => measure.processed, "failed" => measure.failed,
              "p50_ms" => measure.below(0.5), "p95_ms" => measure.below(0.95) }
          end
        end
      end
    end
  end
end
