# frozen_string_literal: true

require "ringspun"

module Ringspun
  # Background jobs: enqueued from anywhere, run thousands at once in the strands of a worker process, on the Redis and the wire
  # format of Sidekiq and Exq.
  module Jobs
    class << self
      # @return [Config] this process's
      # @since 0.1.0
      def config = @config ||= Config.new

      # Changes the settings. What was made from those that there were is closed, and made anew when it is next used.
      #
      # @yieldparam config [Config]
      # @return [Config]
      # @since 0.1.0
      def configure
        yield config
        config
      end
    end
  end
end

require_relative "jobs/errors"
require_relative "jobs/chain"
require_relative "jobs/config"
require_relative "jobs/wire"
require_relative "jobs/storage"
require_relative "jobs/log"
require_relative "jobs/options"
require_relative "jobs/job"
