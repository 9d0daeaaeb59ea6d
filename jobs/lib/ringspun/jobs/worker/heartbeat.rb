# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What a worker does every few seconds: extends its lease, looks whether it has lost jobs, obeys its messages, and
      # announces what it does. It has a thread and a connection of its own, so that a job that computes for a minute does not
      # cost the lease. On a simulated machine, which has no threads, it has a strand.
      #
      # @api private
      class Heartbeat
        # @param seconds [Numeric] between two of them
        # @param lease [Lease]
        # @param messages [Messages]
        # @param announcement [Announcement]
        # @param losses [Losses]
        # @param log [Log]
        def initialize(seconds, storage, lease, messages, announcement, losses, log)
          @seconds = seconds
          @storage = storage
          @lease = lease
          @messages = messages
          @announcement = announcement
          @losses = losses
          @log = log
          @failed = nil
        end

        # @param scope [Scope] which owns the strand, if there is one
        def start(machine, scope)
          @stop = Channel.new(1)
          @beating = machine.backend.name == :sim ? scope.spin { work(nil) } : Thread.new { work_on_thread }
        end

        # Returns when the thread has ended. May switch strands.
        def stop
          @stop&.close
          @beating&.join
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
            @stop.pop(timeout: [@seconds, @announcement.every_seconds].min)
          end
        end

        def beat(connection)
          @lease.extend(connection) if @lease.extended_here?
          @losses.look(connection)
          round_trip = seconds_of { @messages.obey(connection) }
          @announcement.show(round_trip, connection) if @announcement.due?
          @failed = nil
        rescue StandardError => error
          failed(error)
        end

        def seconds_of
          began = @lease.now
          yield
          @lease.now - began
        end

        # Logs it once a minute, and when the lease has run out.
        def failed(error)
          leased = @lease.lasts?
          return if @failed && @failed.last == leased && @lease.now - @failed.first < Backoff::AGAIN_SECONDS

          @failed = [@lease.now, leased]
          @log.event(:warn, "no heartbeat#{", and until there is one no jobs are fetched" unless leased}: #{error.message}")
        end
      end
      private_constant :Heartbeat
    end
  end
end
