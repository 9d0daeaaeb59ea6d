# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # One job: where it is, what it was given, why it has failed, what has happened to it, and what it has returned.
      #
      # @api private
      class JobPage < Page
        HAPPENED = {
          retry: "failed, to be tried again", dead: "failed, and is dead", dropped: "failed, and is not kept",
          taken_over: "its process was gone, and others took it over", died: "ended the process in which it ran",
          snoozed: "snoozed", cancelled: "cancelled", returned: "went back into its queue, for its worker ended",
          by_hand: "retried by hand", killed: "killed by hand", done: "done"
        }.freeze

        def initialize(view)
          super
          @place = Place.asked(request)
          @key = request[:key]
          @jid = request[:jid]
        end

        def title = @found ? JobText.new(@found.entry).name : "Job #{@jid}"

        def status
          return 400 if @wrong

          @found || @cursor || told? ? 200 : 404
        end

        private

        def content
          look
          @found ? found : not_found
          told
        end

        def look
          if request[:done] then @found = storage.find_done(request[:done])
          elsif request[:place] == "running" then @found = running
          elsif @place && @key
            jids = @jid ? { @key => @jid } : {}
            @found = @place.locate(storage, [@key], Place.at(request), jids)[@key]
          elsif @jid then everywhere
          end
        end

        def running
          storage.work([request[:node].to_s]).first.find { |job| JobText.new(job.entry).jid == @jid }
        end

        def everywhere
          searched = Searched.new(storage, { jid: @jid }, cursor: request[:cursor]).go
          @found = searched.found.first
          @looked = request.number(:looked) + searched.looked
          @cursor = searched.cursor unless @found
          @place = Place.new(@found.queue || "default") if @found&.place == :queue
          @place = Place.new(@found.place) if @found && Storage::SETS.include?(@found.place)
        rescue ArgumentError # the cursor in the address is none
          @wrong = true
        end

        def found
          job = JobText.new(@found.entry)
          buttons(job)
          facts("Where" => -> { where }, "Class" => job.name, "Id" => job.jid, "Queue" => (shown(job.queue) if job.queue),
                "Tags" => (-> { tags(job) } if job.tags.any?), "Tried again" => job.tries,
                "Created" => at(job.time("created_at")), "Enqueued" => at(job.time("enqueued_at")),
                "Failed first" => at(job.time("failed_at")), "Failed last" => at(job.time("retried_at")), **run)
          m.p("This is no job: it cannot be run.", class: "error") if job.malformed?
          m.h2("Arguments")
          m.pre { m.code(job.pretty_arguments) }
          failure(job)
          m.details do
            m.summary("All that is stored")
            m.pre { m.code(job.pretty) }
          end
        end

        # How it has run.
        def run
          return {} unless done?

          { "Took" => duration(@found.seconds), "Ran at" => @found.node, "Fetched from" => -> { queue_link(@found.queue) } }
        end

        def done? = @found.is_a?(Storage::Done)

        def at(seconds) = (-> { time(seconds) } if seconds)

        def where
          if @place
            m.a(@place.queue? ? "Queue #{shown(@place.id)}" : @place.title, href: url(@place.path, **@place.query))
            m.say(", ") if @found.at
            time(@found.at) if @found.at
          elsif done?
            m.a("Done", href: url("/done"))
            m.say(", ")
            time(@found.at)
          else
            m.say("in flight at #{@found.node}")
            m.say(", since ") if @found.is_a?(Storage::Running)
            time(@found.began_at) if @found.is_a?(Storage::Running)
          end
        end

        def buttons(job)
          if @place
            form("/jobs", **@place.query, at: Place.at(request)) do
              m.input(type: "hidden", name: "key", value: "#{Place.key(@found.token)}:#{Request.encode(job.jid)}")
              m.div(class: "buttons") do
                Listing.acts(@place.id).each { |act, text| button(text, act, danger: Listing::DANGEROUS.include?(act)) }
              end
            end
          elsif job.jid && !done?
            form("/cancel", node: @found.node, jid: job.jid) do
              m.div(class: "buttons") { button("Cancel", "cancel", danger: true) }
            end
          end
        end

        def failure(job)
          return unless job.error

          m.h2("Error")
          m.p(class: "error") { m.say([job.error_class, job.error_message].compact.join(": ")) }
          lines = job.backtrace
          m.pre { m.code(lines.first(500).join("\n")) } if lines&.any?
        end

        def not_found
          if @wrong
            m.p("This page's address is damaged: begin anew.", class: "error")
          elsif @cursor
            m.p("Not among the #{count(@looked, "job")} that were looked at; there are more.")
            m.p { m.a("Look on", href: url("/job", jid: @jid, cursor: @cursor, looked: @looked)) }
          elsif @looked || @jid.nil?
            looked = "#{count(@looked, "job")} #{Words.noun(@looked, "was", "were")}"
            m.p("It is nowhere: it is done, or was deleted, or never was. #{looked} looked at.")
          else
            m.p("It is not there any more: it has moved on, or somebody has taken it.")
            m.p { m.a("Look for it everywhere", href: url("/job", jid: @jid)) }
          end
        end

        def events = @events ||= @jid ? storage.history(@jid) : []

        def result = @result ||= [@jid && storage.results([@jid]).first]

        def told? = events.any? || !result.first.nil?

        def told
          if result.first
            m.h2("Result")
            m.pre { m.code(result.first.size > JobText::LONG ? "#{result.first[0, JobText::LONG]}…" : result.first) }
          end
          m.h2("History")
          table("What has happened, the last first", { "When" => nil, "What" => nil, "Where" => nil, "Error" => nil },
                events.reverse) do |event|
            row_head("When") { time(event.at) }
            cell("What", HAPPENED.fetch(event.kind, event.kind))
            cell("Where", event.node)
            cell("Error") { m.span([event.error_class, event.error_message].compact.join(": "), class: "error") }
          end
        end
      end
      private_constant :JobPage
    end
  end
end
