# frozen_string_literal: true

require_relative "lifeline"

module Ringspun
  module Jobs
    # A process that runs one worker until it is told to end. With a lifeline it is the child of a {Supervisor}, which extends its
    # lease and passes signals on.
    #
    # @api private
    class WorkerProcess
      # Seconds, after the drain's own or after the second signal, in which the worker cancels what is left, gives it back and
      # leaves.
      GRACE = 12
      # Seconds after those, if the worker has not ended, to give back what is in flight.
      GIVING_BACK_SECONDS = 8

      TITLE_SECONDS = 1

      # @param config [Config]
      # @param log [Log]
      # @param node [String]
      # @param lifeline [IO, nil]
      # @param quiet [Boolean] whether it is to fetch nothing
      # @param reload [#call, nil] called at a HUP, to read again what can change; nil: a HUP does what it ever does
      def initialize(config, log, node: Worker.new_node, lifeline: nil, quiet: false, reload: nil)
        @config = config
        @log = log
        @node = node
        @lifeline = lifeline
        @reload = reload
        @ends = 0 # how many times it was told to end
        @worker = Worker.new(config, storage: Jobs.storage, node:, logger: log.logger, beats: lifeline.nil?,
                                     quarantine: Quarantine.new(log:, processes: config.processes))
        @worker.quiet if quiet
      end

      # @return [Boolean] whether it has ended well
      def run
        entitle
        Inspector.trap("TTIN")
        watch_lifeline if @lifeline
        listen
        @worker.run
        true
      end

      private

      # Ignores Ctrl-C, which reaches all processes of a terminal: the supervisor decides what it means.
      def watch_lifeline
        trap("INT", "IGNORE")
        Lifeline.new(@lifeline, @node, @config, Jobs.storage, @log, hurry: -> { hurry }) do
          @log.event(:error, "the supervisor is gone; the worker drains", node: @node)
          end_worker
        end.watch
      end

      # On a thread, for a job that computes holds up the loop, and with it every strand. A child takes a second TERM for the
      # first: a service manager may send one to all processes, and the supervisor sends its own.
      def listen
        signals = Thread::Queue.new
        [*ends, :TSTP, :USR2, *(:HUP if @reload)].each do |name|
          trap(name) do
            @ends += 1 if ends.include?(name)
            leave_at_once if @ends > 2 && !@lifeline
            signals << name
          end
        end
        Thread.new do
          loop { (name = signals.pop(timeout: TITLE_SECONDS)) ? heed(name) : entitle }
        end
      end

      # Whatever a signal leads to, the next one is obeyed: otherwise only a KILL could end this process.
      def heed(name)
        obey(name)
      rescue Exception => error
        @log.event(:error, "SIG#{name} was not obeyed: #{error.message}", error: error.class.name, at: error.backtrace&.first)
      end

      # What `ps` shows.
      def entitle
        state = "stopping, " if @ends.positive?
        tag = "#{@config.tag} " unless @config.tag == "ringspun"
        Process.setproctitle("ringspun-jobs #{VERSION} #{tag}#{@worker.queues.join(",")[0, 100]} " \
                             "[#{state}#{@worker.busy} of #{@config.concurrency} busy]")
      end

      def ends = @lifeline ? %i[TERM] : %i[TERM INT]

      # Others take over what is in flight.
      def leave_at_once = exit!(false)

      def obey(name)
        case name
        when :TSTP then @worker.quiet
        when :USR2 then @log.reopen
        when :HUP then reload
        else @ends > 1 && !@lifeline ? hurry : stop(name)
        end
      end

      def reload
        @reload.call(@log)
        @worker.look_at_schedule
      end

      def stop(name)
        @log.event(:info, "the worker ends; running jobs have #{Words.duration(@config.timeout)}", signal: name, node: @node)
        end_worker
      end

      # The worker's own limit needs a loop that runs; this one does not.
      def end_worker
        @worker.stop
        exit_after(@config.timeout + GRACE)
      end

      def hurry
        @log.event(:warn, "told twice to end: running jobs are cancelled", node: @node)
        @worker.hurry
        exit_after(GRACE)
      end

      def exit_after(seconds)
        Thread.new do
          sleep(seconds)
          @log.event(:error, "the worker did not end in time", node: @node)
          Thread.new { abandon }.join(GIVING_BACK_SECONDS)
          exit!(false)
        end
      rescue ThreadError => error # no thread can be made, as when there are too many processes
        @log.event(:error, "the worker may take longer to end than it should: #{error.message}", node: @node)
      end

      def abandon
        @worker.abandon
      rescue StandardError => error
        @log.event(:error, "what is in flight stays until the lease runs out: #{error.message}", node: @node)
      end
    end
    private_constant :WorkerProcess
  end
end
