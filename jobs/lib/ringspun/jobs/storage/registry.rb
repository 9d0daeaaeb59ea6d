# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      @kinds = {}

      class << self
        # Registers a kind of storage by the name that the setting {Config#storage} then takes. A gem calls it in its file
        # ringspun/jobs/storage/NAME, which is required when the setting has a name that nobody has registered.
        #
        #   Ringspun::Jobs::Storage.register(:files) { |config, folder:| Files.new(folder, history: config.history) }
        #
        # @param name [Symbol] the kind that is registered first is the one that {Config#storage} has unless told otherwise
        # @yieldparam config [Config]
        # @yieldparam options [Hash{Symbol => Object}] keywords: what the setting says beside the name
        # @yieldreturn [Storage]
        # @return [nil]
        # @since 0.1.0
        def register(name, &make)
          @kinds[name] = make
          nil
        end

        # @param config [Config]
        # @return [Storage] the one that the settings ask for
        # @raise [ConfigError]
        # @since 0.1.0
        def for(config)
          case kind = config.storage
          when Symbol then @kinds.fetch(kind).call(config)
          when Hash then @kinds.fetch(kind[:name]).call(config, **kind.except(:name))
          else kind
          end
        end

        # @return [Symbol] the kind that is registered first
        # @api private
        def default = @kinds.each_key.first

        # @param value [Symbol, String, Hash, Storage, nil] a storage may be anything that passes all verbs on to one
        # @return [Symbol, Hash{Symbol => Object}, Storage] the form that {Config} keeps
        # @raise [ConfigError] which lists what there is
        # @api private
        def known(value)
          return default if value.nil?
          return value if public_instance_methods(false).all? { |verb| value.respond_to?(verb) }

          options = value.is_a?(Hash) ? value.transform_keys { |name| name.to_s.to_sym } : { name: value }
          name = registered(options[:name])
          raise ConfigError, "there is no storage #{value.inspect[0, 100]}; there are #{names}; or give a Storage" unless name

          check_options(name, options.keys - [:name])
          options.size == 1 ? name : { **options, name: }.freeze
        end

        private

        def names = @kinds.keys.join(", ")

        def registered(name)
          return unless name.to_s.match?(/\A[a-z]\w*\z/)

          name = name.to_sym
          require_file("ringspun/jobs/storage/#{name}") unless @kinds.key?(name)
          name if @kinds.key?(name)
        end

        def require_file(path)
          require path
        rescue LoadError => error
          raise unless error.path == path
        end

        # What the block takes as keywords.
        def check_options(name, given)
          options = @kinds[name].parameters.group_by(&:first).transform_values { |all| all.map(&:last) }
          known = options.values_at(:keyreq, :key).flatten.compact
          unknown = options.key?(:keyrest) ? [] : given - known
          missing = options.fetch(:keyreq, []) - given
          raise ConfigError, "the storage #{name} has no option #{unknown.first}; it has #{list(known)}" if unknown.any?
          raise ConfigError, "the storage #{name} needs the option #{missing.first}" if missing.any?
        end

        def list(options) = options.empty? ? "none" : options.join(", ")
      end
    end
  end
end
