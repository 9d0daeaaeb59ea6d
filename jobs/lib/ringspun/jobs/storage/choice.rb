# frozen_string_literal: true

module Ringspun
  module Jobs
    # Which storage a program gets, above all one that names none:
    #
    # 1. what the setting says;
    # 2. a server, if a setting or the environment has something to say of it;
    # 3. in production, and in a program that is {keep_to_the_server told so}: the server at its usual address, if it answers;
    # 4. else a file of the program's own.
    class Storage
      class << self
        # Names the server of point 2 and 3.
        #
        # @param name [Symbol] a kind that is registered
        # @param lines [String] what a user writes to have it
        # @yieldparam config [Config]
        # @yieldreturn [Boolean]
        # @return [nil]
        # @api private
        def by_default_a_server(name, lines, &named)
          @server = { name:, lines:, named: }
          nil
        end

        # Says which words are addresses of the server of point 2.
        #
        # @param pattern [Regexp]
        # @yieldparam config [Config] that gets it
        # @yieldparam address [String]
        # @return [nil]
        # @api private
        def by_address(pattern, &given)
          @address = { pattern:, given: }
          nil
        end

        # Puts into the settings what somebody calls a storage.
        #
        # @param config [Config]
        # @param word [String] an address of the server, or what the setting takes
        # @param folder [String] where a relative path begins
        # @return [nil]
        # @raise [ConfigError]
        # @api private
        def call_by(config, word, folder)
          at_server = word.match?(@address[:pattern])
          @address[:given].call(config, word) if at_server
          config.storage = at_server ? @server[:name] : located(word, folder)
          nil
        end

        # Names the file of point 4.
        #
        # @param name [Symbol] a kind with the option path
        # @param file [String] its name
        # @return [nil]
        # @api private
        def by_default_a_file(name, file)
          @file = { name:, file: }
          nil
        end

        # For programs that were written for the server: they get no file unless they say so.
        #
        # @param why [String]
        # @return [nil]
        # @api private
        def keep_to_the_server(why)
          @kept = why
          nil
        end

        # @return [Boolean]
        # @api private
        def kept_to_the_server? = !@kept.nil?

        # May switch strands, where nothing says which one it is: then the server is asked.
        #
        # @param config [Config]
        # @return [Storage] the one that the program gets
        # @raise [ConfigError]
        # @since 0.1.0
        def for(config)
          return made(config, located(config.storage)) if config.storage
          return made(config, @server[:name]) if @server[:named].call(config)

          Home.production? || kept_to_the_server? ? answering_server(config) : own_file(config)
        end

        # @param config [Config]
        # @return [Boolean] whether neither a setting nor the environment says which one it is
        # @api private
        def unnamed?(config) = config.storage.nil? && !@server[:named].call(config)

        # @return [String] the lines by which a program says which one it is
        # @api private
        def lines = "#{line_of_file} (a file, for the processes of one host), or #{@server[:lines]}"

        # Resolves a relative path, of a kind that has one.
        #
        # @param value [Object] of the setting
        # @param folder [String]
        # @return [Object] what is no path stays as it is
        # @api private
        def located(value, folder = Home.folder)
          case value
          when Hash
            value.to_h { |name, each| [name, name.to_s == "path" && path?(each) ? full(each.to_s, folder) : each] }
          when String
            name, path = value.split(":", 2)
            path ? "#{name}:#{full(path, folder)}" : value
          else value
          end
        end

        private

        def path?(value) = value.is_a?(String) || value.respond_to?(:to_path)

        def full(path, folder)
          raise ArgumentError, "it has a NUL" if path.include?("\0")

          path.empty? ? path : File.expand_path(path, folder)
        rescue ArgumentError, EncodingError => error
          raise ConfigError, "#{path.inspect} is no path for a storage: #{error.message}"
        end

        def line_of_file = "storage: #{@file[:name]}:#{Home::STORAGE}/#{@file[:file]}"

        def own_file(config)
          path = Home.file(@file[:file])
          made(config, known("#{@file[:name]}:#{path}"))
        rescue ConfigError, SystemCallError => error
          raise if path.nil? && error.is_a?(ConfigError) # there is no folder either

          raise ConfigError, "#{error.message}. Nothing says where jobs are kept, so it would be a file at " \
                             "#{path || Home.folder}: write #{lines}"
        end

        def answering_server(config)
          storage = made(config, @server[:name])
          storage.time
          storage
        rescue StorageError # it has answered
          storage
        rescue UnavailableError, UnknownOutcomeError => error
          storage.close
          raise ConfigError, "nothing says where jobs are kept, and #{why_no_file}; so it would be #{storage.identity}, but " \
                             "#{error.message}. Write #{lines}"
        end

        def why_no_file
          kept_to_the_server? ? @kept : "the environment is #{Home.environment}"
        end
      end
    end
  end
end
