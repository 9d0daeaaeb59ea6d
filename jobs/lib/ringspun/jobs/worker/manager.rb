# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Runs a worker from its first lease to its farewell: starts its {Parts}, carries out orders, drains, and gives back what is
      # left in flight.
      #
      # @api private
      class Manager
        # Seconds for the `ensure` blocks of cancelled jobs.
        GRACE_SECONDS = 5.0
        # Seconds between tries to end waits at queues.
        ROUSE_SECONDS = 0.01
        # Seconds that a worker may take to leave.
        FAREWELL_SECONDS = 5.0

        # @param setup [Setup]
        def initialize(setup)
          @setup = setup
          @node = setup.node
          @storage = setup.storage
          @log = setup.log
          @runs = setup.runs
          @control = setup.control
          @events = Events.new(setup.config, setup.log)
        end

        # Returns when the worker has been stopped and has ended. May switch strands.
        def run(machine)
          @machine = machine
          @control.attach
          machine.scope do |scope|
            @scope = scope
            @parts = Parts.new(@setup, machine, scope)
            work if lease
          end
        ensure
          leave
        end

        # Returns when the time is over that jobs had to end, or the worker is told to hurry. May switch strands.
        def wait_for_what_is_left
          wait_until(@ends_at ? @ends_at - @machine.now : 0) { @control.hurried? }
          @log.event(:warn, "what jobs have begun and left goes on no more", node: @node)
          @log.flush
        end

        # There may be jobs: a queue is new. Never waits.
        def look = @parts&.fetcher&.look

        # The schedule may be another one. Never waits.
        def look_at_schedule = @parts&.ticker&.look

        # Cancels a job, if it runs here. Never waits.
        #
        # @param jid [String]
        def cancel(jid) = @parts&.processor&.cancel(jid)

        # May be called from other threads and from signal handlers.
        def mark_cancelled(jid) = @parts&.processor&.mark_cancelled(jid)

        # For a loop that no longer runs: gives back all jobs in flight but the one that holds the thread, which others take over
        # when the lease has run out. Called on another thread, before the process ends.
        def abandon
          @parts&.abandon # or jobs that are given back would still run in children
          connection = @storage.connect
          end_waits_elsewhere(connection)
          runs = @runs.abandon(@storage.in_flight(@node, connection: connection))
          @parts&.acker&.send_elsewhere(runs, connection)
        ensure
          connection&.close
        end

        private

        # @return [Boolean] false: the worker was stopped before the storage could be reached
        def lease
          @parts.backoff.persist(:extend, till: -> { @control.stopped? }) { @parts.lease.extend || true }
          !@control.stopped?
        end

        def work
          @began = true
          @events.call!(:startup)
          @parts.start
          @scope.spin { warn_of_risks }
          @log.event(:info, "the worker is ready", node: @node, storage: @storage.identity,
                                                   queues: @setup.queue_order.asked.join(","),
                                                   concurrency: @setup.config.concurrency)
          until @control.stopped?
            settle_down if @control.quiet?
            @control.obey
          end
          drain
        end

        def warn_of_risks
          risks = @parts.backoff.persist(:risks, till: -> { @control.stopped? }) { @storage.risks }
          risks&.each { |risk| @log.event(:warn, risk) }
        end

        def settle_down
          return if @settling

          @settling = true
          @parts.close_intake
          @scope.spin { end_waits }
          @events.call(:quiet)
        end

        # Again and again, for a wait that is still on its way to the storage cannot be ended yet.
        def end_waits
          while @parts.intake.under_way?
            @parts.intake.rouse
            @machine.sleep(ROUSE_SECONDS)
          end
          @log.event(:info, "no more jobs are fetched", node: @node) unless @control.stopped?
        end

        # Like {#end_waits}, for a loop that no longer runs: a wait of this worker must not take what is given back.
        def end_waits_elsewhere(connection)
          @storage.rouse(@node, connection: connection)
        rescue StandardError => error
          @log.event(:warn, "what is given back may stay in flight: #{error.message}", node: @node)
        end

        def drain
          @ends_at = @machine.now + @setup.config.timeout
          settle_down
          @events.call(:shutdown)
          wait_until(@setup.config.timeout) { @control.hurried? || ended? }
          @parts.processor.return_all
          wait_until(GRACE_SECONDS) { ended? }
          @runs.to_a.each { |run| @log.event(:error, "does not end", jid: run.jid, class: run.class_name, queue: run.queue) }
          @parts.close
          @runs.empty? ? @parts.heartbeat.stop : @scope.cancel
        end

        def ended? = @runs.empty? && !@parts.intake.under_way?

        def wait_until(seconds)
          deadline = @machine.now + seconds
          until yield
            left = deadline - @machine.now
            return unless left.positive? && @control.obey(left)
          end
        end

        # Also those of the minute that is not over.
        def send_measures
          @runs.measures&.turn(0)
          @runs.measures&.send_ended(@storage)
        end

        # Gives back what this process still has in flight.
        def leave
          Ringspun.shield(deadline: FAREWELL_SECONDS) do
            @parts&.heartbeat&.stop
            @parts&.acker&.send_once(@runs.to_a.select(&:outcome))
            @runs.count_unseen(@storage)
            @storage.leave(@node)
            @storage.retract(@node)
            send_measures
            @events.call(:exit) if @began
            @log.event(:info, "the worker has ended", node: @node)
            @log.flush
          end
        rescue StandardError => error
          @log.event(:error, "what is in flight stays until the lease runs out: #{error.message}", node: @node)
        end
      end
      private_constant :Manager
    end
  end
end
