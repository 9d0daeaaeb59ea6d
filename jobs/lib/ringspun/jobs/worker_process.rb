# frozen_string_literal: true

require_relative "leash"

module Ringspun
  module Jobs
    # A process that runs one worker until it is told to end. With a leash it is the child of a {Supervisor}, which beats for it
    # and tells it what signals there are.
    #
    # @api private
    class WorkerProcess
      # Seconds after the drain's own in which the worker cancels what is left, gives it back and says goodbye.
      GRACE = 12

      TITLE_SECONDS = 1

      # @param config [Config]
      # @param log [Log]
      # @param node [String]
      # @param leash [IO, nil]
      # @param quiet [Boolean] fetch nothing
      def initialize(config, log, node: Worker.new_node, leash: nil, quiet: false)
        @config = config
        @log = log
        @node = node
        @leash = leash
        @worker = Worker.new(config, storage: Jobs.storage, node:, logger: log.logger, beats: leash.nil?,
                                     quarantine: Quarantine.new(log:))
        @worker.quiet if quiet
      end

      # @return [Boolean] whether it has ended as it should
      def run
        entitle
        Inspector.trap("TTIN")
        watch_leash if @leash
        listen
        @worker.run
        true
      end

      private

      # Ctrl-C reaches all processes of a terminal; the supervisor says what it means.
      def watch_leash
        trap("INT", "IGNORE")
        Leash.new(@leash, @node, @config, Jobs.storage, @log) do
          @log.event(:error, "the supervisor is gone; the worker drains", node: @node)
          end_worker
        end.watch
      end

      # On a thread: a job that computes holds up the loop, and with it every strand.
      def listen
        signals = Thread::Queue.new
        [*ends, :TSTP, :USR2].each do |name|
          trap(name) do
            leave_at_once if ends.include?(name) && @ending && !@leash
            @ending ||= ends.include?(name)
            signals << name
          end
        end
        Thread.new do
          loop { (name = signals.pop(timeout: TITLE_SECONDS)) ? obey(name) : entitle }
        end
      end

      # What `ps` shows.
      def entitle
        state = "stopping, " if @ending
        Process.setproctitle("ringspun-jobs #{VERSION} #{@worker.queues.join(",")[0, 100]} " \
                             "[#{state}#{@worker.busy} of #{@config.concurrency} busy]")
      end

      def ends = @leash ? %i[TERM] : %i[TERM INT]

      # What is in flight others take over. A supervisor has other means for that; and where a signal reaches all processes at
      # once, as a service manager's does, its own comes on top.
      def leave_at_once = exit!(false)

      def obey(name)
        case name
        when :TSTP then @worker.quiet
        when :USR2 then @log.reopen
        else
          @log.event(:info, "the worker ends; running jobs have #{@config.timeout} s", signal: name, node: @node)
          end_worker
        end
      end

      # The worker's own limit is the loop's, too.
      def end_worker
        @worker.stop
        Thread.new do
          sleep(@config.timeout + GRACE)
          @log.event(:error, "the worker did not end in time", node: @node)
          exit!(false)
        end
      end
    end
    private_constant :WorkerProcess
  end
end
