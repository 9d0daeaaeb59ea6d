# frozen_string_literal: true

module Ringspun
  module Jobs
    # Everything that this gem raises.
    class Error < Ringspun::Error; end

    # An option, a configuration file or an argument of the command line says something that cannot be.
    class ConfigError < Error; end

    # What was to be enqueued is no job: its arguments do not survive JSON, or its options make no sense.
    class InvalidJobError < Error; end

    # An entry of the storage is no job: no JSON, or without a class, arguments or a jid.
    class MalformedEntryError < Error; end

    # The storage cannot be reached. Nothing was sent, so nothing has happened.
    class UnavailableError < Error; end

    # The storage does not let this program in: its user or password is wrong or missing, or it may not even connect. Nothing has
    # happened. That it may connect, and not do what jobs need, is a {StorageError}.
    class AccessError < UnavailableError; end

    # A job was sent and no answer came back: it may be enqueued, or not. Enqueue it again only if it may run twice, or with
    # `unique_for:` and `unique_until: :expiry`, which make that safe.
    class UnknownOutcomeError < Error; end

    # The storage has refused: it is out of memory, read-only, of the wrong type.
    class StorageError < Error; end

    # No connection of the pool was free in time.
    class PoolTimeoutError < Error; end

    # Of many jobs some are stored and some are not.
    class BulkError < Error
      # @return [Array<String, Error, nil>] for each job, in order, its jid; nil when its lock was held or a middleware has
      #   stopped it; or why it is not stored. Those at the end that are missing have not been tried.
      # @since 0.1.0
      attr_reader :results

      def initialize(results)
        errors = results.grep(Exception)
        super("#{errors.size} of #{results.size} jobs are not stored, or not for certain: #{errors.first&.message}")
        @results = results
      end
    end

    # Raised by {Job#snooze} to end a run. Not a StandardError, because a job's own `rescue => error` must not take it for a
    # failure.
    class Snooze < Exception # rubocop:disable Lint/InheritException
      # @return [Float] seconds until the job runs again
      # @since 0.1.0
      attr_reader :seconds

      def initialize(seconds)
        super("the job sleeps for #{seconds} s; only a worker understands that")
        @seconds = seconds
      end
    end
  end
end
