# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # The entries of schedules: to pause, to run now, and what their last runs were.
      #
      # @api private
      class Schedule < Page
        HEADS = { "Entry" => nil, "Schedule" => nil, "Job" => nil, "Next" => nil, "Last" => nil, "State" => nil,
                  "Actions" => nil }.freeze
        RUNS = { "Tick" => nil, "Enqueued" => nil, "Job" => nil }.freeze
        # Entries on a page.
        PAGE = 100

        def title = "Cron"

        private

        def content
          rows = Cron::Overview.of(storage)
          from = [request.number(:from), rows.size].min
          some = rows[from, PAGE]
          table(count(rows.size, "entry", "entries"), HEADS, some) { |row| entry(row) }
          m.p { m.a("More", href: url("/cron", from: from + PAGE)) } if rows.size > from + PAGE
          some.each { |row| m.details { runs(row.cron) } if row.cron.runs.any? }
        end

        def entry(row)
          cron = row.cron
          row_head("Entry") do
            m.say(cron.name)
            row.entry&.description&.then { |text| m.small(" #{text}") }
          end
          cell("Schedule") do
            m.say(row.entry ? row.entry.schedule : cron.schedule)
            m.small(" #{row.entry.times("UTC").zone}") if row.entry
          end
          cell("Job", row.entry&.class_name)
          cell("Next") { cron.paused || row.next.nil? ? m.say("none") : time(row.next) }
          cell("Last") { cron.runs.any? ? time(cron.runs.first.at) : m.say("never") }
          cell("State", row.state || "runs")
          cell("Actions") { actions(cron) }
        end

        def actions(cron)
          act = cron.paused ? "Resume" : "Pause"
          form("/cron", name: cron.name) do
            button(act, act.downcase, label: "#{act} #{shown(cron.name)}")
            button("Run now", "run", label: "Run now #{shown(cron.name)}")
          end
        end

        def runs(cron)
          m.summary("Last runs of #{shown(cron.name)}")
          table(count(cron.runs.size, "run"), RUNS, cron.runs) do |run|
            row_head("Tick") { run.tick ? time(run.tick) : m.say("by hand") }
            cell("Enqueued") { time(run.at) }
            cell("Job") { run.jid ? m.a(run.jid, href: url("/search", jid: run.jid)) : m.say("none") }
          end
        end
      end
      private_constant :Schedule
    end
  end
end
