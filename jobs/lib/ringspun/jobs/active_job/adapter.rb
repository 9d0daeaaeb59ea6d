# frozen_string_literal: true

require_relative "wrapper"

module Ringspun
  module Jobs
    module ActiveJob
      # Enqueues the jobs of Active Job: https://guides.rubyonrails.org/active_job_basics.html
      #
      #   config.active_job.queue_adapter = :ringspun
      #
      # Workers of Sidekiq run them as well, and its pages show their own classes, for they stand in the storage as Sidekiq's own
      # adapter writes them.
      #
      # `retry_on` and `discard_on` are Active Job's. What they let through is tried again as a job of ours that has raised.
      #
      # @since 0.1.0
      module Adapter
        STOPPED = "a middleware has stopped the job"
        # What a storage may answer. An invalid job is always raised.
        FAILURES = [UnavailableError, UnknownOutcomeError, StorageError, PoolTimeoutError].freeze
        SOURCE = "enqueue.ringspun"
        private_constant :STOPPED, :FAILURES, :SOURCE

        # Stores a job. May switch strands.
        #
        # With the setting `active_job_errors` `:return` an error of the storage is raised as `ActiveJob::EnqueueError`, so that
        # `perform_later` returns false. It is logged and reported to `Rails.error`, for few programs look at what that returns.
        #
        # @param job [::ActiveJob::Base] which gets its `provider_job_id`, our jid
        # @return [String] the jid
        # @raise [UnavailableError, StorageError, PoolTimeoutError] it is not stored
        # @raise [UnknownOutcomeError] it is stored, or not
        # @raise [::ActiveJob::EnqueueError] a middleware has stopped it; or it waited for a commit and is not stored, which
        #   `transaction` then raises as `ActiveRecord::AfterCommitError`
        # @raise [InvalidJobError] its data do not survive JSON
        # @since 0.1.0
        def enqueue(job) = store(job, nil)

        # Stores a job that is to run at a time, by the storage's clock. May switch strands.
        #
        # @param job (see #enqueue)
        # @param timestamp [Float] seconds since the epoch
        # @return (see #enqueue)
        # @raise (see #enqueue)
        # @since 0.1.0
        def enqueue_at(job, timestamp) = store(job, timestamp)

        # Stores many jobs, a thousand in one call of the storage. Each then says whether it is `successfully_enqueued?`, and has
        # its `provider_job_id` or its `enqueue_error`. May switch strands.
        #
        # @param jobs [Array<::ActiveJob::Base>]
        # @return [Integer] how many are stored
        # @raise [UnavailableError, StorageError, PoolTimeoutError, UnknownOutcomeError] none is stored, or not for certain
        # @raise [BulkError] some are not stored; with `active_job_errors` `:return` only the jobs say so
        # @raise [InvalidJobError] the data of one do not survive JSON, and none is stored
        # @since 0.1.0
        def enqueue_all(jobs)
          commit = commit_of(jobs)
          told = nil
          answers = begin
            push_all(jobs)
          rescue BulkError => told
            told.results + Array.new(jobs.size - told.results.size, told.results.grep(Error).first)
          rescue *FAILURES => told
            Array.new(jobs.size, told)
          end
          stored = jobs.each_with_index.count { |job, index| settle(job, answers[index]) }
          tell(jobs.zip(answers).select { |_job, answer| answer.is_a?(Error) }.map(&:first), told, commit) if told
          stored
        end

        # Whether the worker that runs the caller has been told to end, so that a job with steps is to be interrupted after one
        # and goes on elsewhere: https://api.rubyonrails.org/classes/ActiveJob/Continuation.html
        #
        # @return [Boolean]
        # @since 0.1.0
        def stopping? = Worker.stopping?

        private

        def store(job, timestamp)
          commit = commit_of([job])
          jid = Jobs.client.push(template(job), [data_of(job)], timestamp, checked: true)
          job.provider_job_id = jid || raise(::ActiveJob::EnqueueError, STOPPED)
        rescue *FAILURES => error
          tell([job], error, commit)
          raise ::ActiveJob::EnqueueError, error.message
        end

        def push_all(jobs)
          client = Jobs.client
          last = template = nil # most often all have the same
          client.push_all(jobs) do |job|
            template = template(job) unless last && alike?(last, job)
            last = job
            client.made(template, [data_of(job)], job.scheduled_at&.to_f, nil, checked: true)
          end
        end

        def alike?(one, other)
          one.instance_of?(other.class) && one.queue_name == other.queue_name && one.priority == other.priority
        end

        # Active Job swallows an EnqueueError, and hardly a program asks for it.
        def tell(jobs, error, commit)
          return report(jobs, error) unless Jobs.config.active_job_errors == :raise
          raise error if commit.nil?

          commit.failed.concat(jobs.map { |job| [job.class.name, job.job_id, error] })
        end

        # To the log, and as Rails reports errors: https://guides.rubyonrails.org/error_reporting.html
        def report(jobs, error)
          names = jobs.map { |job| "#{job.class} #{job.job_id}" }
          Jobs.config.tell(:error, "not stored, or not for certain: #{names.join(", ")}: #{error.message}")
          ::ActiveSupport.error_reporter.report(error, handled: true, severity: :error, context: { jobs: names }, source: SOURCE)
        end

        # What becomes of the jobs of a commit for which Active Job has let these wait; nil when there is none.
        def commit_of(jobs)
          commits = Jobs.commits
          commits.enqueue(jobs.map(&:job_id)) if commits && jobs.all? { |job| commits.waits?(job) }
        end

        # Active Job lets some values through that are no plain ones, such as a String that counts as safe HTML, and a class may
        # add values of its own. They are what JSON makes of them, as with other adapters. The data have passed {Arguments.check}
        # as the only argument.
        def data_of(job)
          data = job.serialize
          return data if Arguments.hash?(data, 1)

          data = JSON.parse(JSON.generate(data))
          Arguments.check([data])
          data
        rescue JSON::JSONError, EncodingError => error
          raise InvalidJobError, "the data of #{job.class} do not survive JSON: #{error.message}"
        end

        def settle(job, answer)
          job.enqueue_error = nil
          job.provider_job_id = answer if answer.is_a?(String)
          job.enqueue_error = error_of(answer) unless answer.is_a?(String)
          job.successfully_enqueued = answer.is_a?(String)
        end

        def error_of(answer)
          raise ::ActiveJob::EnqueueError, answer ? answer.message : STOPPED, cause: answer
        rescue ::ActiveJob::EnqueueError => error
          error
        end

        def template(job) = Wrapper.template(job.class, job.queue_name, job.priority)
      end
    end
  end
end
