# frozen_string_literal: true

require "etc"
require "json"

module Ringspun
  module Jobs
    class Worker
      # Extends this worker's lease, announces what it does, and reads its messages. It has a thread and a connection of its own,
      # so that a job that computes for a minute does not cost the lease. On a simulated machine, which has no threads, it has a
      # strand.
      #
      # @api private
      class Heartbeat
        ANNOUNCE_SECONDS = 5

        # @param worker [Worker] which carries out messages
        # @param lease [Lease]
        # @param announcement [Announcement]
        # @param runs [Runs] which count dropped jobs, as the storage does not
        # @yield when the lease is extended after it had run out
        def initialize(worker, lease, announcement, runs, machine, storage, config, log, &leased_again)
          @worker = worker
          @lease = lease
          @announcement = announcement
          @runs = runs
          @machine = machine
          @storage = storage
          @config = config
          @log = log
          @leased_again = leased_again
          @announced_at = @told = nil
        end

        # @param scope [Scope] which owns the strand, if there is one
        def start(scope)
          @stop = Channel.new(1)
          @runner = @machine.backend.name == :sim ? scope.spin { work(nil) } : Thread.new { work_on_thread }
        end

        # Returns when the thread has ended. May switch strands.
        def stop
          @stop&.close
          @runner&.join
        rescue TerminatedError # the strand was terminated with the whole worker
          nil
        end

        private

        def work_on_thread
          Thread.current.name = "ringspun-jobs beat"
          Thread.current.report_on_exception = false
          connection = @storage.connect
          work(connection)
        ensure
          connection&.close
        end

        def work(connection)
          until @stop.closed?
            beat(connection)
            @stop.pop(timeout: @config.beat)
          end
        end

        def beat(connection)
          extend_lease(connection) if @lease.extended_here?
          asked = @lease.now
          messages = @storage.signals(@worker.node, connection: connection)
          @round_trip = @lease.now - asked
          messages.each { |message| obey(message) }
          announce(connection) if changed? || @lease.now - @announced_at >= ANNOUNCE_SECONDS
          @told = nil
        rescue StandardError => error
          fails(error)
        end

        # Logs it once a minute, and when the lease has run out.
        def fails(error)
          leased = @lease.lasts?
          return if @told && @told.last == leased && @lease.now - @told.first < Backoff::AGAIN_SECONDS

          @told = [@lease.now, leased]
          @log.event(:warn, "no heartbeat#{", and until there is one no jobs are fetched" unless leased}: #{error.message}")
        end

        def extend_lease(connection)
          asked_at = @lease.now
          lasted, = @storage.extend([@worker.node], @config.lease, connection: connection)
          @leased_again.call unless @lease.extended(asked_at)
          return if lasted

          @log.event(:warn, "this worker's lease had run out; others may run what it had in flight", node: @worker.node)
        end

        # Announces a change of `quiet` at once, for whoever has asked for it looks at the dashboard.
        def changed? = @announced_at.nil? || @announced_quiet != @worker.quiet?

        def announce(connection)
          quiet = @worker.quiet?
          info = @announcement.info(quiet:).merge("rtt_us" => (@round_trip * 1_000_000).round, "rss" => kilobytes)
          @storage.announce(@worker.node, info, @announcement.work, connection: connection)
          @runs.count_dropped(@storage, connection)
          @announced_at = @lease.now
          @announced_quiet = quiet
        end

        # The resident memory: https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html
        def kilobytes = File.read("/proc/self/statm").split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE) / 1024

        # Messages are names of signals, as Sidekiq's dashboard sends them, and cancellations. Others are ignored. See
        # Process#signal in https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/api.rb
        def obey(message)
          case message
          when "TERM" then @worker.stop
          when "TSTP" then @worker.quiet
          when /\ACANCEL:/ then cancel(message.delete_prefix("CANCEL:"))
          end
        end

        def cancel(text)
          order = JSON.parse(text)
          @worker.cancel(order["jid"]) if order.is_a?(Hash) && order["jid"].is_a?(String)
        rescue JSON::ParserError
          nil
        end
      end
      private_constant :Heartbeat
    end
  end
end
