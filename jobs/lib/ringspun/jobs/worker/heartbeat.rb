# frozen_string_literal: true

require "etc"
require "json"

module Ringspun
  module Jobs
    class Worker
      # Says that this worker lives, shows what it does, and hears what it is told. On a thread and a connection of its own, so
      # that a job that computes for a minute costs nobody's lease; on a simulated machine, which has no threads, in a strand.
      #
      # @api private
      class Heartbeat
        ANNOUNCE_SECONDS = 5

        # @param worker [Worker] which obeys messages
        # @param lease [Lease]
        # @param announcement [Announcement]
        # @param runs [Runs] counts what the storage does not
        # @yield when the lease had run out, and lasts again
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

        # @param scope [Scope] which owns the strand, if it is one
        def start(scope)
          @stop = Channel.new(1)
          @runner = @machine.backend.name == :sim ? scope.spin { work(nil) } : Thread.new { work_on_thread }
        end

        # Returns when it has ended. May switch strands.
        def stop
          @stop&.close
          @runner&.join
        rescue TerminatedError # with the whole worker
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

        # Once a minute, and when it begins to matter.
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

        # Who has told it to fetch no more looks whether it heard.
        def changed? = @announced_at.nil? || @announced_quiet != @worker.quiet?

        def announce(connection)
          quiet = @worker.quiet?
          info = @announcement.info(quiet:).merge("rtt_us" => (@round_trip * 1_000_000).round, "rss" => kilobytes)
          @storage.announce(@worker.node, info, @announcement.work, connection: connection)
          @runs.count_dropped(@storage, connection)
          @announced_at = @lease.now
          @announced_quiet = quiet
        end

        # Of memory.
        def kilobytes = File.read("/proc/self/statm").split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE) / 1024

        # Names of signals, as Sidekiq's dashboard sends them, and cancellations. What else there may be is not ours.
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
