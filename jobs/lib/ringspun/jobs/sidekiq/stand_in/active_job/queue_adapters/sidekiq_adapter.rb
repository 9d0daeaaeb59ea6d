# frozen_string_literal: true

# In place of Active Job's own file, which needs the gem.
require "ringspun/jobs/sidekiq"
require_relative "../../../active_job"
