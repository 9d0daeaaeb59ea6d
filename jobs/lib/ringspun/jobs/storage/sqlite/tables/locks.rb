# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # Unique locks, which expire, and the jids of what was pushed with one.
          #
          # @api private
          module Locks
            # @return [String, nil] another jid that holds it
            def lock(token, jid, seconds)
              holder = hold(token, jid, seconds)
              return holder if holder && holder != jid

              take(token, jid, seconds, true)
              nil
            end

            # @return [Boolean]
            def release(token, jid)
              run("DELETE FROM locks WHERE token = ? AND jid = ? AND ends > ?", text(token), text(jid), lasting).positive?
            end

            private

            # @param stays [Boolean] whether it may be there when its job is not
            # @return [String, nil] the jid that holds the lock already; nil: the lock is taken for `jid`
            def hold(token, jid, seconds, stays: true)
              holder = value("SELECT jid FROM locks WHERE token = ? AND ends > ?", text(token), lasting)
              return holder if holder

              take(token, jid, seconds, stays)
              nil
            end

            def take(token, jid, seconds, stays)
              run("DELETE FROM locks WHERE token IN (SELECT token FROM locks WHERE ends <= ? LIMIT 10)", lasting)
              run("INSERT OR REPLACE INTO locks (token, jid, ends, stays) VALUES (?, ?, ?, ?)", text(token), text(jid),
                  lasting + seconds, stays ? 1 : 0)
            end

            # The lock of a job that will not run, unless it is one until expiry.
            def release_lock_of(entry)
              job = Wire.read(entry) or return
              token = job["unique_token"]
              release(token, job["jid"]) if token.is_a?(String) && job["unique_until"] != "expiry"
            end

            def pushed_before?(jid) = !value("SELECT 1 FROM pushed WHERE jid = ? AND ends > ?", text(jid), lasting).nil?

            def remember_push(jid)
              run("DELETE FROM pushed WHERE jid IN (SELECT jid FROM pushed WHERE ends <= ? LIMIT 10)", lasting)
              run("INSERT OR REPLACE INTO pushed (jid, ends) VALUES (?, ?)", text(jid), lasting + AGAIN_SECONDS)
            end
          end
          private_constant :Locks
        end
      end
    end
  end
end
