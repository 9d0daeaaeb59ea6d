# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # Where a server is.
        #
        # @api private
        module Address
          module_function

          # @return [String, nil] what the environment says; an empty variable says nothing
          def given = ENV["REDIS_URL"].then { |text| text unless text.to_s.empty? }

          # Asks no sentinel.
          #
          # @param config [RedisClient::Config, RedisClient::SentinelConfig]
          # @return [String] for people, without its user
          def shown(config)
            database = ", database #{config.db}" unless config.db.zero?
            return "unix://#{config.path}#{database}" if !config.sentinel? && config.path

            scheme = config.ssl? ? "rediss" : "redis"
            return "#{scheme}://#{config.name} by sentinels#{database}" if config.sentinel?

            host = config.host.include?(":") ? "[#{config.host}]" : config.host
            "#{scheme}://#{host}:#{config.port}/#{config.db}"
          end
        end
        private_constant :Address
      end
    end
  end
end
