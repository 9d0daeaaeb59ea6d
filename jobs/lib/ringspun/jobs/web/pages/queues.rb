# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # All queues, to pause and to clear.
      #
      # @api private
      class Queues < Page
        HEADS = { "Queue" => nil, "Waiting" => "number", "Latency" => "number", "State" => nil, "Served by" => "number",
                  "Actions" => nil }.freeze
        # The most queues on a page.
        PAGE = 200

        def title = "Queues"

        private

        def content
          sizes = sample.stats[:queues]
          names = (sizes.keys | sample.paused).sort
          from = [request.number(:from), names.size].min
          table(count(names.size, "queue"), HEADS, names[from, PAGE]) { |name| row(name, sizes.fetch(name, 0)) }
          m.p { m.a("More", href: url("/queues", from: from + PAGE)) } if names.size > from + PAGE
        end

        def row(name, size)
          paused = sample.paused.include?(name)
          row_head("Queue") { queue_link(name) }
          cell("Waiting", number(size), kind: "number")
          cell("Latency", size.zero? ? "none" : duration(sample.latencies[name]), kind: "number")
          cell("State", state(name, size, paused))
          cell("Served by", served_by(name, size), kind: "number")
          cell("Actions") do
            form("/queues", queue: name) do
              act = paused ? "Resume" : "Pause"
              button(act, act.downcase, label: "#{act} #{shown(name)}")
            end
          end
        end

        def served = @served ||= Served.new(sample.nodes)

        # Something else may have the place of the queue: nobody can enqueue into it or take from it.
        def state(name, size, paused)
          return "cannot be read: its key holds something else" if sample.stats[:unreadable].include?(name)
          return "paused" if paused

          size.positive? && served.unserved([name]).any? ? "waiting" : "running"
        end

        def served_by(name, size)
          count = served.count(name)
          return number(count) if count.positive?

          size.zero? ? "none" : "nobody"
        end
      end
      private_constant :Queues
    end
  end
end
