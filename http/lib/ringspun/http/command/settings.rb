# frozen_string_literal: true

module Ringspun
  module HTTP
    class Command
      # What the command line, the configuration file and the environment say together.
      #
      # @api private
      class Settings
        # Unless anything says a place: this computer alone can reach it.
        USUAL_PLACE = "tcp://127.0.0.1:9292"
        USUAL_APP = "config.ru"
        private_constant :USUAL_PLACE, :USUAL_APP

        class << self
          # What WEB_CONCURRENCY says.
          #
          # @return [Integer, Symbol]
          # @raise [UsageError]
          def workers(text)
            return 0 if text.to_s.strip.empty?

            workers = Texts.workers(text.strip)
            return workers if workers == :cores || (workers.is_a?(Integer) && !workers.negative?)

            raise UsageError, "WEB_CONCURRENCY must be a number, or auto, got #{text.inspect}"
          end
        end

        # @return [Hash{Symbol => Object}] for {HTTP.run}
        attr_reader :options

        # @return [String, #call] the path of a config.ru, or a program for Rack
        attr_reader :app

        # @param arguments [Arguments]
        # @param environment [ENV, Hash{String => String}] gets RACK_ENV
        # @raise [UsageError]
        def initialize(arguments, environment)
          @environment = environment
          @said = arguments.said
          go(arguments.directory) if arguments.directory
          environment["RACK_ENV"] = arguments.environment || environment["RACK_ENV"] || environment["RAILS_ENV"] || "development"
          @file = File.read(arguments.file, environment["RACK_ENV"])
          obey(@file.others, arguments)
          @options = Spoken.merged({ workers: }, @file.options, arguments.options).update(listen: listen(arguments))
          @app = arguments.app || @file.others[:app] || USUAL_APP
          check_app(arguments.app || !@file.others[:app] ? "" : "app: ")
        rescue UsageError => error
          raise unless @file

          raise UsageError, located(error.message)
        end

        # @return [Boolean] whether the program is loaded once, before there are workers
        def preload? = @preload

        # @return [String] what is served
        def program = @app.is_a?(String) ? @app : "a program of the configuration"

        # @return [String] with the line of the configuration that it is about
        def located(message) = @file.located(message, except: @said)

        private

        def obey(others, arguments)
          go(others[:directory]) if others[:directory] && !arguments.directory
          @environment["RACK_ENV"] = others[:environment].to_s if others[:environment] && !arguments.environment
          @preload = arguments.preload || others[:preload]
        end

        def go(folder)
          Dir.chdir(folder)
        rescue SystemCallError => error
          raise UsageError, "directory: #{error.message}"
        end

        def workers = Settings.workers(@environment["WEB_CONCURRENCY"])

        def listen(arguments)
          return arguments.places if arguments.places.any?
          return @file.places if @file.places.any?
          return ["systemd://"] if HandedIn.take.any?

          [@environment["PORT"].to_s.empty? ? USUAL_PLACE : ["0.0.0.0", Spoken.port(@environment["PORT"], "PORT")]]
        end

        def check_app(word)
          return unless @app.is_a?(String)

          @app = ::File.expand_path(@app)
          return refuse_options if ::File.file?(@app)

          raise UsageError, "#{word}there is no #{@app}; name the program for Rack, as in: ringspun-http my/config.ru"
        end

        # Rack has read such lines up to its version 2.
        def refuse_options
          line = ::File.foreach(@app).with_index(1).find { |text, _| text.b.start_with?("#\\") }&.last
          return unless line && @app.end_with?(".ru")

          raise UsageError, "#{@app}:#{line}: options in a comment, #\\, are not read any more; give them to ringspun-http, or " \
                            "say them in #{File::PLACES.last}"
        end
      end
      private_constant :Settings
    end
  end
end
