# frozen_string_literal: true

require "ringspun-jobs"
require "bench/jobs_file"

# Ringspun, whose callers are strands.
module Library
  def self.configure(config)
    config.active_job.queue_adapter = :ringspun
    setting = Bench::JobsFile.setting
    setting ? config.ringspun_jobs.storage = setting : config.ringspun_jobs.redis = { url: ENV.fetch("REDIS_URL") }
    config.ringspun_jobs.log_level = "warn"
  end

  def self.prepare = nil
  def self.waiting = Ringspun::Jobs.storage.stats.fetch(:enqueued)
  def self.in_callers = Ringspun.run { |machine| yield machine.method(:spin), :await }
end
