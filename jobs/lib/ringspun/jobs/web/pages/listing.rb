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

        # What the two orders of a place are called: the first one first, and the last one first.
        ORDERS = { schedule: ["Earliest first", "Latest first"], retry: ["Earliest first", "Latest first"],
                   dead: ["Oldest first", "Newest first"] }.freeze
        ORDERS_OF_QUEUE = ["Next first", "Newest first"].freeze
        private_constant :ORDERS, :ORDERS_OF_QUEUE

        # @param place [Place]
        def initialize(view, place)
          super(view)
          @place = place
          @from = request.number(:from)
          @order = request[:order] if ["first", "last"].include?(request[:order])
          @last_first = @order ? @order == "last" : place.newest_first?
          @filter = Filter.new(request, place)
        end

        def status = @wrong ? 400 : 200

        def title
          return "Quarantine" if quarantine?

          @place.queue? ? "Queue #{shown(@place.id)}" : @place.title
        end

        private

        def quarantine? = @place.id == Storage::QUARANTINE

        def content
          size = @place.size(sample)
          explain
          whole if size.positive?
          choose_some if size.positive? || @filter.any?
          return filtered(size) if @filter.any?

          order if size > 1
          jobs = @place.page(storage, @from, size, last_first: @last_first)
          list(jobs, "#{number(@from + 1)} to #{number(@from + jobs.size)} of #{number(size)}") if jobs.any?
          m.p("There are none.", class: "soft") if jobs.empty?
          pages(jobs.size, size)
        end

        # A form without a button that changes anything. A name that cannot be shown cannot be in its fields either.
        def choose_some
          return if @place.queue? && Markup.plain(@place.id) != @place.id

          m.form(method: "get", action: url(@place.path)) do
            @place.query.each { |name, value| m.input(type: "hidden", name: name, value: value) }
            m.div(class: "fields") do
              field("Class", "class")
              field("Queue", "in") unless @place.queue?
              m.button("Show these", type: "submit")
            end
          end
        end

        def field(text, name)
          m.label(text, for: name) { m.input(type: "text", id: name, name: name, value: @filter.query[name.to_sym]) }
        end

        def filtered(size)
          searched = @filter.search(storage)
          looked = request.number(:looked) + searched.looked
          all = { **@place.query, **@filter.query }
          m.p("Looked at #{number(looked)} of #{count(size, "job")}#{searched.cursor ? " so far" : ": that is all"}; " \
              "found #{number(searched.found.size)}#{" more" if request[:cursor]}. They are in the order in which the storage " \
              "goes through them.", role: "status")
          list(searched.found.map { |found| [found, 0] }, "Found") if searched.found.any?
          m.p(class: "buttons") do
            m.a("Look on", href: url(@place.path, **all, cursor: searched.cursor, looked: looked)) if searched.cursor
            m.a("Show all", href: url(@place.path, **@place.query))
          end
        rescue ArgumentError
          @wrong = true
          m.p("This page's address is damaged: begin anew.", class: "error")
        end

        def order
          names = @place.queue? ? ORDERS_OF_QUEUE : ORDERS.fetch(@place.id)
          m.p(class: "buttons") do
            names.zip(%w[first last]) do |text, order|
              chosen = @last_first == (order == "last")
              m.a(text, href: url(@place.path, **@place.query, order: order), aria_current: ("true" if chosen))
            end
          end
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

        # @param jobs [Array<Array(Storage::Stored, Integer)>]
        def list(jobs, caption)
          here = { **@filter.here, order: @order, from: @from }
          form("/jobs", **@place.query, at: jobs.map(&:last).min_by(&:abs), **here) do
            m.div(class: "buttons") do
              m.label(hidden: true) do
                m.input(type: "checkbox", id: "choose-all")
                m.say("All on this page")
              end
              Listing.acts(@place.id).each { |act, text| button(text, act, danger: DANGEROUS.include?(act)) }
            end
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
          last = size.zero? ? 0 : (size - 1) / Place::PAGE * Place::PAGE
          more = listed.positive? && @from + listed < size
          m.p(class: "buttons") do
            page_link("First page", 0) if @from > Place::PAGE
            page_link("Back", [@from - Place::PAGE, 0].max) if @from.positive?
            page_link("More", @from + listed) if more
            page_link("Last page", last) if more && last > @from + listed
          end
        end

        def page_link(text, from) = m.a(text, href: url(@place.path, **@place.query, order: @order, from: from))
      end
      private_constant :Listing
    end
  end
end
