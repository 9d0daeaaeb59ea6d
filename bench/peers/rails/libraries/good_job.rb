# frozen_string_literal: true

require "erb"
require "good_job"
require_relative "in_threads"

# GoodJob, with the tables that its generator makes. Whoever enqueues runs no jobs, which is what it does in production.
module Library
  extend InThreads

  MIGRATION = "lib/generators/good_job/templates/install/migrations/create_good_jobs.rb.erb"

  def self.configure(config)
    config.active_job.queue_adapter = :good_job
    config.good_job.execution_mode = :external
  end

  def self.prepare
    template = File.read(File.join(Gem.loaded_specs.fetch("good_job").gem_dir, MIGRATION))
    ActiveRecord::Base.connection.execute("drop schema public cascade; create schema public")
    eval(ERB.new(template).result_with_hash(migration_version: "[8.1]")) # rubocop:disable Security/Eval
    CreateGoodJobs.new.migrate(:up)
    GoodJob::Job.reset_column_information
  end

  def self.waiting = GoodJob::Job.where(finished_at: nil).count
end
