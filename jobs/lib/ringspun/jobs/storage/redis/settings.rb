# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # What the settings of {Config} say about this storage.
        #
        # @api private
        module Settings
          # Settings of {Config} that only a program has which shares a Redis with others.
          SHARING = %i[milliseconds recover_exq].freeze

          # What says where the server is, of the options of RedisClient.
          ADDRESS = %i[url host port path db sentinels name role].freeze

          module_function

          # @param value [String, Hash] as {Config#redis=} takes it
          # @param before [Hash{Symbol => Object}] what is set so far
          # @return [Hash{Symbol => Object}, nil] nil: the value is neither
          def redis_of(value, before)
            case value
            when String then { **before.except(*ADDRESS), url: value }.freeze
            when Hash then symbols(value).freeze
            end
          end

          # @param config [Config]
          # @return [Boolean] whether a setting, or the environment, says something of a Redis
          def named?(config)
            !Address.given.nil? || config.given?(:redis) || !config.namespace.empty? ||
              SHARING.any? { |name| config.public_send(name) }
          end

          # A YAML file has Strings as keys.
          def symbols(value)
            case value
            when Hash then value.to_h { |name, each| [name.to_s.to_sym, symbols(each)] }
            when Array then value.map { |each| symbols(each) }
            else value
            end
          end
        end
        private_constant :Settings
      end

      register(:redis) do |config|
        if config.keep_done.positive?
          raise ConfigError, "keep_done needs a storage with tables, such as sqlite:PATH: Redis keeps no jobs that are done; " \
                             "leave it out"
        end

        Redis.new(config.redis, namespace: config.namespace, milliseconds: config.milliseconds, history: config.history)
      end
      by_default_a_server(:redis, "redis: redis://HOST:6379/0 in the settings or REDIS_URL=redis://HOST:6379/0 in the " \
                                  "environment (a Redis, for those of many hosts)") do |config|
        Redis.const_get(:Settings).named?(config)
      end
      by_address(%r{\A(?:rediss?|unix)://}) { |config, url| config.redis = url }
    end

    class Config
      # @!attribute [rw] redis
      #   @return [Hash{Symbol => Object}] what RedisClient.config takes, or, with :sentinels, RedisClient.sentinel; without a
      #     url:, REDIS_URL. Set to a String it takes that as the url:, and keeps what does not say where the server is, such as a
      #     password
      #   @since 0.1.0
      setting(:redis, {}.freeze, "a URL or a Hash of what RedisClient.config takes",
              option: ["--redis URL", "redis://host:port/db, rediss://..., unix:///path"]) do |value, before|
        Storage::Redis.const_get(:Settings).redis_of(value, before)
      end
      # @!attribute [rw] namespace
      #   @return [String] the prefix of each key, which a colon follows; "" as in Sidekiq. Exq's default is "exq":
      #     https://hexdocs.pm/exq/readme.html
      #   @since 0.1.0
      setting(:namespace, "", "a String", option: ["--namespace NAME", "before the name of each key"]) do |value|
        value.dup.freeze if value.is_a?(String)
      end
    end
  end
end
