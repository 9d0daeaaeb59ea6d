# frozen_string_literal: true

require_relative "config"

# What the module Sidekiq has of the settings.

module Ringspun
  module Jobs
    module Sidekiq
      class << self
        # @return [Config]
        # @since 0.1.0
        def default_configuration = @default_configuration ||= Config.new

        # @return [Hash{String => Object}] the options of all jobs that do not say others
        # @since 0.1.0
        def default_job_options = @default_job_options ||= { "retry" => true, "queue" => "default" }

        # Adds to the {default_job_options}.
        #
        # @param options [Hash]
        # @since 0.1.0
        def default_job_options=(options)
          @default_job_options = default_job_options.merge(options.transform_keys(&:to_s))
        end

        # What happens to arguments that do not survive JSON: an ArgumentError (:raise), a warning (:warn), or nothing (false). In
        # the last two they are stored as JSON makes them.
        #
        # @param mode [Symbol, false]
        # @since 0.1.0
        def strict_args!(mode = :raise)
          @strict_args = mode
        end

        # @return [Symbol, false]
        # @api private
        def strict_args = @strict_args.nil? ? :raise : @strict_args

        # @return [Logger] the worker's
        # @since 0.1.0
        def logger = default_configuration.logger

        # Lends a connection to the Redis of the jobs. May switch strands.
        #
        # @yieldparam connection [RedisPool::Connection]
        # @return [Object] the block's value
        # @since 0.1.0
        def redis(&) = default_configuration.redis(&)

        # @return [RedisPool]
        # @since 0.1.0
        def redis_pool = default_configuration.redis_pool
      end
      Middleware.configuration = method(:default_configuration)
    end
  end
end
