# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # The jobs of a queue or of a set, page by page.
      #
      # @api private
      class Listing < Page
        # What can be done with the jobs that were chosen.
        ACTS = {
          schedule: { "retry" => "Run now", "kill" => "Kill", "delete" => "Delete" },
          retry: { "retry" => "Retry now", "kill" => "Kill", "delete" => "Delete" },
          dead: { "retry" => "Retry now", "delete" => "Delete" }
        }.freeze
        OF_QUEUE = { "kill" => "Kill", "delete" => "Delete" }.freeze
        DANGEROUS = %w[kill delete clear].freeze

        # @param id [String, Symbol]
        # @return [Hash{String => String}] names of acts, and what is on their buttons
        def self.acts(id) = id.is_a?(String) ? OF_QUEUE : ACTS.fetch(id)

        # @param place [Place]
        def initialize(view, place)
          super(view)
          @place = place
          @from = request.number(:from)
        end

        def title
          return "Quarantine" if quarantine?

          @place.queue? ? "Queue #{shown(@place.id)}" : @place.title
        end

        private

        def quarantine? = @place.id == Storage::QUARANTINE

        def content
          size = @place.size(sample)
          jobs = @place.page(storage, @from, size)
          explain
          whole if size.positive?
          list(jobs, size)
          pages(jobs.size, size)
        end

        def explain
          return queue_state if @place.queue? && !quarantine?
          return unless quarantine?

          m.p("Jobs that were in flight when their process died. They run in processes apart, until the one that ends its " \
              "process is found. What runs there now: ", class: "soft") { m.a("Busy", href: url("/busy")) }
        end

        def queue_state
          paused = sample.paused.include?(@place.id)
          m.div(class: "buttons") do
            m.span(paused ? "Paused: no worker takes jobs from here." : "Workers take jobs from here.")
            form("/queues", queue: @place.id, back: "queue") { paused ? button("Resume", "resume") : button("Pause", "pause") }
          end
        end

        # Behind a summary, so that one slip deletes nothing.
        def whole
          m.details do
            m.summary("All #{count(@place.size(sample), "job")}")
            form("/all", **@place.query) do
              m.div(class: "buttons") do
                button("#{@place.id == :schedule ? "Run" : "Retry"} all now", "retry") unless @place.queue?
                button("Delete all", "clear", danger: true)
              end
            end
          end
        end

        def list(jobs, size)
          return m.p("There are none.", class: "soft") if jobs.empty?

          form("/jobs", **@place.query, at: jobs.map(&:last).min, from: @from) do
            m.div(class: "buttons") do
              m.label(hidden: true) do
                m.input(type: "checkbox", id: "choose-all")
                m.say("All on this page")
              end
              Listing.acts(@place.id).each { |act, text| button(text, act, danger: DANGEROUS.include?(act)) }
            end
            caption = "#{number(@from + 1)} to #{number(@from + jobs.size)} of #{number(size)}"
            table(caption, heads, jobs) { |job, at| row(job, at) }
          end
        end

        def heads
          when_due = { schedule: "Due", retry: "Next try", dead: "Died" }[@place.id] || "Enqueued"
          rest = @place.queue? ? {} : { "Queue" => nil }
          rest["Error"] = nil unless @place.queue? || @place.id == :schedule
          { "Choose" => nil, "Job" => nil, "Arguments" => nil, when_due => nil, **rest }
        end

        def row(stored, at)
          job = JobText.new(stored.entry)
          cell("Choose") do
            m.input(type: "checkbox", name: "key", aria_label: "Choose #{job.name} #{job.jid}",
                    value: "#{Place.key(stored.token)}:#{Request.encode(job.jid)}")
          end
          row_head("Job") { job_link(job, @place, at, stored.token) }
          cell("Arguments") { m.code(job.arguments) }
          cell(heads.keys[3]) { time(stored.at || job.waiting_since) }
          rest(job)
        end

        def rest(job)
          return if @place.queue?

          cell("Queue", shown(job.queue || "default"))
          return if @place.id == :schedule

          cell("Error") do
            m.span(job.error || without_error(job), class: ("error" if job.error))
            m.say(" (tried again: #{job.tries})") if job.tries&.positive?
          end
        end

        # Other programs put jobs here as well, and do not say why.
        def without_error(job)
          killed = @place.id == :dead && job.jid && storage.history(job.jid).last&.kind == :killed
          killed ? "killed by hand" : "no error is told"
        end

        def pages(listed, size)
          m.p(class: "buttons") do
            m.a("Back", href: url(@place.path, **@place.query, from: [@from - Place::PAGE, 0].max)) if @from.positive?
            m.a("More", href: url(@place.path, **@place.query, from: @from + listed)) if listed.positive? && @from + listed < size
          end
        end
      end
      private_constant :Listing
    end
  end
end
