# frozen_string_literal: true

require "net/http"
require "sidekiq"

JOB = Sidekiq::Job
require "bench/jobs/classes"

module Bench
  module Jobs
    # Its own client, with as many connections as threads: https://github.com/sidekiq/sidekiq/wiki/Using-Redis
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
