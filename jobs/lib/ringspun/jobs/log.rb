# frozen_string_literal: true

require "logger"
require_relative "log/lines"

module Ringspun
  module Jobs
    # The log of a worker: a line when a job has ended, a debug line when it starts, and what happens around jobs, each with names
    # and values.
    #
    #   2026-11-22T20:00:00.000Z INFO pid=4711 jid=b4a577edbccf1d805744efa9 class=MailJob queue=default elapsed=0.012 done
    #
    # It writes by a Logger. One that {open} has made gets whole lines, which costs least; any other gets messages without time
    # and pid, and formats them itself.
    class Log
      # The lowest first.
      LEVELS = %i[debug info warn error fatal].freeze

      # A Logger that writes lines of ours, and whose own methods jobs can call.
      #
      # @api private
      class Front < ::Logger
        attr_reader :device, :lines

        def initialize(device, lines, level)
          super(device, level:, formatter: lines)
          @device = device
          @lines = lines
        end

        # One of ours changes the worker's own lines as well.
        def formatter=(formatter)
          super
          @lines = formatter if formatter.is_a?(Lines)
        end

        # The file that it has, anew.
        def reopen(*)
          @device.reopen
          @device.flush
          self
        end
      end
      private_constant :Front

      # @param path [String] a file; "-" is the standard output
      # @param format [String] "text" or "json"
      # @param level [String] the lowest that is logged: one of {LEVELS}
      # @return [Logger] which writes the lines of many strands at once, see {LogFile}
      # @raise [ConfigError] when the file cannot be opened
      # @since 0.1.0
      def self.open(path: "-", format: "text", level: "info")
        file = LogFile.new(path == "-" ? $stdout : path)
        Front.new(file, format.to_s == "json" ? JSONLines.new : TextLines.new, level.to_s)
      rescue UsageError => error
        raise ConfigError, error.message
      end

      # @api private
      def self.fields_of(...) = Lines.fields_of(...)

      # @return [Logger]
      # @since 0.1.0
      attr_reader :logger

      # @param logger [Logger] one of {open}'s or any other
      # @since 0.1.0
      def initialize(logger)
        @logger = logger
        @front = logger if logger.is_a?(Front)
      end

      # Logs that a job begins. As all of these, raises nothing, and may switch strands.
      #
      # @param job [Hash]
      # @return [void]
      # @since 0.1.0
      def started(job)
        log(:debug, "start", Lines.fields_of(job)) if @logger.debug?
      end

      # Logs that a job is done.
      #
      # @param job [Hash]
      # @param seconds [Float] that the job has taken
      # @return [void]
      # @since 0.1.0
      def done(job, seconds)
        return unless @logger.info?
        return log(:info, "done", Lines.fields_of(job, seconds)) unless @front

        surely { @front.device.write(@front.lines.done(job, seconds)) }
      end

      # Logs that a job has failed.
      #
      # @param job [Hash]
      # @param error [Exception]
      # @param seconds [Float] that the job has taken
      # @param what [String] what becomes of it, such as "retry in 20 s"
      # @return [void]
      # @since 0.1.0
      def failed(job, error, seconds, what)
        return unless @logger.warn?

        fields = Lines.fields_of(job, seconds)
        fields[:error] = error.class.name || error.class.inspect
        fields[:message] = message_of(error)
        place = error.backtrace&.first
        fields[:at] = place if place
        log(:warn, "failed: #{what}", fields)
      end

      # Logs anything else.
      #
      # @param level [Symbol] one of {LEVELS}
      # @param text [String]
      # @param fields [Hash{Symbol => Object}]
      # @return [void]
      # @since 0.1.0
      def event(level, text, **fields)
        log(level, text, fields) if @logger.public_send(:"#{level}?")
      end

      # All lines so far are written when this returns. May switch strands.
      #
      # @return [void]
      # @since 0.1.0
      def flush = @front&.device&.flush

      # Opens the file anew, after it was moved away. May switch strands.
      #
      # @return [void]
      # @since 0.1.0
      def reopen
        @logger.reopen if @logger.respond_to?(:reopen)
      rescue StandardError => error # a signal has asked for it, so nobody else hears
        event(:error, "the log stays as it is: #{error.message}")
      end

      private

      def log(level, text, fields)
        surely do
          next @front.device.write(@front.lines.line(level, text, fields)) if @front

          @logger.public_send(level, TextLines.message(text, fields))
        end
      end

      # A line that cannot be logged must not end the worker, which logs it.
      def surely
        yield
      rescue StandardError => error
        return if @lost

        @lost = true
        Warnings.tell("ringspun-jobs: a line of the log is lost: #{error.class}: #{Lines.utf8(error.message)}")
      end

      # An error's `message` may be the job's own code, and raise.
      def message_of(error)
        Lines.utf8(error.message.to_s)[0, 1000]
      rescue StandardError => another
        "its message raises #{another.class}"
      end
    end
  end
end
