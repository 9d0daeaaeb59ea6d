# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      @kinds = {}

      class << self
        # Registers a kind of storage by the name that the setting {Config#storage} then takes. The file of a storage calls it,
        # and adds settings of its own to {Config}.
        #
        #   Storage.register(:memory) { |config| Memory.new(milliseconds: config.milliseconds) }
        #
        # @param name [Symbol] the kind that is registered first is the one that {Config#storage} has unless told otherwise
        # @yieldparam config [Config]
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
          kind = config.storage
          kind.is_a?(Symbol) ? @kinds.fetch(kind).call(config) : kind
        end

        # @return [Symbol] the kind that is registered first
        # @api private
        def default = @kinds.each_key.first

        # @param value [Symbol, String, Storage, nil] or what passes all verbs on to a storage
        # @return [Symbol, Storage] the form that {Config} keeps
        # @raise [ConfigError] which lists what there is
        # @api private
        def known(value)
          return default if value.nil?
          return value if public_instance_methods(false).all? { |verb| value.respond_to?(verb) }

          names = @kinds.keys
          names.find { |name| [name, name.name].include?(value) } ||
            raise(ConfigError, "there is no storage #{value.inspect[0, 100]}; there are #{names.join(", ")}; or give a Storage")
        end
      end
    end
  end
end
