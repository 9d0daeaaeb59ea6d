# frozen_string_literal: true

require "sidekiq"
require "bench/enqueuing"

# The job that the tables of jobs enqueue and run, for Sidekiq. In the program that enqueues and in the worker.
class HardJob
  include Sidekiq::Job

  def perform(*)
  end
end

module Bench
  module Jobs
    # As its guides tell: its own client, with as many connections as there are threads.
    class Sidekiq
      def self.connect(server, size:)
        ::Sidekiq.configure_client do |config|
          config.redis = { url: server.url, size: }
          config.logger.level = Logger::WARN
        end
      end
    end
  end
end
