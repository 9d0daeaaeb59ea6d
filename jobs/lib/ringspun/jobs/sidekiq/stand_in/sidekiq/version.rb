# frozen_string_literal: true

require "ringspun/jobs/sidekiq"
