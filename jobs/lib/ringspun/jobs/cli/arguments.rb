# frozen_string_literal: true

require "optparse"

module Ringspun
  module Jobs
    class CLI
      # The command line.
      #
      # @api private
      class Arguments
        HEAD = <<~TEXT
          Usage: ringspun-jobs [options]
                 ringspun-jobs COMMAND ... [options]

          Runs the jobs of a program: one strand each, a thousand at once in one process. Or does what a command says.

        TEXT

        FOOT = <<~TEXT

          Examples:
            ringspun-jobs -r ./app.rb
            ringspun-jobs -r . -q critical,5 -q default,1 -c 1000 --processes 4
            ringspun-jobs -C config/jobs.yml -e production --log log/jobs.log --log-format json
            ringspun-jobs pause reports -C config/jobs.yml

          A queue with a weight is asked first as often as its weight says; without any weight, the first queue
          that has jobs is served. Options win over Ringspun::Jobs.configure, and that over the configuration file.

          Signals:
            TERM, INT   no more jobs are fetched, those that run may end, and so does the process; again: they are
                        cancelled and go back to their queues; a third time: it ends at once
            TSTP        no more jobs are fetched
            USR2        the log file is opened anew
            HUP         the section cron of the configuration file is read again; not at a terminal, where it ends
            TTIN        prints what every strand waits for

          Exit status: 0 when it was told to end and has; 1 when something had to be killed, the storage has not done
          what it was told, or there is no such job; 64 when an option or the configuration is wrong.
        TEXT

        # Options that say something to a worker, and something else to a command.
        SHARED = %i[tag queue].freeze
        private_constant :SHARED

        # @return [String, nil] a file, a folder or a library
        attr_reader :program

        # @return [String, nil] the configuration file
        attr_reader :file

        # @return [String, nil]
        attr_reader :environment

        # @return [String, nil] what to print instead of running anything
        attr_reader :answer

        # @return [Class, nil] the {Command} to carry out instead of running jobs
        attr_reader :command

        # @return [Array<String>] the words after it
        attr_reader :names

        # @return [Hash{Symbol => Object}] the options that it has for itself, see {Command::OPTIONS}
        attr_reader :options

        # @param words [Array<String>]
        # @raise [ConfigError]
        def initialize(words)
          @settings = {}
          @queues = []
          @options = {}
          title, *@names = parser(Command::OPTIONS.keys - SHARED).parse(words.map { |word| utf8(word) })
          @command = command_of(title) if title
          check_options unless @answer
          @answer = help if @answer == :help
        rescue OptionParser::ParseError => error
          raise ConfigError, Suggestion.in_parse_error(error)
        end

        # @return [Hash{String => Object}] settings
        # @raise [ConfigError]
        def settings = @queues.any? && !@command ? { **@settings, "queues" => CLI.queues_of(@queues) } : @settings

        # @return [Boolean] whether an option says where the log goes, or in which form
        def log? = @settings.key?("log") || @settings.key?("log_format")

        # @return [String, nil] what is logged, if an option says so
        def log_level = @settings["log_level"]

        private

        # Where no LANG is set, as under cron, Ruby takes words with other letters for bytes.
        def utf8(word)
          text = word.encoding == Encoding::BINARY ? word.dup.force_encoding(Encoding::UTF_8) : word.encode(Encoding::UTF_8)
          text.valid_encoding? ? text : raise(ConfigError, "a word of the command line is no UTF-8: #{text.inspect}")
        rescue EncodingError
          raise ConfigError, "a word of the command line is no text: #{word.inspect}"
        end

        def command_of(title)
          Command.all.fetch(title) do
            raise ConfigError, "unknown command #{title.inspect}; --help lists the options, and #{Command.all.keys.join(", ")}"
          end
        end

        def check_options
          @options.update({ queue: @queues.last, tag: @settings.delete("tag") }.compact) if @command
          unknown = @options.keys - (@command ? @command.options : [])
          return if unknown.empty?

          name = unknown.first.name.tr("_", "-")
          raise ConfigError, "#{@command ? @command.title : "a worker"} takes no --#{name}; --help lists the options"
        end

        def parser(of_commands)
          OptionParser.new(HEAD, 26, "  ") do |options|
            what_to_run(options)
            how_to_run(options)
            where_to(options)
            for_commands(options, of_commands)
            options.separator commands
            options.separator FOOT
          end
        end

        def help = @command ? help_of_command : parser([]).to_s

        def commands
          lines = Command.all.each_value.map { |command| format("  %-24s %s", command.usage, command.text) }
          ["", "Commands, each with a --help of its own:", *lines].join("\n")
        end

        def help_of_command
          text = @command.text.sub(/\A./, &:upcase)
          more = "#{@command.more}\n" if @command.more
          OptionParser.new("Usage: ringspun-jobs #{@command.usage} [options]\n\n#{text}.\n\n#{more}", 26, "  ") { |options|
            for_commands(options, @command.options)
            options.separator ""
            options.separator "Where the jobs are:"
            where_jobs_are(options)
            storage_options(options)
          }.to_s
        end

        def for_commands(options, names)
          Command::OPTIONS.slice(*names).each do |name, words|
            next options.on(*words) { |value| (@options[:jid] ||= []) << value } if name == :jid

            options.on(*words) { |value| @options[name] = value }
          end
        end

        def what_to_run(options)
          where_jobs_are(options)
          options.on("-q", "--queue NAME[,WEIGHT]", "may be given several times; the default is default. '*' is all queues",
                     "that are not named, 'mail_*' those whose names begin so") do |value|
            @queues << value
          end
        end

        def where_jobs_are(options)
          options.on("-r", "--require PROGRAM", "a file, a library, or the folder of a Rails app; without",
                     "it, config/environment.rb") { |value| @program = value }
          options.on("-e", "--environment NAME", "such as production; section of the file, RAILS_ENV") do |value|
            @environment = value
          end
          places = "#{File::PLACES[..-2].join(", ")} or #{File::PLACES.last}"
          options.on("-C", "--config FILE", "YAML; by default the first there is of", places) { |value| @file = value }
        end

        def how_to_run(options)
          set(options, "-c", "--concurrency N", Integer, "jobs that a process runs at once; 1000")
          set(options, "--processes N", Integer, "worker processes; 1")
          set(options, "-t", "--timeout SECONDS", Numeric, "that jobs have to end; 25")
          set(options, "-g", "--tag NAME", String, "what ps and dashboards call the process")
        end

        def where_to(options)
          storage_options(options)
          set(options, "--log FILE", String, "by default - , the standard output")
          set(options, "--log-format FORMAT", String, "text or json")
          set(options, "--log-level LEVEL", String, "debug, info, warn, error")
          options.on("-v", "--verbose", "as --log-level debug") { @settings["log_level"] = "debug" }
          options.on("-V", "--version", "prints it") { @answer = "ringspun-jobs #{VERSION}" }
          options.on("-h", "--help", "prints this") { @answer = :help }
        end

        def storage_options(options) = Config.options.each { |words| set(options, *words) }

        def set(options, *words)
          name = words.find { |word| word.is_a?(String) && word.start_with?("--") }[/--([\w-]+)/, 1].tr("-", "_")
          options.on(*words) { |value| @settings[name] = value }
        end
      end
      private_constant :Arguments
    end
  end
end
