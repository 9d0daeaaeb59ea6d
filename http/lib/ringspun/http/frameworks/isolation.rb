# frozen_string_literal: true

module Ringspun
  module HTTP
    module Frameworks
      # Active Support keeps the state of a request, such as its connection to a database, by thread or by fiber. By thread two
      # requests at once would get each other's.
      #
      # @api private
      module Isolation
        WRONG = "this program keeps the state of a request by thread, and here requests share one, so that they would get each " \
                "other's connection to the database: set config.active_support.isolation_level = :fiber in " \
                "config/application.rb, or without Rails ActiveSupport::IsolatedExecutionState.isolation_level = :fiber before " \
                "Active Record is loaded"
        private_constant :WRONG

        # Active Support alone is set. Active Record has built its pools by what was set before.
        #
        # @raise [UsageError]
        def self.settle
          return unless defined?(::ActiveSupport::IsolatedExecutionState)

          state = ::ActiveSupport::IsolatedExecutionState
          return if state.isolation_level == :fiber
          raise UsageError, WRONG if defined?(::Rails.application.config) || defined?(::ActiveRecord::Base)

          state.isolation_level = :fiber
        end
      end
      private_constant :Isolation
    end
  end
end
