# frozen_string_literal: true

require "solid_queue"
require_relative "in_threads"

# Solid Queue, with the tables that its generator makes.
module Library
  extend InThreads

  SCHEMA = "lib/generators/solid_queue/install/templates/db/queue_schema.rb"

  def self.configure(config)
    config.active_job.queue_adapter = :solid_queue
    config.active_support.isolation_level = :fiber # its workers with fibers ask for it
  end

  def self.prepare = load(File.join(Gem.loaded_specs.fetch("solid_queue").gem_dir, SCHEMA))
  def self.waiting = SolidQueue::ReadyExecution.count
end
