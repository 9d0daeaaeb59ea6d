# frozen_string_literal: true

require "sidekiq"
require "sidekiq/api"
require_relative "in_threads"

# Sidekiq, by the adapter that the gem brings. As many connections as callers:
# https://github.com/sidekiq/sidekiq/wiki/Using-Redis
module Library
  extend InThreads

  def self.configure(config)
    config.active_job.queue_adapter = :sidekiq
    Sidekiq.configure_client { |client| client.redis = { size: Integer(ENV.fetch("BENCH_CALLERS", "5")) } }
    Sidekiq.default_configuration.logger.level = Logger::WARN
  end

  def self.prepare = nil
  def self.waiting = Sidekiq::Queue.new.size
end
