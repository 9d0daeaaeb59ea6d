# frozen_string_literal: true

module Ringspun
  class Scheduler
    # The answers to methods of Async::Scheduler that this scheduler does not have.
    module Unanswered
      private

      # Kernel.raise: with the bridge, `raise` is a method of the scheduler, for a fiber.
      #
      # @raise [UsageError] for the names of methods of Async::Scheduler
      # @return [nil] for others
      def refuse(name)
        return unless Object.const_defined?("Async::Scheduler") && ::Async::Scheduler.method_defined?(name)

        Kernel.raise UsageError, "inside a Ringspun.run the gem async#{advice(name)}"
      end

      # The bridge, which answers more, has other advice.
      def advice(name)
        " (Async {}, Sync {}, and gems that use them) needs `require \"ringspun/async\"`; it has asked for `#{name}`"
      end

      def method_missing(name, ...) = refuse(name) || super

      def respond_to_missing?(*) = false
    end
    include Unanswered
    private_constant :Unanswered

    private

    # Called at the end of a run. The bridge to Async ends its tasks here.
    def end_tasks = nil
  end

  # Warns once, at the first query in a strand, if Active Record has a connection for each thread. The strands of a thread would
  # use the same connection at the same time. With `isolation_level = :fiber` each strand has its own.
  module Isolation
    class << self
      # Called when a strand is spun after files were loaded: Active Support may be among them. It cannot be used outside of the
      # main ractor.
      def watch
        return if @watches || !defined?(::ActiveSupport::IsolatedExecutionState) || !::ActiveSupport.respond_to?(:on_load)
        return unless Ractor.current == Ractor.main

        @watches = true
        ::ActiveSupport.on_load(:active_record) { Isolation.__send__(:listen) }
      end

      private

      def listen
        @subscription = ::ActiveSupport::Notifications.subscribe("sql.active_record") { check if Scheduler === Fiber.scheduler }
      end

      def check
        ::ActiveSupport::Notifications.unsubscribe(@subscription)
        return if ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber

        warn("ringspun: Active Record lends its connections to threads, so that the strands of a thread share one, and their " \
             "queries and transactions get mixed; before the first query, say " \
             "`ActiveSupport::IsolatedExecutionState.isolation_level = :fiber`, or in Rails " \
             "`config.active_support.isolation_level = :fiber`")
      end
    end
  end
  private_constant :Isolation
end
