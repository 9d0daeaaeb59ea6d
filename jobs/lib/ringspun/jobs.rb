# frozen_string_literal: true

require "ringspun"

module Ringspun
  # Background jobs in the wire format of Sidekiq and Exq: enqueued from anywhere, and run thousands at once in the strands of a
  # worker process.
  module Jobs
  end
end

# Each room knows only those before it.
require_relative "jobs/words"
require_relative "jobs/errors"
require_relative "jobs/shielded"
require_relative "jobs/entry/arguments"
require_relative "jobs/entry/backtrace"
require_relative "jobs/entry/ids"
require_relative "jobs/entry/queue_pattern"
require_relative "jobs/entry/wire"
require_relative "jobs/middleware/chain"
require_relative "jobs/lender"
require_relative "jobs/notices"
require_relative "jobs/tracing"
require_relative "jobs/home"
require_relative "jobs/config"
require_relative "jobs/storage"
require_relative "jobs/log"
require_relative "jobs/enqueuer"
require_relative "jobs/client/options"
require_relative "jobs/client/template"
require_relative "jobs/client/current"
require_relative "jobs/client/unserved"
require_relative "jobs/client/client"
require_relative "jobs/client/watched_client"
require_relative "jobs/client/current_client"
require_relative "jobs/client/bound_job"
require_relative "jobs/client/job"
require_relative "jobs/client/enqueue"
require_relative "jobs/cron"
require_relative "jobs/quarantine"
require_relative "jobs/worker"
