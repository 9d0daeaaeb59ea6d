# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # Unique locks, which expire.
        #
        # @api private
        module Locks
          # (see Storage#lock)
          def lock(token, jid, seconds, connection: nil)
            call(connection, Script[:lock].command(@prefix, token, jid, [(seconds * 1000).ceil, 1].max), again: true)
          end

          # (see Storage#unlock)
          def unlock(token, jid, connection: nil) = call(connection, Script[:unlock].command(@prefix, token, jid)) == 1
        end
        private_constant :Locks
      end
    end
  end
end
