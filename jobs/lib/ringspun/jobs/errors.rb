# frozen_string_literal: true

module Ringspun
  module Jobs
    # The superclass of this gem's errors.
    class Error < Ringspun::Error; end

    # An option, the configuration file or the command line is wrong.
    class ConfigError < Error; end

    # A job that cannot be enqueued: its arguments do not survive JSON, or its options are wrong.
    class InvalidJobError < Error; end

    # The class that an entry names is no job of this program.
    class UnknownClassError < Error; end

    # An entry of the storage is no job: it is no JSON, or has no class, arguments or jid.
    class MalformedEntryError < Error; end

    # The storage cannot be reached. Nothing was sent, so nothing has happened.
    class UnavailableError < Error; end

    # The storage refuses this program: its user or password is wrong or missing, or it may not connect. Nothing has happened. If
    # the program may connect, but not do what jobs need, a {StorageError} says so.
    class AccessError < UnavailableError; end

    # Something was sent and no answer came back: it may be done or not. Enqueue a job again only if it may run twice, or with
    # `unique_for:` and `unique_until: :expiry`, which make that safe.
    class UnknownOutcomeError < Error; end

    # The storage has refused: it is out of memory or read-only, or a key has the wrong type.
    class StorageError < Error; end

    # A job that acknowledges itself, see {Job#done!}, was taken away meanwhile, for the lease of its worker had run out: another
    # one runs it, or will. Raised in the job's transaction, which so is rolled back.
    class TakenAwayError < Error; end

    # No connection of the pool was free in time.
    class PoolTimeoutError < Error; end

    # Some of several jobs are stored and some are not.
    class BulkError < Error
      # @return [Array<String, Error, nil>] for each job, in order, its jid; nil when its lock was held or a middleware has
      #   stopped it; or the error that kept it from being stored. Those that are missing at the end have not been tried.
      # @since 0.1.0
      attr_reader :results

      def initialize(results)
        errors = results.grep(Exception)
        super("#{errors.size} of #{Words.count(results.size, "job")} #{Words.noun(errors.size, "is", "are")} not stored, or " \
              "not for certain: #{errors.first&.message}")
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
        super("the job snoozes for #{Words.duration(seconds)}, which only a worker can handle")
        @seconds = seconds
      end
    end
  end
end
