# frozen_string_literal: true

module Ringspun
  module Jobs
    class Railtie
      # What an application logs in a worker goes to the worker's log, in the form that this has. And of a job of Active Job there
      # is the worker's line alone, without those by which Active Job says that it begins and ends: an error that a job raises,
      # or that ends it at a deploy, would be there twice, once with its backtrace.
      #
      # @api private
      module Logging
        # In front of Active Job's own, which logs jobs that other adapters run here.
        module OneLine
          def perform_start(event) = told?(event) ? nil : super

          # That a callback has stopped a job nobody else says.
          def perform(event) = told?(event) && !event.payload[:aborted] ? nil : super

          private

          def told?(event) = event.payload[:adapter].is_a?(ActiveJob::Adapter)
        end
        private_constant :OneLine

        # Once in a process.
        #
        # @param logger [Logger] the worker's
        # @param standard [Boolean] whether that writes to the standard output
        def self.start(logger, standard:)
          ::ActiveJob::LogSubscriber.prepend(OneLine) if defined?(::ActiveJob)
          rails = ::Rails.logger
          return if !rails.respond_to?(:broadcast_to) || (rails == logger) || rails.broadcasts.include?(logger)

          doubled = rails.broadcasts.select { |one| standard && ::ActiveSupport::Logger.logger_outputs_to?(one, $stdout) }
          one = silenced(logger)
          # One of them alone may have tags: a block with tags is called by each that has, and a job runs in such a block.
          one = ::ActiveSupport::TaggedLogging.new(one) if (rails.broadcasts - doubled).none? { |other| other.respond_to?(:tagged) }
          rails.broadcast_to(one)
          doubled.each { |other| rails.stop_broadcasting_to(other) }
        end

        # As an application expects its logger: one that can be silenced.
        def self.silenced(logger)
          return logger unless logger.respond_to?(:device)

          ::ActiveSupport::Logger.new(logger.device, level: logger.level).tap { |made| made.formatter = logger.lines }
        end
        private_class_method :silenced
      end
      private_constant :Logging
    end
  end
end
