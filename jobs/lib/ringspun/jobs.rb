# frozen_string_literal: true

require "ringspun"

module Ringspun
  # Background jobs: enqueued from anywhere, run thousands at once in the strands of a worker process, on the Redis and the wire
  # format of Sidekiq and Exq.
  module Jobs
  end
end

require_relative "jobs/errors"
require_relative "jobs/chain"
require_relative "jobs/config"
require_relative "jobs/wire"
require_relative "jobs/turns"
require_relative "jobs/storage"
require_relative "jobs/log"
require_relative "jobs/quarantine"
require_relative "jobs/options"
require_relative "jobs/arguments"
require_relative "jobs/ids"
require_relative "jobs/template"
require_relative "jobs/client"
require_relative "jobs/bound_job"
require_relative "jobs/job"
require_relative "jobs/enqueuer"
require_relative "jobs/current"
require_relative "jobs/worker"
