# frozen_string_literal: true

require "etc"
require "socket"

module Ringspun
  module Jobs
    class Worker
      # Announces what a worker does to the storage, for dashboards, see {Storage#announce}: every few seconds, and at once when
      # the worker has become quiet, for whoever has asked for that looks at the dashboard.
      #
      # @api private
      class Announcement
        # Seconds between two announcements, while nobody looks. Dashboards show one for {Storage::SHOWN_SECONDS}.
        EVERY_SECONDS = 5
        # Seconds for which a worker that was asked announces what its jobs wait for.
        WAITS_SECONDS = 30
        # Seconds between announcements while somebody looks, and wants to see them change.
        LOOKED_AT_SECONDS = 1
        # The most jobs, those that run longest, that say what they wait for while somebody looks; and the fewer that say so at
        # all times, for somebody who looks for the first time: each dashboard reads it of all processes.
        WAITS_MAX = 500
        WAITS_UNASKED_MAX = 100
        # The most kinds of waits told of the strands that a job waits for.
        BELOW_MAX = 3

        # @param control [Control]
        # @param queue_order [QueueOrder]
        # @param runs [Runs] which count the jobs that were dropped, as the storage does not
        # @param lease [Lease] by whose clock time is measured
        # @param config [Config]
        def initialize(node, storage, control, queue_order, runs, lease, config)
          @node = node
          @storage = storage
          @control = control
          @queue_order = queue_order
          @runs = runs
          @lease = lease
          @config = config
          @started_at = Process.clock_gettime(Process::CLOCK_REALTIME)
        end

        # From the next announcement on, for some seconds, says what each job waits for: somebody looks.
        def tell_waits
          @shown_at = nil unless tells_waits?
          @waits_until = @lease.now + WAITS_SECONDS
        end

        # @return [Boolean]
        def due? = @shown_at.nil? || @shown_quiet != @control.quiet? || @lease.now - @shown_at >= every_seconds

        # @return [Numeric] seconds between two of them
        def every_seconds = tells_waits? ? LOOKED_AT_SECONDS : EVERY_SECONDS

        # May switch strands.
        #
        # @param round_trip [Float] seconds that the storage has last taken for an answer
        # @param connection [Object, nil] of the storage
        def show(round_trip, connection)
          quiet = @control.quiet?
          info = info(quiet).merge("rtt_us" => (round_trip * 1_000_000).round, "rss" => kilobytes)
          @storage.announce(@node, info, work, connection: connection)
          @runs.count_unseen(@storage, connection)
          send_measures(connection)
          @shown_at = @lease.now
          @shown_quiet = quiet
        end

        private

        # The loop ends the minute, also where no job ends any more.
        def send_measures(connection)
          measures = @runs.measures or return
          measures.send_ended(@storage, connection)
          @control.order { measures.turn }
        end

        def info(quiet)
          { "hostname" => Socket.gethostname, "pid" => Process.pid, "tag" => @config.tag, "identity" => @node,
            "started_at" => @started_at, "concurrency" => @config.concurrency, "queues" => @queue_order.names,
            "weights" => [@queue_order.weights], "capsules" => { "default" => { "weights" => @queue_order.weights } },
            "patterns" => @queue_order.patterns, "labels" => @config.labels, "busy" => @runs.size, "version" => VERSION,
            "quiet" => quiet, "embedded" => false, "ringspun" => VERSION,
            "waits" => waits(tells_waits? ? WAITS_MAX : WAITS_UNASKED_MAX) }
        end

        def tells_waits? = @waits_until && @lease.now < @waits_until

        # As {Inspector#tree} has it. What the children of a job's strand wait for is told where the job waits for them.
        def waits(most)
          runs = @runs.running.first(most).select { |run| run.strand&.alive? }
          return {} if runs.empty?

          below = runs.first.strand.machine.strands.group_by(&:owner).compare_by_identity
          runs.to_h { |run| [slot(run), run.quarantined? ? "its process" : doing(run.strand, below)] }
        end

        def doing(strand, below)
          wait = strand.waits_for or return strand.state == :new ? "its turn" : strand.state.to_s
          children = (below[strand] || []).filter_map(&:waits_for).tally.max_by(BELOW_MAX, &:last)
          return wait if children.empty?

          "#{wait} (#{children.map { |text, times| times == 1 ? text : "#{times} × #{text}" }.join(", ")})"
        end

        def slot(run) = run.number.to_s(36)

        # The jobs that run.
        def work = @runs.running.map { |run| [slot(run), run.queue, run.shown, run.began_at] }

        # The resident memory: https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html
        def kilobytes = File.read("/proc/self/statm").split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE) / 1024
      end
      private_constant :Announcement
    end
  end
end
