# frozen_string_literal: true

require "etc"
require_relative "cluster/log"
require_relative "cluster/settings"
require_relative "cluster/sockets"
require_relative "cluster/supervisor"
require_relative "cluster/worker"
require_relative "cluster/alone"
require_relative "cluster/worker_process"

module Ringspun
  # Prefork server: workers, each a process with a machine of its own, accept from shared listening sockets.
  #
  #   Ringspun::Cluster.run(workers: :cores, listen: ["0.0.0.0", 8080]) do |worker|
  #     worker.serve { |stream| stream.each_line { |line| stream.write_line(line) } }
  #   end
  #
  # The process that calls {run} is their parent. It opens the sockets, forks the workers, and replaces workers that die or hang.
  # It has no machine of its own. Its signals:
  #
  # - TERM, INT: every worker drains, and {run} returns. A second one kills the workers that are left.
  # - HUP: the workers are replaced, one after the other. The old worker drains when the new one is ready. When it comes because
  #   the terminal was closed, it is as TERM.
  #
  # A worker that gets a TERM itself drains and is replaced. Workers ignore INT and HUP: the terminal sends these to the whole
  # process group, and the parent acts on them. When the parent dies, its workers drain.
  module Cluster
    class << self
      # Runs the block in each worker, in a strand of its machine, as {Ringspun.run} does, until a signal ends the cluster. An
      # exception of the block ends that worker. Every worker that ends is replaced: at once if it was ready and has lived for
      # `settle` seconds, else after a pause that doubles each time.
      #
      # Only on the main thread, and outside of {Ringspun.run}. A worker that ends runs the `at_exit` blocks that were registered
      # in it, and removes the Tempfiles that it has made; blocks that the parent has registered before are the parent's.
      #
      # @param workers [Integer, Symbol] number of workers; :cores: one for each processor; 0: nothing is forked, and the block
      #   runs in this process, without a parent: it drains at HUP as well, its errors are raised from here, and `grace`, `boot`,
      #   `heartbeat`, `settle` and `backoff` mean nothing
      # @param listen [Array(String, Integer), String, Socket, Hash, nil] a host and a port, the path of a Unix socket, a socket
      #   that listens already, or a Hash of names and these, see {Worker#serve}
      # @param backlog [Integer] connections that the kernel keeps for each socket until a worker accepts them
      # @param mode [Integer, nil] permissions of the Unix sockets' files; nil: as the umask says
      # @param drain [Numeric, nil] seconds a worker has to finish its work after it was asked to end; then the rest is cancelled;
      #   nil: no limit
      # @param grace [Numeric] seconds after `drain` until a worker that still runs is killed
      # @param boot [Numeric, nil] seconds until a worker must be ready, or it is killed and replaced; nil: no limit
      # @param heartbeat [Numeric, nil] seconds without a tick of its machine after which a worker counts as hung: it writes its
      #   backtrace, if it can, and is killed and replaced; nil: no limit
      # @param settle [Numeric] seconds: a worker that ends earlier counts as a failed start
      # @param backoff [Range] seconds: the first and the longest pause before a failed start is tried again
      # @param before_fork [#call, nil] called in the parent before each fork, with the worker's index
      # @param after_fork [#call, nil] called in each worker with its {Worker}, before the block
      # @param on_worker_end [#call, nil] called in the parent with index, pid and Process::Status (nil if other code in the
      #   parent has waited for the process)
      # @param on_reload [#call, nil] called in the parent after a HUP; if it raises, nothing is reloaded
      # @param logger [IO, Logger, nil] gets a line for each event; nil: no log
      # @yieldparam worker [Worker]
      # @return [nil] when all workers have drained
      # @raise [ClusterError] when workers had to be killed, failed while they ended, had to cut what was left after `drain`, or
      #   never became ready; without workers: when the end of `drain` or a second signal has cut what was left
      # @raise [UsageError, SystemCallError, SocketError]
      # @since 0.1.0
      def run(workers: :cores, listen: nil, backlog: 1024, mode: nil, drain: 30, grace: 5, boot: 60, heartbeat: 60, settle: 10,
              backoff: 0.1..30, before_fork: nil, after_fork: nil, on_worker_end: nil, on_reload: nil, logger: $stderr, &block)
        raise UsageError, "Cluster.run needs a block" unless block

        settings = Settings.new(workers:, mode:, drain:, grace:, boot:, heartbeat:, settle:, backoff:,
                                before_fork:, after_fork:, on_worker_end:, on_reload:, log: Log.new(logger))
        check_place
        alone do
          Sockets.open(listen, backlog, mode) do |sockets|
            settings.workers.zero? ? Alone.new(settings, sockets).run(&block) : Supervisor.new(settings, sockets, block).run
          end
        end
      end

      private

      def check_place
        unless Ractor.current == Ractor.main && Thread.current == Thread.main
          raise UsageError, "Cluster.run is for the main thread, which gets the signals; call it there"
        end
        return unless Thread.current.thread_variable_get(:ringspun_run) || Fiber.current_scheduler

        raise UsageError, "Cluster.run forks, and each worker runs a machine of its own: call it outside of Ringspun.run"
      end

      def alone
        if @running
          raise UsageError, "there is a cluster already; a worker cannot be the parent of another, give that one more workers"
        end

        begin
          @running = true
          yield
        ensure
          @running = false
        end
      end
    end

    private_constant :Alone, :ChildExit, :Log, :Settings, :Slot, :Sockets, :Supervisor, :Terminal, :Traps, :WorkerProcess
  end
end
