# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # The commands of the executable: they pause and resume queues, or print what waits and what runs.
      #
      # @api private
      class Commands
        # Each with whether it takes the names of queues.
        NAMES = { "pause" => true, "resume" => true, "status" => false }.freeze

        # @param storage [Storage]
        # @param output [IO]
        def initialize(storage, output)
          @storage = storage
          @output = output
        end

        # May switch strands.
        #
        # @param name [String] one of {NAMES}
        # @param queues [Array<String>]
        # @return [nil]
        # @raise [Error] of the storage
        def call(name, queues)
          case name
          when "pause" then queues.each { |queue| pause(queue) }
          when "resume" then queues.each { |queue| resume(queue) }
          when "status" then status
          end
          nil
        end

        private

        # A queue that nobody has used is more often a typing error than meant.
        def pause(queue)
          @storage.pause(queue)
          known = @storage.stats[:queues].key?(queue)
          say "#{queue} is paused#{"; nothing was ever enqueued there" unless known}"
        end

        def resume(queue)
          paused = @storage.paused.include?(queue)
          @storage.resume(queue)
          say paused ? "#{queue} goes on" : "#{queue} was not paused"
        end

        def status
          stats = @storage.stats
          queues(stats[:queues], @storage.paused)
          processes(@storage.nodes)
          say(Storage::STATS.first(7).map { |name| "#{name.name.tr("_", " ")} #{stats[name]}" }.join(", "))
        end

        def queues(sizes, paused)
          rows = (sizes.keys | paused).sort.map { |queue| [queue, sizes.fetch(queue, 0), ("paused" if paused.include?(queue))] }
          table(["queue", "waiting", nil], rows)
        end

        def processes(nodes)
          rows = nodes.map do |node|
            [node["identity"], node["busy"], node["concurrency"], [*node["queues"]].join(","), ("quiet" if node["quiet"])]
          end
          table(["process", "busy", "of", "serves", nil], rows)
        end

        def table(head, rows)
          return if rows.empty?

          columns = [head, *rows].transpose
          lines = columns.map { |cells| aligned(cells) }.transpose
          lines.each { |cells| say(cells.join("  ")) }
          say ""
        end

        def aligned(cells)
          texts = cells.map { |cell| cell.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?") }
          width = texts.map(&:size).max
          texts.map { |text| cells.last.is_a?(Integer) ? text.rjust(width) : text.ljust(width) }
        end

        # Anybody may write names into the storage, and a terminal obeys control characters.
        def say(line) = @output.puts(line.gsub(/[^[:print:]]/, "?").rstrip)
      end
      private_constant :Commands
    end
  end
end
