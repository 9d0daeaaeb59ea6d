# frozen_string_literal: true

require "json"

module Ringspun
  module Jobs
    class CLI
      # Something that the executable does instead of running jobs. A subclass is one command, named by the first word of its
      # usage.
      #
      # @api private
      class Command
        # The options that commands have for themselves, in the words that OptionParser takes. Those that choose jobs come first.
        OPTIONS = {
          class: ["--class NAME", "only jobs of that class"],
          jid: ["--jid JID", "only the job with that jid; may be given several times"],
          tag: ["--tag NAME", "only jobs with that tag"],
          text: ["--text TEXT", "only jobs with that in their arguments"],
          queue: ["-q", "--queue NAME", "only jobs of that queue"],
          from: ["--from STORAGE", "moves all jobs of that storage"],
          to: ["--to STORAGE", "and stores them in that one"],
          dry_run: ["--dry-run", "only counts what there is to move"],
          once: ["--once", "does not wait for jobs in flight, nor for those that come"],
          stay: ["--stay", "goes on until Ctrl-C, for clients that still enqueue into the old storage"],
          all: ["--all", "all jobs of the place; in a list, however many"],
          yes: ["--yes", "does not ask"],
          limit: ["--limit N", Integer, "how many at most; 100"],
          bind: ["--bind ADDRESS", "where web pages are served; 127.0.0.1, which only this machine reaches"],
          port: ["--port N", Integer, "and at which port; 9292"],
          interval: ["--interval SECONDS", Numeric, "from one look to the next; 1"],
          json: ["--json", "an object of JSON in each line"]
        }.freeze

        class << self
          # @return [Hash{String => Class}] all commands by their names
          def all = @all ||= {}

          # @return [String] how it is called, such as "pause QUEUE..."
          attr_reader :usage
          # @return [String] what it does, in one line
          attr_reader :text
          # @return [Array<Symbol>] which of {OPTIONS} it takes
          attr_reader :options

          # @return [String, nil] what its help says beside that
          def more = nil

          # @param _options [Hash{Symbol => Object}]
          # @return [Boolean] whether it needs the storage of the settings
          def storage?(_options) = true

          # @return [String]
          def title = usage[/\A\S+/]

          # Anybody may write names into the storage, and a terminal obeys control characters.
          #
          # @return [String]
          def printable(text) = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[^[:print:]]/, "?")

          # @param head [Array<String, nil>, nil]
          # @param rows [Array<Array>]
          # @return [Array<String>] lines
          def aligned(head, rows)
            columns = [head, *rows].compact.transpose.map do |cells|
              texts = cells.map { |cell| printable(cell) }
              width = texts.map(&:size).max
              texts.map { |text| cells.last.is_a?(Integer) ? text.rjust(width) : text.ljust(width) }
            end
            columns.transpose.map { |cells| cells.join("  ").rstrip }
          end

          # @param value [Object] of an entry, or with some
          # @return [String] its JSON, with bytes that are no text replaced, and numbers that JSON does not know as texts
          def json(value)
            JSON.generate(value)
          rescue JSON::GeneratorError, EncodingError
            JSON.generate(sayable(value))
          end

          private

          def sayable(value)
            case value
            when Hash then value.to_h { |name, each| [sayable(name.to_s), sayable(each)] }
            when Array then value.map { |each| sayable(each) }
            when String then value.dup.force_encoding(Encoding::UTF_8).scrub
            when Float then value.finite? ? value : value.to_s
            else value
            end
          end

          def command(usage, text, *options)
            @usage = usage
            @text = text
            @options = options
            Command.all[title] = self
          end
        end

        # @param storage [Storage, nil] nil: it needs none, see {storage?}
        # @param options [Hash{Symbol => Object}] of {OPTIONS}
        # @param input [IO] where to ask whether it is meant
        # @param output [IO]
        # @param errors [IO]
        def initialize(storage, options = {}, input: $stdin, output: $stdout, errors: $stderr)
          @storage = storage
          @options = options
          @input = input
          @output = output
          @errors = errors
        end

        # May switch strands.
        #
        # @param names [Array<String>] the words after the command
        # @return [Integer] the exit status
        # @raise [ConfigError] if they make no sense
        # @raise [Error] of the storage
        def call(names) = raise(NotImplementedError)

        private

        def refuse(why) = raise(ConfigError, "#{self.class.title}: #{why}")

        def none(names) = names.empty? || refuse("it takes no names, got #{names.first.inspect}")

        def json? = @options[:json]

        def tell(hash) = @output.puts(Command.json(hash))

        def say(line) = @output.puts(Command.printable(line).rstrip)

        def jobs(count) = Words.count(count, "job")

        def table(head, rows)
          return if rows.empty?

          Command.aligned(head, rows).each { |line| say(line) }
          say ""
        end
      end
      private_constant :Command
    end
  end
end
