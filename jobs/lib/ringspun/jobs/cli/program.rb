# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # The program that defines the jobs: a Ruby file, a library, or a Rails app.
      #
      # @api private
      class Program
        RAILS = "config/environment.rb"

        # @return [Boolean] whether this folder has a Rails app
        def self.rails? = ::File.exist?(RAILS)

        # @param name [String, nil] nil: the Rails app of this folder
        # @param environment [String]
        # @raise [ConfigError]
        def initialize(name, environment)
          @name = name || (Program.rails? ? "." : refuse("no program is given: name the one that has the jobs by -r"))
          refuse("require must be a String, got #{name.inspect}") unless @name.is_a?(String)
          @environment = environment
        end

        # @raise [ConfigError] when there is no such program
        # @raise [Exception] what the program raises
        def load
          ENV["RAILS_ENV"] = ENV["RACK_ENV"] = @environment
          path = path_of_file
          path ? require(path) : require_library
          Rails.settle if defined?(::ActiveSupport::IsolatedExecutionState) || defined?(::Rails.application)
        end

        private

        def path_of_file
          unless ::File.directory?(@name)
            return [@name, "#{@name}.rb"].find { |name| ::File.file?(name) }&.then { |name| full(name) }
          end

          path = full(::File.join(@name, RAILS))
          ::File.file?(path) ? path : refuse("the folder #{@name} has no #{RAILS}; name the file that has the jobs by -r")
        end

        # The full path, so that another `require` of the file does not load it twice.
        def full(name)
          path = ::File.realpath(name)
          path.end_with?(".rb") ? path : refuse("#{name} is no Ruby file")
        rescue Errno::ENOENT
          ::File.expand_path(name)
        end

        def require_library
          require @name
        rescue LoadError => error
          raise unless error.path == @name

          refuse("there is no file, folder or library #{@name}")
        end

        def refuse(why) = raise(ConfigError, why)
      end
      private_constant :Program

      # Sets up a Rails app for jobs in strands: its state belongs to the strand instead of the thread, and its executor wraps
      # each job: https://guides.rubyonrails.org/threading_and_code_execution.html
      #
      # @api private
      module Rails
        # Gives back what the job has used, such as its database connection.
        class Executor
          def initialize(app) = @app = app
          def call(_instance, _job, _queue, &) = @app.executor.wrap(&)
        end

        def self.settle
          ::ActiveSupport::IsolatedExecutionState.isolation_level = :fiber if defined?(::ActiveSupport::IsolatedExecutionState)
          app = ::Rails.application if defined?(::Rails.application)
          Jobs.config.server_middleware.prepend(Executor, app) if app
        end
      end
      private_constant :Rails
    end
  end
end
