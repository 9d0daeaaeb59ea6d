# frozen_string_literal: true

require "rack" # which loads the classes that a config.ru names, as rackup does
require "rack/builder"
require "ringspun/http"
require_relative "command/words"
require_relative "command/spoken"
require_relative "command/arguments"
require_relative "command/file"
require_relative "command/settings"
require_relative "command/rackup"
require_relative "command/hosted"

module Ringspun
  module HTTP
    # The executable `ringspun-http`. The command line wins over the configuration file, that over the environment, and that over
    # the defaults.
    class Command
      # It was told to end, and all that was begun has ended.
      SUCCESS = 0
      # Something had to be killed or cut, or the place is taken.
      FAILURE = 1
      # An option or the configuration is wrong.
      USAGE = 64
      # What somebody hears who restarts another server that way.
      NO_RESTART = "ringspun-http: USR2 restarts nothing: HUP replaces workers, and TERM ends this process, to start another\n"
      private_constant :NO_RESTART

      class << self
        private

        # @return [Foreground, Hosted] for rackup's handler
        def under_rackup(app, given)
          alone = Thread.current == Thread.main && !Thread.current.thread_variable_get(:ringspun_run)
          rackup = Rackup.new(given, ENV, reads: alone)
          also = { restart: given[:restart_cmd], out: given[:quiet] ? nil : $stdout }
          return Foreground.new(app, host: rackup.host, port: rackup.port, **also) if rackup.plain?

          Hosted.new(app, rackup, **also)
        end

        def words_of_rackup = Rackup.help
      end

      # @param arguments [Array<String>] the command line
      # @param output [IO] for answers, such as the one to --help
      # @param errors [IO]
      # @since 0.1.0
      def initialize(arguments, output: $stdout, errors: $stderr)
        @arguments = arguments
        @output = output
        @telling = Telling.new(errors)
      end

      # Serves until a signal ends it.
      #
      # @return [Integer] the exit status: {SUCCESS}, {FAILURE} or {USAGE}
      # @raise [Exception] what the program raises while it is loaded
      # @since 0.1.0
      def run
        arguments = Arguments.new(@arguments)
        return answer(arguments.answer) if arguments.answer

        arguments.notes.each { |note| @telling.puts(note) }
        serve(Settings.new(arguments, ENV))
      rescue UsageError => error
        raise if @loading

        @telling.puts(@settings ? @settings.located(error.message) : error.message)
        USAGE
      rescue ClusterError => error
        fail_with(error)
      rescue SystemCallError, SocketError, IOError => error
        @loading ? raise : fail_with(error)
      end

      private

      # With the kernel when this returns: Ruby's own flush at the end of a process tells nobody of an error.
      def answer(text)
        @output.puts(text)
        @output.flush
        SUCCESS
      rescue Errno::EPIPE # whoever reads has read enough
        SUCCESS
      end

      def fail_with(error)
        @telling.puts(error.message)
        FAILURE
      end

      def serve(settings)
        @settings = settings
        options = settings.options
        take_signals(options[:access_log])
        @telling.say("ringspun-http #{VERSION}, #{RUBY_DESCRIPTION[/\S+ \S+/]}, #{ENV.fetch("RACK_ENV")}, #{settings.program}")
        settings.preload? ? HTTP.run(load(settings), **options) : HTTP.run(**options) { load(settings) }
        SUCCESS
      rescue Interrupt # before there were handlers of ours; it ends by the signal, without a backtrace
        raise SignalException, "INT"
      end

      # Errors in between are the program's, which says itself where they are.
      def load(settings)
        app = settings.app
        return app unless app.is_a?(String)

        @loading = true
        prepare_rails(::File.dirname(app))
        Rack::Builder.parse_file(app).tap { @loading = false }
      rescue SystemExit => error
        @telling.puts("#{app} has called exit while it was loaded, with status #{error.status}")
        raise
      rescue RuntimeError => error
        raise unless no_program?(error)

        @loading = false
        raise UsageError, "#{app} says no program: it needs a line such as: run MyApp"
      end

      # As Rack::Builder#to_app raises it.
      def no_program?(error)
        error.message.start_with?("missing run") && error.backtrace_locations.first.base_label == "to_app"
      end

      # What makes a Rails application at home here has to be there before the application is, and Rails after its bundle.
      def prepare_rails(folder)
        application = ::File.join(folder, "config/application.rb")
        return unless ::File.file?(application) && ::File.read(application).include?("Rails::Application")

        boot = ::File.join(folder, "config/boot.rb")
        require boot if ::File.file?(boot)
        require_relative "railtie"
      end

      # Workers inherit these.
      def take_signals(log)
        trap("USR1") { log.reopen if log.respond_to?(:reopen) }
        trap("USR2") { Inspector.__send__(:print_in_handler, NO_RESTART) } # it would end the process
        Inspector.trap("TTIN")
      end
    end
  end
end
