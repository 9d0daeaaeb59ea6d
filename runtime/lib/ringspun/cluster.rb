# frozen_string_literal: true

require "etc"
require_relative "cluster/log"
require_relative "cluster/settings"
require_relative "cluster/sockets"
require_relative "cluster/supervisor"
require_relative "cluster/worker"
require_relative "cluster/worker_process"

module Ringspun
  # A cluster has not ended as it should: workers had to be killed, failed at the end, or never came up.
  class ClusterError < Error
  end

  # A program on all processors: workers, each a process with a machine of its own, that share listening sockets.
  #
  #   Ringspun::Cluster.run(workers: :cores, listen: ["0.0.0.0", 8080]) do |worker|
  #     worker.serve { |stream| stream.each_line { |line| stream.write_line(line) } }
  #   end
  #
  # The process that calls {run} is their parent. It opens the sockets, forks the workers, replaces those that die or hang, and
  # has no machine of its own. What its signals mean:
  #
  # - TERM, INT: every worker drains, and {run} returns. A second one kills at once what is left.
  # - HUP: a new worker comes up for each, one after the other, and the old one drains.
  #
  # A worker that gets a TERM itself drains and is replaced. INT and HUP are left to the parent, for Ctrl-C and a hang-up reach
  # all of them. When the parent has been killed, its workers drain.
  module Cluster
    class << self
      # Runs the block in each worker, in a strand of its machine, as {Ringspun.run} does, until the cluster is told to end. What
      # the block raises ends that worker, and one that has ended is replaced, whatever the reason: at once when it has lived for
      # `settle` seconds, else after a pause that doubles each time.
      #
      # Only on the main thread, and outside of {Ringspun.run}. A worker runs none of the program's `at_exit` blocks.
      #
      # @param workers [Integer, Symbol] how many; :cores: as many as there are processors
      # @param listen [Array(String, Integer), String, Hash, nil] a host and a port, or the path of a Unix socket, or several of
      #   these by their names, see {Worker#serve}
      # @param backlog [Integer] connections that the kernel keeps for each socket until a worker accepts them
      # @param mode [Integer, nil] permissions of the Unix sockets' files; nil: as the umask says
      # @param drain [Numeric, nil] seconds that a worker has to end what it has begun; nil: as long as it takes
      # @param grace [Numeric] seconds until one is killed that has been cancelled after `drain`
      # @param boot [Numeric, nil] seconds in which a worker must be ready; one that is not is killed and replaced
      # @param heartbeat [Numeric, nil] seconds without a turn of its loop after which a worker hangs: it says where, if it still
      #   can, and is killed and replaced
      # @param settle [Numeric] seconds after which the death of a worker is no failed start
      # @param backoff [Range] seconds: the first pause before a failed start is tried again, and the longest
      # @param before_fork [#call, nil] called in the parent with the index of the worker that is about to be forked
      # @param after_fork [#call, nil] called in each worker with its {Worker}, before the block
      # @param on_worker_end [#call, nil] called in the parent with index, pid and Process::Status (nil where somebody else
      #   has waited for the process)
      # @param on_reload [#call, nil] called in the parent after a HUP; when it raises, nothing is reloaded
      # @param logger [IO, Logger, nil] what is told of workers, a line each; nil: nobody
      # @yieldparam worker [Worker]
      # @return [nil] when all workers have drained
      # @raise [ClusterError] when some had to be killed or failed at the end, or never came up
      # @raise [UsageError, SystemCallError, SocketError]
      # @since 0.1.0
      def run(workers: :cores, listen: nil, backlog: 1024, mode: nil, drain: 30, grace: 5, boot: 60, heartbeat: 60, settle: 10,
              backoff: 0.1..30, before_fork: nil, after_fork: nil, on_worker_end: nil, on_reload: nil, logger: $stderr, &block)
        raise UsageError, "Cluster.run needs a block" unless block

        settings = Settings.new(workers:, drain:, grace:, boot:, heartbeat:, settle:, backoff:,
                                before_fork:, after_fork:, on_worker_end:, on_reload:, log: Log.new(logger))
        check_place
        alone { Sockets.open(listen, backlog, mode) { |sockets| Supervisor.new(settings, sockets, block).run } }
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

    private_constant :Log, :Settings, :Slot, :Sockets, :Supervisor, :Traps, :WorkerProcess
  end
end
