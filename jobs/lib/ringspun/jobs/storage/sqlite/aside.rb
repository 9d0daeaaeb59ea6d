# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # Does what takes locks in a thread of its own, for a handler of a signal may take none, and may have interrupted the
        # thread that has one: https://docs.ruby-lang.org/en/master/signals_rdoc.html
        #
        # @api private
        module Aside
          module_function

          # Stops all strands meanwhile. A caller that is interrupted leaves the thread at its work.
          #
          # @return [Object] the block's value
          # @raise [StandardError] the block's
          def call(&) = Fiber.blocking { start(&).value }

          # @return [Thread]
          def start
            Thread.new do
              Thread.current.report_on_exception = false # whoever waits for it gets the error
              yield
            end
          end
        end
        private_constant :Aside
      end
    end
  end
end
