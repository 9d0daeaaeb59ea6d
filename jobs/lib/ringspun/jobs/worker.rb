# frozen_string_literal: true

require "securerandom"
require "socket"
require_relative "worker/announcement"

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
        message = Messages.cancellation(jid)
        storage.nodes.each { |node| storage.signal(node["identity"], message) }
        nil
      end

      @running = [].freeze
      @registering = Thread::Mutex.new

      class << self
        # Whether a worker of this process has been told to fetch no more jobs. A long job may ask, and end at a good place. Never
        # waits; may be called from other threads and from signal handlers.
        #
        # @return [Boolean]
        # @since 0.1.0
        def stopping? = @running.any?(&:quiet?)

        private

        def registered(worker)
          @registering.synchronize { @running = [*@running, worker].freeze }
          yield
        ensure
          @registering.synchronize { @running = (@running - [worker]).freeze }
        end
      end

      # Seconds for which a worker that was asked announces what its jobs wait for.
      WAITS_SECONDS = Announcement::WAITS_SECONDS

      # Asks a worker to announce each second, for {WAITS_SECONDS}, what its jobs wait for: "waits" in {Storage#nodes}, by the
      # slots of {Storage#work}. Of those that run longest it does so unasked, less often. May switch strands.
      #
      # @param node [String] with "ringspun" in {Storage#nodes}
      # @param storage [Storage]
      # @return [nil]
      # @since 0.1.0
      def self.ask_waits(node, storage:) = storage.signal(node, Messages::WAITS)

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
      # @raise [ConfigError] see {Config#check}
      # @since 0.1.0
      def initialize(config, storage:, node: Worker.new_node, logger: nil, beats: true, quarantine: nil, random: Random)
        config.check
        raise ConfigError, "a worker needs a storage, such as Ringspun::Jobs.storage, got nil" if storage.nil?
        raise ConfigError, "logger must be a Logger, got #{logger.inspect}" unless logger.nil? || logger.respond_to?(:info)

        @node = node
        @control = Control.new
        @queue_order = QueueOrder.new(config.queues, random: random)
        log = Log.new(logger || config.logger || Log.open)
        @runs = Runs.new(log, config.metrics ? Measures.new : nil)
        @manager = Manager.new(Setup.new(node:, config:, storage:, log:, extends_lease: beats, quarantine:, random:,
                                         queue_order: @queue_order, runs: @runs, control: @control))
      end

      # Runs jobs until the worker is stopped and its jobs have ended. Inside {Ringspun.run} it uses the same machine. Strands
      # that jobs have spun on the machine, and not in a scope of their own, have the rest of {Config#timeout} to end as well.
      #
      # May switch strands.
      #
      # @return [nil]
      # @raise [UsageError] the second time
      # @since 0.1.0
      def run
        raise UsageError, "a worker runs once; make another one" if @begun

        @begun = true
        Worker.__send__(:registered, self) { Ringspun.run { |machine| run_to_the_end(machine) } } unless @control.stopped?
        nil
      end

      # Stops the worker: it fetches no more jobs, gives those that run {Config#timeout} seconds to end, cancels the others and
      # puts them back in front of their queues. Then {#run} returns. Never waits; may be called from other threads and from
      # signal handlers.
      #
      # @return [nil]
      # @since 0.1.0
      def stop = @control.stop

      # As {#stop}, but cancels the jobs that run now. Never waits; may be called from other threads and from signal handlers.
      #
      # @return [nil]
      # @since 0.1.0
      def hurry = @control.hurry

      # Makes the worker fetch no more jobs; those that run go on. Never waits; may be called from other threads and from signal
      # handlers.
      #
      # @return [nil]
      # @since 0.1.0
      def quiet = @control.quiet

      # @return [Boolean] whether it fetches no more jobs
      # @since 0.1.0
      def quiet? = @control.quiet?

      # Cancels a job that runs here: its wait ends, its `ensure` blocks run, and it is not run again. May be called from other
      # threads and from signal handlers.
      #
      # @param jid [String]
      # @return [nil]
      # @since 0.1.0
      def cancel(jid)
        @manager.mark_cancelled(jid)
        @control.order { @manager.cancel(jid) }
      end

      # Serves another queue from now on. May be called from other threads and from signal handlers.
      #
      # @param queue [String]
      # @param weight [Integer] in a strict order it is the last, whatever its weight
      # @return [nil]
      # @raise [ConfigError]
      # @since 0.1.0
      def subscribe(queue, weight = 1)
        raise ConfigError, "#{queue.inspect} is no name of a queue that programs may have" unless Wire.queue?(queue.to_s)
        raise ConfigError,
              "the weight must be a positive Integer, got #{weight.inspect}" unless weight.is_a?(Integer) && weight.positive?

        @queue_order.add(queue.to_s, weight)
        @control.order { @manager.look }
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

      # Takes the entries that {Config#cron} and {Jobs.cron} have by now, and pushes what is due. Without that it does so within
      # some seconds. Never waits; may be called from other threads and from signal handlers.
      #
      # @return [nil]
      # @since 0.1.0
      def look_at_schedule = @control.order { @manager.look_at_schedule }

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

      # (see Manager#abandon)
      #
      # @api private
      def abandon = @manager.abandon

      private

      # What jobs have spun belongs to a run of its own, which would wait for it without an end.
      def run_to_the_end(machine)
        machine.scope do |scope|
          Ringspun.run do
            @manager.run(machine)
            scope.spin do
              @manager.wait_for_what_is_left
              scope.cancel
            end
          end
          scope.cancel
        end
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
require_relative "worker/backoff"
require_relative "worker/beats"
require_relative "worker/control"
require_relative "worker/deaths"
require_relative "worker/discovery"
require_relative "worker/error_text"
require_relative "worker/events"
require_relative "worker/fetcher"
require_relative "worker/heartbeat"
require_relative "worker/intake"
require_relative "worker/isolation"
require_relative "worker/lease"
require_relative "worker/losses"
require_relative "worker/manager"
require_relative "worker/measures"
require_relative "worker/messages"
require_relative "worker/orphans"
require_relative "worker/outcome"
require_relative "worker/own_ack"
require_relative "worker/parts"
require_relative "worker/performer"
require_relative "worker/poller"
require_relative "worker/processor"
require_relative "worker/pruner"
require_relative "worker/queue_order"
require_relative "worker/recovery"
require_relative "worker/retrying"
require_relative "worker/run"
require_relative "worker/runs"
require_relative "worker/setup"
require_relative "worker/ticker"
require_relative "worker/unserved"
