# frozen_string_literal: true

require "securerandom"
require "socket"

module Ringspun
  module Jobs
    # Runs jobs: one strand for each, as many at once as {Config#concurrency} says, all on one machine in one process.
    #
    #   worker = Ringspun::Jobs::Worker.new(Ringspun::Jobs.config, storage: Ringspun::Jobs.storage)
    #   trap("TERM") { worker.stop }
    #   worker.run
    #
    # The storage gets the outcome of a job before the job's place is free again. Until then the job is in flight: if this process
    # dies, another one takes it over.
    class Worker
      # Sends all workers a message to cancel a job, if it runs. They get it within {Config#beat} seconds. May switch strands.
      #
      # @param jid [String]
      # @param storage [Storage]
      # @return [nil]
      # @since 0.1.0
      def self.cancel(jid, storage:)
        message = "CANCEL:#{JSON.generate("jid" => jid)}"
        storage.nodes.each { |node| storage.signal(node["identity"], message) }
        nil
      end

      # Seconds for the `ensure` blocks of cancelled jobs.
      GRACE_SECONDS = 5.0
      # Seconds between tries to end waits at queues.
      ROUSE_SECONDS = 0.01
      # Seconds that a worker may take to leave.
      FAREWELL_SECONDS = 5.0
      private_constant :GRACE_SECONDS, :ROUSE_SECONDS, :FAREWELL_SECONDS

      # @return [String] this worker's name in the storage: host:pid:nonce
      # @since 0.1.0
      attr_reader :node

      # @return [String] a name for a worker in this process
      # @since 0.1.0
      def self.new_node = "#{Socket.gethostname}:#{Process.pid}:#{SecureRandom.hex(6)}"

      # @param config [Config]
      # @param storage [Storage]
      # @param node [String]
      # @param logger [Logger, nil] nil: the config's, or else the standard output
      # @param beats [Boolean] false: somebody else extends this node's lease
      # @param quarantine [Quarantine, nil] which makes processes for jobs from the quarantine; nil: leaves those jobs to others
      # @param random [Random]
      # @since 0.1.0
      def initialize(config, storage:, node: Worker.new_node, logger: nil, beats: true, quarantine: nil, random: Random)
        @config = config
        @storage = storage
        @node = node
        @log = Log.new(logger || config.logger || Log.open)
        @beats = beats
        @runner = quarantine
        @random = random
        @queue_order = QueueOrder.new(config.queues, random: random)
        @retrying = Retrying.new(config, log: @log, random: random)
        @performer = Performer.new(config, storage: storage, retrying: @retrying)
        @runs = Runs.new(@performer, @retrying, @log)
      end

      # Runs jobs until the worker is stopped and its jobs have ended. Inside {Ringspun.run} it uses the same machine.
      #
      # May switch strands.
      #
      # @return [nil]
      # @raise [UsageError] the second time
      # @since 0.1.0
      def run
        raise UsageError, "a worker runs once; make another one" if @begun

        @begun = true
        Ringspun.run { |machine| serve(machine) } unless @stop
        nil
      end

      # Stops the worker: it fetches no more jobs, gives those that run {Config#timeout} seconds to end, cancels the others and
      # puts them back in front of their queues. Then {#run} returns. Never waits; may be called from other threads and from
      # signal handlers.
      #
      # @return [nil]
      # @since 0.1.0
      def stop
        @stop = true
        tell(nil)
      end

      # As {#stop}, but cancels the jobs that run now. Never waits; may be called from other threads and from signal handlers.
      #
      # @return [nil]
      # @since 0.1.0
      def hurry
        @hurry = true
        stop
      end

      # Makes the worker fetch no more jobs; those that run go on. Never waits; may be called from other threads and from signal
      # handlers.
      #
      # @return [nil]
      # @since 0.1.0
      def quiet
        @quiet = true
        tell(nil)
      end

      # @return [Boolean] whether it fetches no more jobs
      # @since 0.1.0
      def quiet? = @quiet == true || @stop == true

      # Cancels a job that runs here: its wait ends, its `ensure` blocks run, and it is not run again. May be called from other
      # threads and from signal handlers.
      #
      # @param jid [String]
      # @return [nil]
      # @since 0.1.0
      def cancel(jid) = tell(-> { running.each { |run| @runs.end_early(run, :cancel) if run.jid == jid } })

      # Serves another queue from now on. May be called from other threads and from signal handlers.
      #
      # @param queue [String]
      # @param weight [Integer] in a strict order it is the last, whatever its weight
      # @return [nil]
      # @raise [ConfigError]
      # @since 0.1.0
      def subscribe(queue, weight = 1)
        raise ConfigError, "#{queue} is served anyway" if queue == Storage::QUARANTINE
        raise ConfigError,
              "the weight must be a positive Integer, got #{weight.inspect}" unless weight.is_a?(Integer) && weight.positive?

        @queue_order.add(queue.to_s, weight)
        tell(-> { @fetcher&.look })
      end

      # Stops serving a queue; jobs that were fetched run. May be called from other threads and from signal handlers.
      #
      # @param queue [String]
      # @return [nil]
      # @since 0.1.0
      def unsubscribe(queue)
        @queue_order.delete(queue.to_s)
        nil
      end

      # @return [Array<String>] the queues that it serves
      # @since 0.1.0
      def queues = @queue_order.names

      # @return [Integer] jobs in flight
      # @since 0.1.0
      def busy = @runs.size

      # @return [Array<Run>] the jobs that run
      # @since 0.1.0
      def running = @runs.running

      # @return [Hash{Symbol => Integer}] how many runs have ended, by the kind of their outcome
      # @since 0.1.0
      def counts = @runs.counts

      # For a loop that no longer runs: gives back all jobs in flight but the one that holds the thread, which others take over
      # when the lease has run out. Called on another thread, before the process ends.
      #
      # @api private
      def abandon
        @isolation&.abandon # or jobs that are given back would still run in children
        connection = @storage.connect
        end_waits_elsewhere(connection)
        @acker&.tell_elsewhere(@runs.abandon(@storage.in_flight(@node, connection: connection)), connection)
      ensure
        connection&.close
      end

      private

      def serve(machine)
        @machine = machine
        @main = machine.running
        @backoff = @performer.backoff = Backoff.new(machine, @log, random: @random)
        machine.scope do |scope|
          @scope = scope
          work_in(scope)
        end
      ensure
        leave
      end

      def work_in(scope)
        lease = Lease.new(@machine, @config.lease, extended_here: @beats)
        @heartbeat = new_heartbeat(lease)
        @backoff.persist(:extend, till: -> { @stop }) { @storage.extend([@node], @config.lease) }
        return if @stop

        set_out(scope, Intake.new(@node, lease, method(:quiet?)) { @machine.schedule(@main) })
        @log.event(:info, "the worker is ready", node: @node, queues: queues.join(","), concurrency: @config.concurrency)
        until @stop
          settle_down if quiet?
          obey(@machine.park)
        end
        drain(scope)
      end

      def new_heartbeat(lease)
        announcement = Announcement.new(@node, @config, @queue_order, @runs)
        Heartbeat.new(self, lease, announcement, @runs, @machine, @storage, @config, @log) do
          tell(-> { [@fetcher, @isolation].compact.each(&:look) })
        end
      end

      def set_out(scope, intake)
        @acker = Acker.new(scope, @storage, @node, @backoff) { |run, taken_away| settled(run, taken_away) }
        @orphans = Orphans.new(@machine, @storage, @node, @backoff) { @runs.fetched + @fetcher.waiting_for_places }
        @runs.set_out(@machine, scope, @acker, @orphans)
        @fetcher = Fetcher.new(intake, @runs, scope, @storage, @config, @queue_order, @backoff, @orphans)
        @deaths = Deaths.new(@config, @log)
        @maintenance = Maintenance.parts(@storage, @config, @backoff, @log, @deaths, random: @random)
        @isolation = new_isolation(scope, intake) if @runner
        [@acker, @fetcher, *@isolation, *@maintenance].each { |part| scope.spin { part.work } }
        scope.spin { @orphans.work { |orphans| found(orphans) } }
        scope.spin { tell_of_risks }
        @heartbeat.start(scope)
      end

      def tell_of_risks
        @backoff.persist(:risks, till: -> { @stop }) { @storage.risks }&.each { |risk| @log.event(:warn, risk) }
      end

      def new_isolation(scope, intake)
        Isolation.new(intake, @runs, @machine, scope, @storage, @config, @log, @backoff, @orphans, @runner,
                      performer: @performer, retrying: @retrying, deaths: @deaths)
      end

      def settle_down
        return if @settling

        @settling = true
        @fetcher.close
        @isolation&.close
        @scope.spin { end_waits }
      end

      def waiting? = @fetcher.waiting? || @isolation&.waiting?

      # Again and again, for a wait that is still on its way to the storage cannot be ended yet.
      def end_waits
        while waiting?
          @backoff.attempt(:rouse) { @storage.rouse(@node) }
          @machine.sleep(ROUSE_SECONDS)
        end
        @log.event(:info, "no more jobs are fetched", node: @node) unless @stop
      end

      # Like {#end_waits}, for a loop that no longer runs: a wait of this worker must not take what is given back.
      def end_waits_elsewhere(connection)
        @storage.rouse(@node, connection: connection)
      rescue StandardError => error
        @log.event(:warn, "what is given back may stay in flight: #{error.message}", node: @node)
      end

      def drain(scope)
        settle_down
        @draining = true
        wait_until(@config.timeout) { @hurry || (@runs.empty? && !waiting?) }
        running.each { |run| @runs.end_early(run, :return) }
        wait_until(GRACE_SECONDS) { @runs.empty? && !waiting? }
        @runs.to_a.each { |run| @log.event(:error, "does not end", jid: run.jid, class: run.class_name, queue: run.queue) }
        [@acker, *@maintenance, @orphans].each(&:close)
        @runs.empty? ? @heartbeat.stop : scope.cancel
      end

      def wait_until(seconds)
        deadline = @machine.now + seconds
        until yield
          left = deadline - @machine.now
          return unless left.positive?

          begin
            obey(@machine.park(left))
          rescue TimeoutError
            return
          end
        end
      end

      # Gives back what this process still has in flight.
      def leave
        Ringspun.shield(deadline: FAREWELL_SECONDS) do
          @heartbeat&.stop
          @acker&.tell_once(@runs.to_a.select(&:outcome))
          @runs.count_dropped(@storage)
          @storage.leave(@node)
          @storage.retract(@node)
          @log.event(:info, "the worker has ended", node: @node)
          @log.flush
        end
      rescue StandardError => error
        @log.event(:error, "what is in flight stays until the lease runs out: #{error.message}", node: @node)
      end

      # Orders from other threads and signal handlers: the main strand carries them out. Before {#run} there is none.
      def tell(order)
        @main ? @machine.schedule(@main, order) : order&.call
        nil
      rescue ClosedError # the machine has ended meanwhile
        nil
      end

      def obey(order) = order&.call

      # Orphans from the quarantine go back: its places may all be taken.
      def found(orphans)
        @log.event(:warn, "#{orphans.size} jobs were in flight here without an answer that says so", node: @node)
        quarantined, others = orphans.partition { |fetched| fetched.queue == Storage::QUARANTINE }
        quarantined.each { |fetched| @runs.give_back(fetched) }
        @fetcher.found(others)
      end

      def settled(run, taken_away)
        @runs.settle(run, taken_away)
        @fetcher.freed(run.queue)
        @machine.schedule(@main) if @draining
      end
    end

    class << self
      # Cancels a job, wherever it runs: its wait ends, its `ensure` blocks run, and it is not run again. Workers get the message
      # within {Config#beat} seconds. May switch strands.
      #
      # @param jid [String]
      # @return [nil]
      # @raise [UnavailableError]
      # @since 0.1.0
      def cancel(jid) = Worker.cancel(jid, storage: storage)
    end
  end
end

require_relative "worker/acker"
require_relative "worker/announcement"
require_relative "worker/isolation"
require_relative "worker/heartbeat"
require_relative "worker/intake"
require_relative "worker/lease"
require_relative "worker/maintenance"
require_relative "worker/deaths"
require_relative "worker/fetcher"
require_relative "worker/queue_order"
require_relative "worker/backoff"
require_relative "worker/outcome"
require_relative "worker/performer"
require_relative "worker/retrying"
require_relative "worker/run"
require_relative "worker/runs"
require_relative "worker/orphans"
