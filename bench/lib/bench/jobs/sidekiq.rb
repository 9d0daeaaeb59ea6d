# frozen_string_literal: true

require "net/http"
require "sidekiq"

JOB = Sidekiq::Job
require "bench/jobs/classes"

module Bench
  module Jobs
    # As its guides tell: its own client, with as many connections as there are threads.
    class Sidekiq
      def self.connect(server, size:, **)
        ::Sidekiq.configure_client do |config|
          config.redis = { url: server.url, size: }
          config.logger.level = Logger::WARN
        end
      end
    end
  end
end
