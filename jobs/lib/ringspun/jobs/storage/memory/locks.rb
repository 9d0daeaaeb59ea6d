# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # Unique locks, which expire.
        #
        # @api private
        module Locks
          # (see Storage#lock)
          def lock(token, jid, seconds, connection: nil)
            synchronize do
              holder = hold(token, jid, seconds)
              next holder if holder && holder != jid

              @locks[token] = [jid, lasting + seconds]
              nil
            end
          end

          # (see Storage#unlock)
          def unlock(token, jid, connection: nil) = synchronize { release(token, jid) }

          private

          # @return [String, nil] the jid that holds the lock already; nil: the lock is taken for `jid`
          def hold(token, jid, seconds)
            holder, ends = @locks[token]
            return holder if holder && ends > lasting

            @locks[token] = [jid, lasting + seconds]
            nil
          end

          def release(token, jid)
            holder, ends = @locks[token]
            return false unless holder == jid && ends > lasting

            @locks.delete(token)
            true
          end

          # The lock of a job that will not run, unless it is one until expiry.
          def release_lock_of(stored)
            job = Wire.read(stored.entry) or return
            release(job["unique_token"], job["jid"]) unless job["unique_until"] == "expiry"
          end
        end
        private_constant :Locks
      end
    end
  end
end
