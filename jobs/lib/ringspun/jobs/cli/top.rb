# frozen_string_literal: true

require_relative "commands/command"

module Ringspun
  module Jobs
    class CLI
      # How things go, until somebody presses q. Without a terminal, how they are now.
      #
      # @api private
      class Top < Command
        command "top", "shows live how things go: throughput, latency, queues, processes, jobs that run; q ends it",
                :interval, :json

        # Processes announce what they do only so often, and minutes are measured: no look in between would show more.
        WORK_SECONDS = 5
        QUIT = %w[q Q].freeze
        # The most processes that are asked for what they run: each may run a thousand jobs.
        NODES = 8

        def call(names)
          none(names)
          interval = @options[:interval] || 1
          refuse("--interval must be 0.1 or more, got #{interval}") unless interval >= 0.1

          @history = History.new
          @looked_at = nil
          return once(interval) unless @output.tty? && @input.tty? && !json?

          Screen.new(@input, @output).open { |screen| live(screen, interval) }
          SUCCESS
        rescue Interrupt
          SUCCESS
        end

        private

        # Two looks, for what goes on in a second.
        def once(interval)
          look
          sleep([interval, 1].min)
          look
          report = report_of
          json? ? tell(report.to_h) : report.lines.each { |line| say(line) }
          SUCCESS
        end

        def live(screen, interval)
          loop do
            look_or_tell
            due = now + interval
            while (left = due - now).positive?
              draw(screen)
              return if QUIT.include?(screen.wait(left))
            end
          end
        end

        def draw(screen)
          rows, = screen.size
          screen.draw(report_of.lines(rows).map { |line| Command.printable(line) })
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        # The first look must succeed: there would be nothing to show.
        def look_or_tell
          look
          @away = nil
        rescue Error => error
          raise unless @history.last

          @away = error.message
        end

        def look
          @history.add(Metrics.sample(@storage))
          return if @looked_at && now - @looked_at < WORK_SECONDS

          names = @history.last.nodes.select { |node| node["busy"].positive? }.map { |node| node["identity"] }
          @work = @storage.work(names.first(NODES)).flatten.sort_by(&:began_at)
          @measured = @storage.measured
          @looked_at = now
        end

        def report_of = Report.new(@history, @work, @measured, place: @storage.identity, away: @away)
      end
      private_constant :Top
    end
  end
end

require_relative "top/history"
require_relative "top/report"
require_relative "top/screen"
