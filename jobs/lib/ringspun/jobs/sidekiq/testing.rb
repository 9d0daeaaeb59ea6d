# frozen_string_literal: true

require "ringspun/jobs/testing"
require_relative "../sidekiq"

module Ringspun
  module Jobs
    module Sidekiq
      # The modes of {Jobs::Testing} by Sidekiq's names. A block's mode holds for what is started in the block as well.
      module Testing
        class << self
          # Keeps jobs. May switch strands, where the block does.
          #
          # @yield the block for which it holds; without one it holds for good
          # @since 0.1.0
          def fake!(&) = Jobs::Testing.fake!(&)

          # Runs jobs at once. See {fake!}.
          #
          # @since 0.1.0
          def inline!(&) = Jobs::Testing.inline!(&)

          # Stores jobs. See {fake!}.
          #
          # @since 0.1.0
          def disable!(&) = Jobs::Testing.real!(&)

          # @since 0.1.0
          def fake? = Jobs::Testing.mode == :fake
          # @since 0.1.0
          def inline? = Jobs::Testing.mode == :inline
          # @since 0.1.0
          def disabled? = Jobs::Testing.mode == :real
          # @since 0.1.0
          def enabled? = !disabled?

          # @yieldparam chain [Middleware::Chain] what is called around a job that is run
          # @return [Middleware::Chain]
          # @since 0.1.0
          def server_middleware(&) = Sidekiq.default_configuration.server_middleware(&)
        end
      end

      # There is no job to perform.
      class EmptyQueueError < RuntimeError; end

      # The jobs that are kept.
      module Queues
        class << self
          # @return [Array<Hash{String => Object}>]
          # @since 0.1.0
          def [](queue) = Jobs::Testing.jobs.select { |job| job["queue"] == queue.to_s }

          # @since 0.1.0
          def jobs_by_queue = Jobs::Testing.jobs.group_by { |job| job["queue"] }.tap { |all| all.default = [].freeze }

          # @since 0.1.0
          def jobs_by_class = Jobs::Testing.jobs.group_by { |job| job["class"] }.tap { |all| all.default = [].freeze }

          alias jobs_by_worker jobs_by_class

          # @since 0.1.0
          def clear_all = Jobs::Testing.clear_all
        end
      end

      module Job
        class << self
          # @return [Array<Hash{String => Object}>] all jobs that are kept
          # @since 0.1.0
          def jobs = Jobs::Testing.jobs

          # @since 0.1.0
          def clear_all = Jobs::Testing.clear_all

          # Runs all jobs that are kept. May switch strands.
          #
          # @since 0.1.0
          def drain_all = Jobs::Testing.drain
        end

        # What tests call, beside `jobs`, `drain` and `clear`.
        module ClassMethods
          # @return [String]
          # @since 0.1.0
          def queue = get_sidekiq_options["queue"]

          # Runs the first job that is kept. May switch strands.
          #
          # @raise [EmptyQueueError]
          # @since 0.1.0
          def perform_one
            record = Jobs::Testing.__send__(:take, self, []) or raise EmptyQueueError, "no job of #{name} is kept"
            Jobs::Testing.__send__(:run, record)
          end

          # Runs a job. May switch strands.
          #
          # @param job [Hash{String => Object}]
          # @since 0.1.0
          def process_job(job) = Jobs::Testing.__send__(:run, Jobs::Testing::Record.new(job))
        end
      end
    end
  end
end
