# frozen_string_literal: true

require "ringspun/jobs/active_job"

# Ringspun, whose callers are strands.
module Library
  def self.configure(config)
    config.active_job.queue_adapter = :ringspun
    config.active_support.isolation_level = :fiber
    Ringspun::Jobs.configure do |jobs|
      jobs.redis = { url: ENV.fetch("REDIS_URL") }
      jobs.log_level = "warn"
    end
  end

  def self.prepare = nil
  def self.waiting = Ringspun::Jobs.storage.stats.fetch(:enqueued)
  def self.in_callers = Ringspun.run { |machine| yield machine.method(:spin), :await }
end
