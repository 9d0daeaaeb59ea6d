# frozen_string_literal: true

module Ringspun
  module AsyncBridge
    # The root of the tree of tasks, which `task.reactor` returns. It passes the methods of a reactor on to the scheduler.
    class Root < ::Async::Node
      def initialize(scheduler)
        super()
        @scheduler = scheduler
      end

      %i[resume push raise transfer yield with_timeout load async run closed? block unblock kernel_sleep io_wait process_wait
         address_resolve].each do |name|
        define_method(name) { |*arguments, **options, &block| @scheduler.public_send(name, *arguments, **options, &block) }
      end

      # Stops all children, like a reactor and unlike a task also the transient ones.
      def cancel(later = false, **)
        @children&.each { |child| child.stop(later) }
      end

      def stop(...) = cancel(...)

      # Called by the child. Public, and not protected as in Async::Node, because a task is no {Root}.
      def remove_child(child)
        super
        @scheduler.__send__(:task_left)
      end

      private

      def method_missing(name, ...) = @scheduler.__send__(:refuse, name) || super

      def respond_to_missing?(*) = false
    end
  end
end
