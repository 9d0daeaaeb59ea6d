# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # One class of jobs: how it goes in the last hour, and in all; and those of its jobs that were done last.
      #
      # @api private
      class ClassPage < Page
        MINUTES = Storage::MINUTES_MAX
        # The most jobs on it that are done.
        DONE = 10

        def title = "Class #{shown(name)}"

        def status = @unknown ? 404 : 200

        private

        def name = request[:class].to_s

        def content
          total = storage.measured.find { |one| one.class_name == name }
          minutes = storage.measured_minutes(name)
          unless total || minutes.any?
            @unknown = true
            return m.p("No job of this class was measured: none has ended, or its class is one of too many, which are counted " \
                       "together as #{Storage::OTHERS}.")
          end
          numbers("In all", total) if total
          hour(minutes)
          done
        end

        # @param minutes [Integer, nil] over which they are
        def numbers(heading, one, minutes = nil)
          m.h2(heading)
          rate = "#{short(one.processed.fdiv(minutes))} a minute" if minutes
          facts("Runs" => number(one.processed), "Rate" => rate, "Failed" => failures(one),
                "Mean" => Classes.mean(one)&.then { |seconds| duration(seconds) },
                "Half below" => below(one, 0.5), "95 % below" => below(one, 0.95), "99 % below" => below(one, 0.99))
        end

        def hour(minutes)
          sum = minutes.each_with_object(Storage::Measure.new(nil, name, 0, 0, 0, Hash.new(0))) do |one, all|
            %i[processed failed milliseconds].each { |field| all[field] += one[field] }
            one.histogram.each { |index, count| all.histogram[index] += count }
          end
          numbers("In the last hour", sum, MINUTES) if sum.processed.positive?
          m.div(class: "charts") { charts(minutes.to_h { |one| [one.minute, one] }) } if minutes.any?
        end

        # A minute in which none has ended has no duration, and a rate of 0. The one that is not over is left out, for its workers
        # tell of it when it is.
        def charts(by_minute)
          last = (sample.time / 60).to_i
          minutes = (last - MINUTES + 1...last).to_a
          rates = %i[processed failed].map do |field|
            minutes.map { |minute| [minute * 60, by_minute[minute] ? by_minute[minute][field] : 0] }
          end
          rates = { "processed" => rates[0], "of these failed" => rates[1] }
          chart("Runs a minute", MINUTES * 60, rates, last * 60) { |value| short(value) }
          means = minutes.filter_map do |minute|
            mean = by_minute[minute] && Classes.mean(by_minute[minute])
            [minute * 60, mean] if mean
          end
          chart("How long they take", MINUTES * 60, { "mean" => means }, last * 60) { |value| duration(value) }
        end

        def done
          m.p(class: "buttons") { m.a("Look for its jobs", href: url("/search", class: name)) }
          jobs = storage.done(0, DONE, job_class: name)
          return if jobs.nil? || jobs.empty?

          m.h2("Done last")
          DoneTable.new(@view).write(m, jobs, count(jobs.size, "job"))
          m.p { m.a("All that are kept", href: url("/done", class: name)) }
        end
      end
      private_constant :ClassPage
    end
  end
end
