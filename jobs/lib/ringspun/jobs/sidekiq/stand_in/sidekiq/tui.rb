# frozen_string_literal: true

require "ringspun/jobs/sidekiq"

Ringspun::Jobs::Sidekiq.refuse_file("sidekiq/tui", "call ringspun-jobs top in its place")
