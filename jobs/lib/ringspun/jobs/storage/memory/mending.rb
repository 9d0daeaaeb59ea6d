# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The verbs that look and mend.
        #
        # @api private
        module Mending
          # (see Storage#list)
          def list(queue, from, count, connection: nil) = synchronize { (@queues[queue] || []).reverse[from, count] || [] }

          # (see Storage#scan)
          def scan(set, from, count, connection: nil)
            synchronize { @sets.fetch(set).sort_by { |entry, at| [at, entry] }[from, count] || [] }
          end

          # (see Storage#time)
          def time(connection: nil) = now
        end
      end
    end
  end
end
