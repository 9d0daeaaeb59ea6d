# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Makes the parts of a worker that runs, gives each the others that it needs, and spins a strand for each.
      #
      # @api private
      class Parts
        # @return [Backoff]
        attr_reader :backoff
        # @return [Lease]
        attr_reader :lease
        # @return [Intake]
        attr_reader :intake
        # @return [Acker]
        attr_reader :acker
        # @return [Processor]
        attr_reader :processor
        # @return [Fetcher]
        attr_reader :fetcher
        # @return [Heartbeat]
        attr_reader :heartbeat
        # @return [Ticker]
        attr_reader :ticker

        # @param setup [Setup]
        # @param scope [Scope] which owns the strands
        def initialize(setup, machine, scope)
          @setup = setup
          @runs = setup.runs
          @control = setup.control
          @machine = machine
          @scope = scope
          make_common
          make_what_runs_jobs
          @isolation = new_isolation if setup.quarantine
          @maintenance = new_maintenance
          @heartbeat = new_heartbeat
        end

        # @return [nil]
        def start
          [@acker, @fetcher, *@isolation, *@maintenance].each { |part| @scope.spin { part.work } }
          @scope.spin { @orphans.work { |orphans| found(orphans) } }
          @heartbeat.start(@machine, @scope)
          nil
        end

        # More jobs may be fetched, or others. Never waits.
        #
        # @return [nil]
        def look = [@fetcher, *@isolation].each(&:look)

        # Called when the intake is closed.
        def close_intake = [@fetcher, *@isolation].each(&:close)

        # Ends the parts that work until they are closed. The acker ends when the storage has all outcomes.
        def close = [@acker, *@maintenance, @orphans].each(&:close)

        # Ends all children at once. May be called from any thread.
        def abandon = @isolation&.abandon

        private

        def make_common
          @setup => { node:, config:, storage:, log:, random: }
          @backoff = Backoff.new(@machine, log, random: random)
          @lease = Lease.new(node, storage, config.lease, @machine, log, extended_here: @setup.extends_lease) do
            @control.order { look }
          end
          @orphans = Orphans.new(@machine, storage, node, @backoff) { @runs.fetched + @fetcher.waiting_for_places }
          @intake = Intake.new(node, storage, @lease, @control, @backoff, @orphans)
          @deaths = Deaths.new(config, log)
        end

        def make_what_runs_jobs
          @setup => { node:, config:, storage:, log:, random: }
          @retrying = Retrying.new(config, log: log, random: random)
          keeps_done = config.keep_done.positive?
          @performer = Performer.new(config, storage, @retrying, @backoff, OwnAck.new(storage, node, keeps_done:))
          @acker = Acker.new(@scope, storage, node, @backoff) { |run, taken_away| settled(run, taken_away) }
          @processor = Processor.new(@machine, @scope, @runs, @performer, @retrying, @acker, log, keeps_done:)
          @fetcher = Fetcher.new(@intake, @processor, @runs, @scope, config, @setup.queue_order)
        end

        def new_isolation
          @setup => { node:, config:, log:, quarantine: }
          Isolation.new(Isolation::SuspectIntake.new(@intake, @processor, config.concurrency),
                        Isolation::Places.new(quarantine, @machine, log),
                        Isolation::Children.new(quarantine, @performer, @backoff, @control, log),
                        Isolation::Verdict.new(node, config, @retrying, @deaths), @scope, log)
        end

        def new_maintenance
          @setup => { node:, config:, storage:, log:, queue_order:, random: }
          common = [storage, config, @backoff, log]
          @ticker = Ticker.new(*common, random:, source: Ticker.source(config))
          [@ticker, Poller.new(*common, random:, node:), Pruner.new(*common, random:), Unserved.new(*common, random:),
           Recovery.new(*common, random:, deaths: @deaths),
           *(ExqRecovery.new(*common, random:, deaths: @deaths) if config.recover_exq),
           *(Beats.new(*common, random:) if Beats.wanted?(config)),
           Discovery.new(*common, queue_order:, random:) { look }]
        end

        def new_heartbeat
          @setup => { node:, config:, storage:, log:, queue_order: }
          announcement = Announcement.new(node, storage, @control, queue_order, @runs, @lease, config)
          losses = Losses.new(node, storage, @runs, @processor, @control, @scope, @backoff)
          Heartbeat.new(config.beat, storage, @lease, Messages.new(node, storage, @control, @processor, announcement),
                        announcement, losses, log)
        end

        # Orphans from the quarantine go back: its places may all be taken.
        def found(orphans)
          @setup.log.event(:warn, "#{Words.count(orphans.size, "job")} #{Words.noun(orphans.size, "was", "were")} in flight " \
                                  "here without an answer that says so", node: @setup.node)
          quarantined, others = orphans.partition { |fetched| fetched.queue == Storage::QUARANTINE }
          quarantined.each { |fetched| @processor.give_back(fetched) }
          @fetcher.found(others)
        end

        # The storage has the outcome of a run, so its place is free.
        def settled(run, taken_away)
          @runs.settle(run, taken_away || run.lost?)
          @fetcher.freed(run.queue)
          @control.wake if @control.stopped?
        end
      end
      private_constant :Parts
    end
  end
end
