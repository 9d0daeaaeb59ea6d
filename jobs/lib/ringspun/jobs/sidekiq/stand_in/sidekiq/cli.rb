# frozen_string_literal: true

require "ringspun/jobs/sidekiq"

Ringspun::Jobs::Sidekiq.refuse_file("sidekiq/cli", "start the worker by ringspun-jobs")
