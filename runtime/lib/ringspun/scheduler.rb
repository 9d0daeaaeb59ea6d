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

    # Methods of Ruby that wait for a child which the program knows, and may wait for again. All others, such as Kernel#system,
    # have one of their own. When IO.popen waits for it, what was cut off before may still stand on top of the stack.
    CHILD_OF_THE_PROGRAM = %w[wait wait2 waitpid waitpid2 waitall].freeze
    private_constant :CHILD_OF_THE_PROGRAM

    # Called by Process.wait, Kernel#system and the like: waits for a child process and reaps it. Where a cancellation, Timeout or
    # a signal cuts that short in a method that keeps its child for itself, such as Kernel#system or IO.popen, a thread waits in
    # its place. Nobody else could, and the child would stay a zombie for as long as this process lives.
    #
    # May switch strands.
    #
    # @param pid [Integer] as Process.wait takes it: -1 for any child, 0 or less than -1 for one of a process group
    # @param flags [Integer]
    # @return [Process::Status]
    # @since 0.1.0
    def process_wait(pid, flags)
      status = wait_for_child(pid, flags)
      waits = false
      status
    rescue UsageError # it has not begun to wait
      waits = false
      raise
    ensure
      Process.detach(pid) if waits.nil? && pid.positive? && !CHILD_OF_THE_PROGRAM.include?(waiting_method)
    end

    private

    # The name of Ruby's method that has called the hook.
    def waiting_method = caller_locations(2, 4).map(&:base_label).find { |name| name != "process_wait" }

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
