# frozen_string_literal: true

require "active_job"
require "ringspun/jobs"
require_relative "active_job/adapter"
require_relative "active_job/done"
require_relative "active_job/scheduled"

module ActiveJob
  module QueueAdapters
    # What `config.active_job.queue_adapter = :ringspun` finds by its name, see {Ringspun::Jobs::ActiveJob::Adapter}.
    #
    # @since 0.1.0
    class RingspunAdapter < AbstractAdapter
      include Ringspun::Jobs::ActiveJob::Adapter
    end
  end
end
