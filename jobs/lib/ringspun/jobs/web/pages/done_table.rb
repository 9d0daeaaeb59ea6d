# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # A table of jobs that are done, with how long each has taken, as two pages show it.
      #
      # @api private
      class DoneTable < Page
        HEADS = { "Job" => nil, "Arguments" => nil, "Queue" => nil, "Took" => "number", "Done" => nil, "Where" => nil }.freeze

        # @param markup [Markup]
        # @param jobs [Array<Storage::Done>]
        # @param caption [String]
        def write(markup, jobs, caption)
          with(markup) { table(caption, HEADS, jobs) { |done| row(done) } }
        end

        private

        def row(done)
          job = JobText.new(done.entry)
          row_head("Job") do
            m.a(job.name, href: url("/job", done: done.token, jid: job.jid))
            m.say(" ")
            tags(job)
          end
          cell("Arguments") { m.code(job.arguments) }
          cell("Queue") { queue_link(done.queue) }
          cell("Took", duration(done.seconds), kind: "number")
          cell("Done") { time(done.at) }
          cell("Where", done.node)
        end
      end
      private_constant :DoneTable
    end
  end
end
