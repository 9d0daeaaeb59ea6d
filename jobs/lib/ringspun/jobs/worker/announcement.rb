# frozen_string_literal: true

require "socket"

module Ringspun
  module Jobs
    class Worker
      # What dashboards show of a worker, see {Storage#announce}.
      #
      # @api private
      class Announcement
        # @param queue_order [QueueOrder]
        # @param runs [Runs]
        def initialize(node, config, queue_order, runs)
          @node = node
          @config = config
          @queue_order = queue_order
          @runs = runs
          @started_at = Process.clock_gettime(Process::CLOCK_REALTIME)
        end

        # @param quiet [Boolean]
        # @return [Hash{String => Object}]
        def info(quiet:)
          { "hostname" => Socket.gethostname, "pid" => Process.pid, "tag" => "ringspun", "identity" => @node,
            "started_at" => @started_at, "concurrency" => @config.concurrency, "queues" => @queue_order.names,
            "weights" => [@queue_order.weights], "capsules" => { "default" => { "weights" => @queue_order.weights } },
            "labels" => [], "busy" => @runs.size, "version" => VERSION, "quiet" => quiet, "embedded" => false }
        end

        # @return [Array<Array>] the jobs that run
        def work = @runs.running.map { |run| [run.number.to_s(36), run.queue, run.shown, run.began_at] }
      end
      private_constant :Announcement
    end
  end
end
