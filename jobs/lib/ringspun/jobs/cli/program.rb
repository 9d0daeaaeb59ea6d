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
          Home.loaded(path)
          path ? require(path) : require_library
          keep_state_of_strands
          refuse_half_rails
        end

        private

        # What Active Support keeps for a unit of work belongs to a strand, and not to the thread that all strands share.
        def keep_state_of_strands
          return unless defined?(::ActiveSupport::IsolatedExecutionState)

          ::ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
        end

        # The railtie does all the rest that Rails needs.
        def refuse_half_rails
          return unless defined?(::Rails.application) && ::Rails.application && Jobs.config.reloader.nil?

          refuse("the Rails app has not required ringspun-jobs: its Gemfile must name the gem without `require: false`")
        end

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
    end
  end
end
