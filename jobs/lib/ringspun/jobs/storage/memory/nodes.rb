# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The verbs about nodes.
        #
        # @api private
        module Nodes
          # (see Storage#extend)
          def extend(nodes, seconds, connection: nil)
            synchronize do
              nodes.map do |node|
                held = !@lists.key?(node) || (@leases[node] || 0) > now
                register(node)
                @leases[node] = now + seconds
                held
              end
            end
          end
        end
      end
    end
  end
end
