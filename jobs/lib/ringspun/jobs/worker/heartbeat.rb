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

        # @param worker [Worker] who obeys
        # @param announcement [Announcement]
        # @param extend_lease [Boolean] false: a supervisor does that
        def initialize(worker, announcement, machine, storage, config, log, extend_lease:)
          @worker = worker
          @announcement = announcement
          @machine = machine
          @storage = storage
          @config = config
          @log = log
          @extend_lease = extend_lease
          @simulated = machine.backend.name == :sim
          @extended_at = now
          @announced_at = @told = nil
        end

        # @param scope [Scope] which owns the strand, if it is one
        def start(scope)
          @stop = Channel.new(1)
          @runner = @simulated ? scope.spin { work(nil) } : Thread.new { work_on_thread }
        end

        # Returns when it has ended. May switch strands.
        def stop
          @stop&.close
          @runner&.join
        rescue TerminatedError # with the whole worker
          nil
        end

        # Whether our lease lasts, as far as we know. A process that was frozen must not fetch before it has said that it lives:
        # what it would have in flight then could be taken for a dead one's.
        def leased? = !@extend_lease || now - @extended_at < @config.lease

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
          extend_lease(connection) if @extend_lease
          asked = now
          messages = @storage.signals(@worker.node, connection: connection)
          @round_trip = now - asked
          messages.each { |message| obey(message) }
          announce(connection) if changed? || now - @announced_at >= ANNOUNCE_SECONDS
          @told = nil
        rescue StandardError => error
          fails(error)
        end

        # Once a minute, and when it begins to matter.
        def fails(error)
          leased = leased?
          return if @told && @told.last == leased && now - @told.first < Backoff::AGAIN_SECONDS

          @told = [now, leased]
          @log.event(:warn, "no heartbeat#{", and until there is one no jobs are fetched" unless leased}: #{error.message}")
        end

        def extend_lease(connection)
          began = now
          lasted, = @storage.extend([@worker.node], @config.lease, connection: connection)
          lapsed = !leased?
          @extended_at = began
          @worker.leased_again if lapsed
          return if lasted

          @log.event(:warn, "this worker's lease had run out; others may run what it had in flight", node: @worker.node)
        end

        # Who has told it to fetch no more looks whether it heard.
        def changed? = @announced_at.nil? || @announced_quiet != @worker.quiet?

        def announce(connection)
          quiet = @worker.quiet?
          info = @announcement.info(quiet:).merge("rtt_us" => (@round_trip * 1_000_000).round, "rss" => kilobytes)
          @storage.announce(@worker.node, info, @announcement.work, connection: connection)
          @worker.flush_counts(connection)
          @announced_at = now
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

        # A lease also runs out while the computer sleeps, and the machine's clock stands then.
        def now = @simulated ? @machine.now : Process.clock_gettime(Process::CLOCK_BOOTTIME)
      end
      private_constant :Heartbeat
    end
  end
end
