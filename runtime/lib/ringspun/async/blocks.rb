# frozen_string_literal: true

module Ringspun
  module AsyncBridge
    # Included in Object, before Kernel.
    module Blocks
      # If no task runs, the block's task has ended when this returns, also if the strand is cancelled.
      def Sync(**, &)
        scheduler = Fiber.scheduler
        return super unless scheduler.is_a?(Scheduler) && !::Async::Task.current?

        scheduler.sync(**, &)
      end
    end
  end
end
