# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # What runs: where, since when, and what it waits for.
      #
      # @api private
      class Busy < Page
        # The most jobs on a page.
        PAGE = 100
        HEADS = { "Job" => nil, "Arguments" => nil, "Queue" => nil, "Began" => nil, "Waits for" => nil, "Actions" => nil }.freeze

        def title = "Busy"

        private

        def content
          live_part("/busy", part: 1, node: request[:node], from: (request.number(:from) if request[:from]))
        end

        def live
          shown, left = chosen
          names = shown.map { |node| node["identity"] }
          @view.sampler.ask_waits(shown.select { |node| node["ringspun"] }.map { |node| node["identity"] })
          jobs = @view.sampler.work(names).flatten(1)
          places(left)
          from = request.number(:from)
          table(caption(jobs.size, from), HEADS, jobs[from, PAGE] || []) { |job| row(job, waits(shown)) }
          m.p { m.a("More", href: url("/busy", node: request[:node], from: from + PAGE)) } if jobs.size > from + PAGE
        end

        # When very many jobs run, those of some processes are shown, for all have to be read.
        def chosen
          nodes = sample.nodes.select { |node| node["busy"].to_i.positive? }
          return [nodes.select { |node| node["identity"] == request[:node] }, []] if request[:node]

          sum = 0
          nodes.partition.with_index { |node, index| (sum += node["busy"].to_i) <= Sampler::WORK_MAX || index.zero? }
        end

        def places(left)
          m.p(class: "soft") do
            m.say("As the processes have announced it: what is new may be missing for some seconds. ")
            m.a("Those of all processes", href: url("/busy")) if request[:node]
          end
          return if left.empty?

          m.p do
            m.say("There are more, in: ")
            left.first(50).each { |node| m.a("#{node["identity"]} ", href: url("/busy", node: node["identity"])) }
          end
        end

        def caption(size, from) = "#{count(size, "job")}#{", from #{number(from + 1)} on" if from.positive?}, the longest first"

        # By nodes and slots.
        def waits(nodes) = @waits ||= nodes.to_h { |node| [node["identity"], node["waits"].is_a?(Hash) ? node["waits"] : {}] }

        def row(running, waits)
          job = JobText.new(running.entry)
          row_head("Job") do
            m.a(job.name, href: url("/job", place: "running", node: running.node, jid: job.jid))
            m.say(" ")
            tags(job)
          end
          cell("Arguments") { m.code(job.arguments) }
          cell("Queue") { queue_link(running.queue) }
          cell("Began") { time(running.began_at) }
          cell("Waits for", waits[running.node][running.slot] || "not told yet")
          cell("Actions") do
            form("/cancel", node: running.node, jid: job.jid, back: "busy") do
              button("Cancel", "cancel", label: "Cancel #{job.name} #{job.jid}", danger: true)
            end
          end
        end
      end
      private_constant :Busy
    end
  end
end
