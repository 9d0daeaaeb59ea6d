# frozen_string_literal: true

require_relative "wrapper"

module Ringspun
  module Jobs
    module ActiveJob
      # What jobs of Active Job have of ours, see {#done!}.
      #
      # @since 0.1.0
      module Done
        # Acknowledges this job in a transaction of its own, as {Job#done!} does: what the job does there and that it is done are
        # committed together, or neither is.
        #
        #   Account.transaction do
        #     account.update!(balance: account.balance + amount)
        #     done!(connection: Account.connection)
        #   end
        #
        # `retry_on` enqueues the job anew where the transaction was rolled back. Where it is committed, or the job was taken
        # away, an error goes to the worker in place of that.
        #
        # Outside of a worker of ours, as in `perform_now` and with another adapter, it does nothing. May switch strands.
        #
        # @param connection (see Job#done!)
        # @return (see Job#done!)
        # @raise (see Job#done!)
        # @since 0.1.0
        def done!(connection:) = @ringspun_wrapper&.done!(connection: connection)

        # Called by the worker, whose wrapper is among the data. With other adapters anybody may have written the data.
        #
        # @api private
        def deserialize(job_data)
          wrapper = job_data[Wrapper::OF_WORKER]
          @ringspun_wrapper = wrapper if wrapper.is_a?(Wrapper)
          super
        end

        # `retry_on`, `rescue_from` and jobs with steps call this while they handle an error. A job that runs again though it is
        # done would have its effect twice.
        #
        # @api private
        def retry_job(...)
          error = $!
          raise error if error.is_a?(StandardError) && @ringspun_wrapper&.ended?

          super
        end
      end
    end
  end
end

ActiveSupport.on_load(:active_job) { prepend Ringspun::Jobs::ActiveJob::Done }
