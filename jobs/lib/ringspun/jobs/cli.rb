# frozen_string_literal: true

require "ringspun/jobs"
require_relative "cli/arguments"
require_relative "cli/commands"
require_relative "cli/file"
require_relative "cli/program"
require_relative "cli/schedules"
require_relative "launcher/supervisor"
require_relative "launcher/worker_process"

module Ringspun
  module Jobs
    # The executable `ringspun-jobs`. The command line wins over {Jobs.configure}, that over the configuration file, and that over
    # the defaults.
    class CLI
      # It was told to end, and every job has ended or is back in its queue; or a command was carried out.
      SUCCESS = 0
      # Something had to be killed, or failed.
      FAILURE = 1
      # An option or the configuration is wrong.
      USAGE = 64
      # Ctrl-C has ended a command.
      INTERRUPTED = 130
      # What an output raises that takes nothing more, as a file on a full disk.
      UNPRINTED = [Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG, Errno::EIO, Errno::EBADF, IOError].freeze
      private_constant :UNPRINTED

      # @return [Boolean] whether this process is the executable
      # @since 0.1.0
      def self.running? = @running == true

      # @param arguments [Array<String>] the command line
      # @param output [IO] for answers, such as the one to --help
      # @param errors [IO]
      # @param input [IO] where commands ask whether it is meant
      # @since 0.1.0
      def initialize(arguments, output: $stdout, errors: $stderr, input: $stdin)
        @arguments = arguments
        @input = input
        @output = output
        @errors = errors
      end

      # Runs workers until they are told to end; or carries out a command, such as to pause a queue.
      #
      # @return [Integer] the exit status: {SUCCESS}, {FAILURE} or {USAGE}
      # @raise [Exception] what the program raises while it is loaded
      # @since 0.1.0
      def run
        arguments = Arguments.new(@arguments)
        return printing { answer(arguments.answer) } if arguments.answer

        CLI.instance_variable_set(:@running, true)
        settle(arguments)
        return printing { carry_out(arguments) } if arguments.command

        settle_log(arguments)
        log = Log.new(Jobs.config.logger)
        serve(Jobs.config, log)
      rescue ConfigError => error
        @errors.puts "ringspun-jobs: #{error.message}"
        USAGE
      ensure
        log&.flush
      end

      private

      def answer(text)
        @output.puts text
        SUCCESS
      end

      # What is printed is with the kernel when this returns: Ruby's own flush at the end of a process tells nobody of an error.
      def printing
        status = yield
        @output.flush
        status
      rescue Errno::EPIPE # whoever reads has read enough
        SUCCESS
      rescue *UNPRINTED => error
        @errors.puts "ringspun-jobs: not all could be printed: #{error.message}"
        FAILURE
      end

      # The file is read before the program is loaded, for the program may change its settings.
      def settle(arguments)
        ENV["RACK_ENV"] = arguments.environment if arguments.environment
        Home.loaded(nil)
        environment = arguments.environment || Home.section
        file = File.new(arguments.file, environment)
        @file = -> { File.new(file.path || arguments.file, environment) }
        Jobs.configure { |config| config.update(file.settings) }
        @schedule = Jobs.config.cron
        program = arguments.program || file.program
        # A command needs the program only because that may configure the storage.
        Program.new(program, environment).load if !arguments.command || program || Program.rails?
        Jobs.configure { |config| config.update(settings_of(arguments)).check }
      end

      # Whoever types a path means one in the current folder.
      def settings_of(arguments)
        settings = arguments.settings
        settings.key?("storage") ? { **settings, "storage" => Storage.located(settings["storage"], Dir.pwd) } : settings
      end

      def carry_out(arguments)
        storage = Jobs.storage if arguments.command.storage?(arguments.options)
        command = arguments.command.new(storage, arguments.options, input: @input, output: @output, errors: @errors)
        command.call(arguments.names)
      rescue Interrupt
        INTERRUPTED
      rescue StorageError, UnavailableError, UnknownOutcomeError => error
        @errors.puts "ringspun-jobs: #{error.message}"
        FAILURE
      end

      # A logger of the program's stays, unless an option says where the log goes.
      def settle_log(arguments)
        config = Jobs.config
        if arguments.log? || config.logger.nil?
          config.logger = Log.open(path: config.log, format: config.log_format, level: config.log_level)
        elsif arguments.log_level
          config.logger.level = config.log_level
        end
      end

      # Makes the storage here, where an error in its settings is printed in one line.
      def serve(config, log)
        storage = Jobs.storage
        Jobs.introduce(storage, also_named: false) # the line of a worker that is ready has it in any case
        config.cron_entries
        Schedules.tell_of_unread(config, log)
        reload = Schedules.new(config, @schedule, @file) unless @input.tty?
        return WorkerProcess.new(config, log, reload:).run ? SUCCESS : FAILURE if config.processes == 1
        raise ConfigError, "processes must be 1 where the storage is in the memory of one process" unless storage.shared?

        Process.warmup
        Supervisor.new(config, log, reload:).run ? SUCCESS : FAILURE
      end
    end
  end
end
