# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # All classes of jobs that were measured: how many have run and failed, and how long they take.
      #
      # @api private
      class Classes < Page
        HEADS = { "Class" => nil, "Runs" => "number", "Failed" => "number", "Mean" => "number", "Half below" => "number",
                  "95 % below" => "number", "99 % below" => "number" }.freeze
        ORDERS = {
          "runs" => ["Most runs", ->(one) { one.processed }], "failed" => ["Most failures", ->(one) { one.failed }],
          "share" => ["Most failures of a hundred", ->(one) { one.failed.fdiv(one.processed) }],
          "slow" => ["Slowest", ->(one) { Classes.mean(one) || 0 }]
        }.freeze
        # The most classes on a page.
        PAGE = 100
        private_constant :ORDERS

        # @param measure [Storage::Measure]
        # @return [Float, nil] how many seconds a job that has not failed takes; nil: there is none
        def self.mean(measure)
          done = measure.processed - measure.failed
          measure.milliseconds / 1000.0 / done if done.positive?
        end

        def title = "Classes"

        private

        def content
          order = ORDERS.key?(request[:order]) ? request[:order] : "runs"
          all = storage.measured.select { |one| one.processed.positive? }
          all = all.sort_by { |one| [-ORDERS.dig(order, 1).call(one), one.class_name] }
          m.p("Since workers have measured here, all of them together. A run that is snoozed counts as well.", class: "soft")
          orders(order) if all.size > 1
          from = request.number(:from)
          table(count(all.size, "class", "classes"), HEADS, all[from, PAGE] || []) { |one| row(one) }
          m.p { m.a("More", href: url("/classes", order: order, from: from + PAGE)) } if all.size > from + PAGE
        end

        def orders(chosen)
          m.p(class: "buttons") do
            ORDERS.each do |name, (text, _)|
              m.a(text, href: url("/classes", order: name), aria_current: ("true" if name == chosen))
            end
          end
        end

        def row(one)
          row_head("Class") { m.a(shown(one.class_name), href: url("/class", class: one.class_name)) }
          cell("Runs", number(one.processed), kind: "number")
          cell("Failed", failures(one), kind: "number")
          cell("Mean", Classes.mean(one)&.then { |seconds| duration(seconds) } || "none", kind: "number")
          [["Half below", 0.5], ["95 % below", 0.95], ["99 % below", 0.99]].each do |text, share|
            cell(text, below(one, share), kind: "number")
          end
        end
      end
      private_constant :Classes
    end
  end
end
