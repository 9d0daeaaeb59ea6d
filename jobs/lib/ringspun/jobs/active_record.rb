# frozen_string_literal: true

require "active_record"
require "ringspun/jobs"

module Ringspun
  module Jobs
    # The connection was lost, or silent for too long, during a COMMIT: nobody here knows whether the transaction is committed.
    # The jobs that waited for that are not enqueued. Look whether the transaction's data are there, and enqueue the jobs if so.
    #
    # It is an error of Active Record as well, so that a program which handles a lost connection handles this.
    #
    # @since 0.1.0
    class CommitUnknownError < ::ActiveRecord::ConnectionFailed
      # @return [Array<Array(String, String)>] of each job the name of its class, and its id: the jid, or the `job_id` of a job of
      #   Active Job
      # @since 0.1.0
      attr_reader :jobs

      # @api private
      def initialize(message = nil, jobs: [], **)
        super(message, **)
        @jobs = jobs
      end
    end

    # A transaction is committed, but of the jobs that waited for that some are not stored, or not for certain. What a callback of
    # the transaction has raised is the cause, if there is such an error.
    #
    # @since 0.1.0
    class AfterCommitError < BulkError
      # @return (see CommitUnknownError#jobs)
      # @since 0.1.0
      attr_reader :jobs

      # @api private
      def initialize(message, jobs, results)
        super(results)
        @text = message
        @jobs = jobs
      end

      # @return [String]
      # @since 0.1.0
      def message = @text
    end
  end
end

require_relative "active_record/commits"
require_relative "storage/sqlite/opening"

# Jobs in the database of the program have tables there, which they make themselves.
ActiveRecord::SchemaDumper.ignore_tables |= [/\Aringspun_/]
