# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      @kinds = {}
      @forms = {}

      class << self
        # Registers a kind of storage by the name that the setting {Config#storage} then takes. A gem calls it in its file
        # ringspun/jobs/storage/NAME, which is required when the setting has a name that nobody has registered.
        #
        #   Ringspun::Jobs::Storage.register(:files) { |config, folder:| Files.new(folder, history: config.history) }
        #
        # @param name [Symbol]
        # @yieldparam config [Config]
        # @yieldparam options [Hash{Symbol => Object}] keywords: what the setting says beside the name
        # @yieldreturn [Storage]
        # @return [nil]
        # @since 0.1.0
        def register(name, &make)
          @kinds[name] = make
          @forms[name] ||= name.to_s
          nil
        end

        # Names a kind of storage that is loaded when the setting asks for it.
        # @param name [Symbol]
        # @param form [String] what a user writes
        # @return [nil]
        # @api private
        def offer(name, form)
          @forms[name] = form
          nil
        end

        # @return [String] what the setting may be, as users write it
        # @api private
        def forms = @forms.values.join(", ")

        # @param value [Symbol, String, Hash, Storage] a storage may be anything that passes all verbs on to one
        # @return [Symbol, Hash{Symbol => Object}, Storage] the form that {Config} keeps
        # @raise [ConfigError] which lists what there is
        # @api private
        def known(value)
          return value if public_instance_methods(false).all? { |verb| value.respond_to?(verb) }

          options = options_of(value)
          name = registered(options[:name])
          raise ConfigError, "there is no storage #{value.inspect[0, 100]}; there are #{forms}; or give a Storage" unless name

          check_options(name, options.keys - [:name])
          options.size == 1 ? name : { **options, name: }.freeze
        end

        private

        # @param setting [Symbol, Hash{Symbol => Object}, Storage] as {known} returns it
        def made(config, setting)
          case setting
          when Symbol then @kinds.fetch(setting).call(config)
          when Hash then @kinds.fetch(setting[:name]).call(config, **setting.except(:name))
          else setting
          end
        end

        # A text may have a path behind the name.
        def options_of(value)
          return value.transform_keys { |name| name.to_s.to_sym } if value.is_a?(Hash)

          return { name: value } if value.is_a?(String) && !value.valid_encoding?

          name, path = value.to_s.split(":", 2)
          path ? { name: name, path: path } : { name: value }
        end

        def registered(name)
          return unless (name.is_a?(String) || name.is_a?(Symbol)) && name.to_s.scrub.match?(/\A[a-z]\w*\z/)

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
