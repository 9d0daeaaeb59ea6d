# frozen_string_literal: true

module Ringspun
  module Jobs
    class Railtie
      # The connection pools of Active Record, of which each job may hold a connection until it ends.
      #
      # @api private
      module Pools
        module_function

        # @return [Integer, nil] how many jobs can run at once so that each finds a connection; nil: any number
        def concurrency = smallest&.size

        # @param concurrency [Integer]
        # @return [String, nil] nil: each job finds a connection
        def warning(concurrency)
          pool = smallest
          return if pool.nil? || pool.size >= concurrency

          name = pool.db_config.name
          "the pool of the database #{name} has #{Words.count(pool.size, "connection")} for #{Words.count(concurrency, "job")} " \
            "at once, so jobs wait for one and may fail: set #{setting}: #{concurrency} for #{name} in config/database.yml, or " \
            "concurrency: #{pool.size} in config/ringspun-jobs.yml"
        end

        # nil is a pool without a limit, as max_connections: -1 makes it.
        def smallest
          pools = ::ActiveRecord::Base.connection_handler.connection_pool_list(:all).select(&:size)
          pools.min_by(&:size)
        end

        # Rails 8.1 has renamed it.
        def setting = ::ActiveRecord.version >= Gem::Version.new("8.1") ? "max_connections" : "pool"
      end
      private_constant :Pools
    end
  end
end
