# frozen_string_literal: true

module Ringspun
  module Cluster
    # The log of a cluster: a line of names and values for each event.
    #
    # @api private
    class Log
      def initialize(target)
        unless target.nil? || target.respond_to?(:info) || target.respond_to?(:write)
          raise UsageError, "logger: must be a Logger, an IO or nil, got #{target.inspect}"
        end

        @target = target
      end

      def info(event, **values) = say(:info, event, values)
      def warn(event, **values) = say(:warn, event, values)
      def error(event, **values) = say(:error, event, values)

      private

      # A log that fails must end neither a worker nor the parent.
      def say(severity, event, values)
        line = "ringspun.cluster event=#{event}#{values.map { |name, value| " #{name}=#{text_of(value)}" }.join}"
        if @target.respond_to?(severity)
          @target.public_send(severity, line)
        else
          @target&.write("#{line}\n")
        end
      rescue StandardError => error
        report_failure(error)
      end

      def report_failure(error)
        $stderr.write("ringspun.cluster event=log_failed error=#{text_of(error)}\n")
      rescue StandardError
        nil
      end

      def text_of(value)
        case value
        when Float then format("%.3g", value)
        when Exception then value.full_message(highlight: false).inspect
        else value.to_s.match?(/[\s"]|\A\z/) ? value.to_s.inspect : value.to_s
        end
      end
    end
  end
end
