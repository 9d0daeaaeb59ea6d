# frozen_string_literal: true

require_relative "access_log/lines"

module Ringspun
  module HTTP
    # The log of requests: a line for each, also when it was refused, has failed, has taken too long, or its client has gone.
    #
    #   log = Ringspun::HTTP::AccessLog.new(:combined, to: "log/access.log")
    #   Ringspun::HTTP.run(app, listen: ["0.0.0.0", 9292], access_log: log)
    #
    # The lines go to a {LogFile}: requests do not wait for it, unless it falls behind by 256 KB, and a file that was moved away
    # is noticed within a second.
    #
    # @since 0.1.0
    class AccessLog
      # What it may be made of by its name, or by a proc.
      FORMATS = { common: Lines::Common, combined: Lines::Combined, json: Lines::JSON }.freeze
      private_constant :FORMATS

      class << self
        # @param what [AccessLog, Symbol, #call, nil]
        # @return [AccessLog, nil]
        # @raise [UsageError]
        # @api private
        def of(what) = what.nil? || what.is_a?(AccessLog) ? what : new(what)
      end

      # @param format [Symbol, #call] `:common`, `:combined` or `:json`; or what gets an {Exchange} and returns a line, or nil or
      #   false for none; of all else the standard error is told once
      # @param to [String, #write] the path of a file, or an IO
      # @raise [UsageError] there is no such format, or the file cannot be opened
      # @since 0.1.0
      def initialize(format = :combined, to: $stdout)
        @lines = format.respond_to?(:call) ? format : lines_of(format)
        @file = LogFile.new(to, name: "the access log")
      end

      # @param _exchange [Exchange]
      # @api private
      def began(_exchange) = nil

      # Writes the line of a request.
      #
      # May switch strands, when whoever reads the log has fallen behind.
      #
      # @param exchange [Exchange]
      # @return [nil]
      # @api private
      def ended(exchange)
        case line = @lines.call(exchange)
        when String then @file.write(line.end_with?("\n") ? line : "#{line}\n")
        when nil, false then nil
        else refuse(line)
        end
        nil
      end

      # Opens the file anew, after it was moved away. A handler of a signal may call it.
      #
      # @return [nil]
      # @since 0.1.0
      def reopen = @file.reopen

      # All lines so far are with the kernel when this returns.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def flush = @file.flush

      # Writes what there is, and closes the file. An IO that was given stays open.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def close = @file.close

      private

      def refuse(line)
        return if @told

        @told = true
        Warnings.tell("ringspun-http: access_log: takes a String for a line, and nil for none; what makes its lines has " \
                      "returned #{line.inspect}, which is told once")
      end

      def lines_of(format)
        kind = FORMATS[format.to_sym] if format.respond_to?(:to_sym)
        return kind.new if kind

        raise UsageError, "there is no access log #{format.inspect}; there are #{FORMATS.keys.map(&:inspect).join(", ")}, and " \
                          "procs that get an exchange and return a line"
      end
    end
  end
end
