# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # The jobs that are done, where the storage keeps them.
      #
      # @api private
      class DonePage < Page
        # Jobs on a page.
        PAGE = 50

        def title = "Done"

        private

        def content
          from = request.number(:from)
          first = request[:order] == "first"
          jobs = storage.done(from, PAGE + 1, job_class: request[:class], from_end: first)
          return m.p("This storage has no tables, and keeps no jobs that are done.", class: "soft") unless jobs

          explain if jobs.empty? && from.zero? && !request[:class]
          choose(first) if jobs.any? || request[:class]
          DoneTable.new(@view).write(m, jobs.first(PAGE), "#{number(from + 1)} to #{number(from + [jobs.size, PAGE].min)}")
          pages(from, jobs.size > PAGE)
        end

        def explain
          m.p("Jobs that are done are gone, unless the setting keep_done of the workers says for how many seconds they are kept.",
              class: "soft")
        end

        def choose(first)
          m.form(method: "get", action: url("/done")) do
            m.div(class: "fields") do
              m.label("Class", for: "class") { m.input(type: "text", id: "class", name: "class", value: request[:class]) }
              m.button("Show these", type: "submit")
            end
          end
          m.p(class: "buttons") do
            m.a("Newest first", href: url("/done", class: request[:class]), aria_current: ("true" unless first))
            m.a("Oldest first", href: url("/done", class: request[:class], order: "first"), aria_current: ("true" if first))
          end
        end

        def pages(from, more)
          same = { class: request[:class], order: request[:order] }
          m.p(class: "buttons") do
            m.a("Back", href: url("/done", **same, from: [from - PAGE, 0].max)) if from.positive?
            m.a("More", href: url("/done", **same, from: from + PAGE)) if more
          end
        end
      end
      private_constant :DonePage
    end
  end
end
