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
          @from = request.number(:from)
          @order = request[:order]
          @query = { class: request[:class], queue: request[:queue] }.compact
          jobs = read
          return m.p("This storage has no tables, and keeps no jobs that are done.", class: "soft") unless jobs

          explain if jobs.empty? && @from.zero? && @query.empty?
          choose if jobs.any? || @query.any?
          DoneTable.new(@view).write(m, jobs.first(PAGE), caption(jobs))
          pages(jobs.size > PAGE)
        end

        # Nobody counts them, so the last page is what is read from the end.
        def read
          conditions = { job_class: @query[:class], queue: @query[:queue] }
          return storage.done(0, PAGE, **conditions, from_end: true)&.reverse if last?

          storage.done(@from, PAGE + 1, **conditions, from_end: @order == "first")
        end

        def last? = @order == "last"

        def caption(jobs)
          return "the last #{number(jobs.size)}" if last?

          "#{number(@from + 1)} to #{number(@from + [jobs.size, PAGE].min)}"
        end

        def explain
          m.p("Jobs that are done are gone, unless the setting keep_done of the workers says for how many seconds they are kept.",
              class: "soft")
        end

        def choose
          m.form(method: "get", action: url("/done")) do
            m.div(class: "fields") do
              { "Class" => :class, "Queue" => :queue }.each do |label, name|
                m.label(label, for: name) { m.input(type: "text", id: name, name: name, value: @query[name]) }
              end
              m.button("Show these", type: "submit")
            end
          end
          m.p(class: "buttons") do
            m.a("Newest first", href: url("/done", **@query), aria_current: ("true" unless @order))
            m.a("Oldest first", href: url("/done", **@query, order: "first"), aria_current: ("true" if @order == "first"))
          end
        end

        def pages(more)
          here = { **@query, order: @order }
          m.p(class: "buttons") do
            m.a("First page", href: url("/done", **@query)) if last?
            m.a("Back", href: url("/done", **here, from: [@from - PAGE, 0].max)) if @from.positive?
            m.a("More", href: url("/done", **here, from: @from + PAGE)) if more
            m.a("Last page", href: url("/done", **@query, order: "last")) if more && @order.nil?
          end
        end
      end
      private_constant :DonePage
    end
  end
end
