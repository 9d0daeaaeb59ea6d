# frozen_string_literal: true

require_relative "root"

module Ringspun
  module AsyncBridge
    # For Async::Task.
    module Transient
      def transient=(value)
        if value && !transient? && alive? && root.is_a?(Root)
          raise UsageError, "a task that runs cannot become transient inside a Ringspun.run, which waits for it by now; " \
                            "say `Async(transient: true)` where it begins"
        end
        super
      end
    end
  end
end
