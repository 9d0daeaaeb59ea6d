# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # The processes that run jobs, to make them quiet and to stop them.
      #
      # @api private
      class Processes < Page
        HEADS = { "Process" => nil, "Busy" => "number", "Serves" => nil, "Memory" => "number",
                  "Storage answers in" => "number", "Started" => nil, "Actions" => nil }.freeze
        # Processes on a page.
        PAGE = 200

        def title = "Processes"

        private

        def content
          nodes = sample.nodes
          from = request.number(:from)
          table(count(nodes.size, "process", "processes"), HEADS, nodes[from, PAGE] || []) { |node| row(node) }
          m.p { m.a("More", href: url("/processes", from: from + PAGE)) } if nodes.size > from + PAGE
        end

        def row(node)
          name = node["identity"]
          row_head("Process") do
            m.a(name, href: url("/busy", node: name))
            m.say(" ")
            [node["tag"], *node["labels"]].each { |tag| m.span(tag, class: "tag") if tag.is_a?(String) && !tag.empty? }
            m.span("quiet", class: "tag") if node["quiet"]
          end
          cell("Busy", "#{number(node["busy"])} of #{number(node["concurrency"])}", kind: "number")
          cell("Serves", [*node["queues"]].map { |queue| shown(queue) }.join(", "))
          cell("Memory", "#{number(node["rss"].to_i / 1024)} MB", kind: "number")
          cell("Storage answers in", duration(node["rtt_us"].to_i / 1e6), kind: "number")
          cell("Started") { time(Wire.seconds(node["started_at"])) }
          cell("Actions") do
            form("/processes", node: name) do
              button("Quiet", "quiet", label: "Quiet #{name}") unless node["quiet"]
              button("Stop", "stop", label: "Stop #{name}", danger: true)
            end
          end
        end
      end
      private_constant :Processes
    end
  end
end
