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
        Process.setproctitle("ringspun-jobs #{VERSION} #{@config.queues.to_a.map { |queue, *| queue }.join(",")}"[0, 200])
        Inspector.trap("TTIN")
        watch_leash if @leash
        Ringspun.run do |machine|
          listening = machine.spin { listen }
          @worker.run
          machine.terminate(listening)
        end
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

      # The second one that says so ends the process at once: what is in flight others take over.
      def listen
        ends = @leash ? %i[TERM] : %i[TERM INT]
        Ringspun.signals(*ends, :TSTP, :USR2) do |name|
          obey(name)
          next unless ends.include?(name)

          ends.each { |one| trap(one) { exit!(false) } }
          break
        end
      end

      def obey(name)
        case name
        when :TSTP
          @log.event(:info, "no more jobs are fetched", signal: name, node: @node)
          @worker.quiet
        when :USR2 then @log.reopen
        else
          @log.event(:info, "the worker ends; running jobs have #{@config.timeout} s", signal: name, node: @node)
          end_worker
        end
      end

      # A job that computes holds up the loop, which so cannot see to it that this comes to an end.
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
