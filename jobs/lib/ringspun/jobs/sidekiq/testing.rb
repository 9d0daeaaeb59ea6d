# frozen_string_literal: true

require "ringspun/jobs/testing"
require_relative "../sidekiq"
require_relative "testing/queues"

module Ringspun
  module Jobs
    module Sidekiq
      # The modes of {Jobs::Testing} by Sidekiq's names. A block's mode holds for what is started in the block as well.
      module Testing
        # A block's mode is asked for inside of another block.
        class TestModeAlreadySetError < RuntimeError; end

        class << self
          # Keeps jobs. May switch strands, where the block does.
          #
          # @yield the block for which it holds; without one it holds for good
          # @raise [TestModeAlreadySetError] the caller is in such a block
          # @since 0.1.0
          def fake!(&) = switch(:fake!, &)

          # Runs jobs at once. See {fake!}.
          #
          # @since 0.1.0
          def inline!(&) = switch(:inline!, &)

          # Stores jobs. See {fake!}.
          #
          # @since 0.1.0
          def disable!(&) = switch(:real!, &)

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

          private

          # What was started in a block is in none itself.
          def switch(mode, &block)
            return Jobs::Testing.public_send(mode) unless block

            raise TestModeAlreadySetError, "a block has set a mode here already" if Thread.current[:ringspun_sidekiq_testing]

            begin
              Thread.current[:ringspun_sidekiq_testing] = true # a fiber's own
              Jobs::Testing.public_send(mode, &block)
            ensure
              Thread.current[:ringspun_sidekiq_testing] = nil
            end
          end
        end
      end

      # There is no job to perform.
      class EmptyQueueError < RuntimeError; end

      module Job
        class << self
          # @return [Array<Hash{String => Object}>] all jobs that are kept
          # @since 0.1.0
          def jobs = Queues.jobs_by_queue.values.flatten

          # @since 0.1.0
          def clear_all = Jobs::Testing.clear_all

          # Runs all jobs that are kept. May switch strands.
          #
          # @since 0.1.0
          def drain_all = Jobs::Testing.drain
        end

        # What tests call, beside `drain`.
        module ClassMethods
          # @return [String]
          # @since 0.1.0
          def queue = get_sidekiq_options["queue"]

          # @return [Array<Hash{String => Object}>] the jobs of this class that are kept, now and later
          # @since 0.1.0
          def jobs = Queues.jobs_by_class[name]

          # Forgets the jobs of this class.
          #
          # @since 0.1.0
          def clear = Queues.clear_for(queue, name)

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
