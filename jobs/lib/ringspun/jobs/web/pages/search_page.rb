# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # Looks for jobs, for a second at a time.
      #
      # @api private
      class SearchPage < Page
        FIELDS = { class: ["Class", :job_class], jid: ["Id", :jid], tag: ["Tag", :tag], text: ["In the arguments", :text] }.freeze
        WHERE = { "scheduled" => ["Scheduled", :schedule], "retries" => ["Retries", :retry], "dead" => ["Dead", :dead],
                  "queue" => ["Queues", :queue], "running" => ["In flight", :in_flight] }.freeze

        def title = "Search"

        def status = @wrong ? 400 : 200

        private

        def content
          fields
          conditions = FIELDS.to_h { |name, (_, key)| [key, request[name]] }.compact
          conditions[:places] = [WHERE.fetch(request[:where]).last] if WHERE.key?(request[:where])
          answer(conditions) if conditions.any?
        end

        def fields
          m.form(method: "get", action: url("/search")) do
            m.div(class: "fields") do
              FIELDS.each do |name, (text, _)|
                m.label(text, for: name) { m.input(type: "text", id: name, name: name, value: request[name]) }
              end
              m.label("Where", for: "where") do
                m.select(id: "where", name: "where") do
                  m.option("Everywhere", value: "")
                  WHERE.each { |name, (text, _)| m.option(text, value: name, selected: name == request[:where]) }
                end
              end
              m.button("Search", type: "submit")
            end
          end
        end

        def answer(conditions)
          searched = Searched.new(storage, conditions, cursor: request[:cursor]).go
          looked = request.number(:looked) + searched.looked
          m.p("Looked at #{count(looked, "job")}#{searched.cursor ? " so far" : ": that is all"}; " \
              "found #{number(searched.found.size)}#{" more" if request[:cursor]}.", role: "status")
          rows(searched.found) if searched.found.any?
          return unless searched.cursor

          again = [*FIELDS.keys, :where].to_h { |name| [name, request[name]] }
          m.p { m.a("Look on", href: url("/search", **again, cursor: searched.cursor, looked: looked)) }
        rescue ArgumentError
          @wrong = true
          m.p("This page's address is damaged: begin anew.", class: "error")
        end

        def rows(found)
          table("Found", { "Job" => nil, "Arguments" => nil, "Where" => nil, "Error" => nil }, found) do |one|
            job = JobText.new(one.entry)
            row_head("Job") do
              m.a(job.name, href: link(one, job))
              m.say(" ")
              tags(job)
            end
            cell("Arguments") { m.code(job.arguments) }
            cell("Where", one.node ? "in flight at #{one.node}" : place_of(one).title)
            cell("Error") { m.span(job.error || "", class: "error") }
          end
        end

        def place_of(found) = Place.new(found.place == :queue ? found.queue : found.place)

        def link(found, job)
          return url("/job", place: "running", node: found.node, jid: job.jid) if found.node

          url("/job", **place_of(found).query, key: Place.key(found.token), jid: job.jid)
        end
      end
      private_constant :SearchPage
    end
  end
end
