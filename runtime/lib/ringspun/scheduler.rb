# frozen_string_literal: true

module Ringspun
  class Scheduler
    # What is said where the gem async asks for something that its own scheduler has, and ours has not.
    module Unanswered
      private

      # With the bridge `raise` is a method of the scheduler's, for a fiber.
      #
      # @raise [UsageError] for the names of methods of Async::Scheduler
      # @return [nil] for others
      def refuse(name)
        return unless Object.const_defined?("Async::Scheduler") && ::Async::Scheduler.method_defined?(name)

        Kernel.raise UsageError, "inside a Ringspun.run the gem async's `#{name}` is not supported" if defined?(AsyncBridge)

        Kernel.raise UsageError, "inside a Ringspun.run the gem async (Async {}, Sync {}, and gems that use them) needs " \
                                 "`require \"ringspun/async\"`; it has asked for `#{name}`"
      end

      def method_missing(name, ...) = refuse(name) || super

      def respond_to_missing?(*) = false
    end
    include Unanswered
    private_constant :Unanswered

    private

    # At the end of a run: what goes on beside its strands. See AsyncBridge.
    def end_tasks = nil
  end

  # Active Record lends a connection to a thread, unless it is told to lend it to a fiber: strands of one thread would use the
  # same connection at the same time. That is said once, at the first query in a strand.
  module Isolation
    class << self
      # Called where a strand is spun and files have been loaded since the one before: Active Support may be among them. It cannot
      # be used outside of the main ractor.
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
