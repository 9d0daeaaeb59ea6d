# frozen_string_literal: true

require "logger"

module Ringspun
  module Jobs
    module Sidekiq
      # A Logger that a program makes for itself.
      class Logger < ::Logger
        # Forms of lines: ours, by Sidekiq's names. The first three are one, as there are no colours here.
        module Formatters
          Pretty = Log.const_get(:TextLines)
          Plain = Pretty
          WithoutTimestamp = Pretty
          JSON = Log.const_get(:JSONLines)
        end

        # @param device [IO, String] see Logger
        # @since 0.1.0
        def initialize(device = $stdout, *, formatter: Formatters::Pretty.new, **)
          super
        end
      end
    end
  end
end
