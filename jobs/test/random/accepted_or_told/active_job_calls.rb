# frozen_string_literal: true

require "ringspun/jobs/active_job"
require "ringspun/jobs/sidekiq/active_job"

ActiveJob::Base.logger = Logger.new(nil)

module AcceptedOrTold
  # The ways of Active Job. What it swallows was told to nobody.
  module ActiveJobCalls
    class Later < ActiveJob::Base
      self.queue_adapter = :ringspun
      include Calls::Counted
    end

    class LaterBySidekiq < ActiveJob::Base
      self.queue_adapter = :sidekiq
      include Calls::Counted
    end

    class << self
      # (see Calls.call)
      def call(way, numbers, queue)
        return [one { |job| ONE.fetch(way).call(job, numbers.first, queue) }] if ONE.key?(way)

        many(numbers.map { |number| [Later, LaterBySidekiq][number % 2].new(number) }, &MANY.fetch(way))
      end

      private

      # The block gets what keeps the job, which a call that returns false yields only.
      def one
        job = nil
        answer = yield ->(yielded) { job = yielded }
        return job.provider_job_id if answer && job.successfully_enqueued?

        Calls::Kept.new("returned #{answer.inspect} and raised nothing", error_of(job))
      end

      # A call that raises says in its jobs which are stored.
      def many(jobs)
        yield jobs
        jobs.map { |job| state_of(job, Calls::Kept.new("of many raised nothing", error_of(job))) }
      rescue Jobs::Error => error
        jobs.map { |job| state_of(job, error_of(job) || error) }
      end

      def state_of(job, otherwise) = job.successfully_enqueued? ? job.provider_job_id : otherwise

      def error_of(job) = job.enqueue_error.then { |error| error.is_a?(ActiveJob::EnqueueError) ? error.cause : error }
    end

    ONE = {
      active_job_perform_later: ->(job, number, _) { Later.perform_later(number, &job) },
      active_job_set_wait: ->(job, number, _) { Later.set(wait: Calls::HOUR).perform_later(number, &job) },
      active_job_set: ->(job, number, queue) { Later.set(queue: queue, priority: number % 5).perform_later(number, &job) },
      active_job_enqueue: ->(job, number, queue) { Later.new(number).tap(&job).enqueue(queue: queue) },
      active_job_by_sidekiq: ->(job, number, queue) { LaterBySidekiq.set(queue: queue).perform_later(number, &job) }
    }.freeze

    MANY = {
      active_job_perform_all_later: ->(jobs) { ActiveJob.perform_all_later(jobs) },
      active_job_enqueue_all: ->(jobs) { jobs.group_by(&:class).each_value { |same| same.first.queue_adapter.enqueue_all(same) } }
    }.freeze
  end
end
