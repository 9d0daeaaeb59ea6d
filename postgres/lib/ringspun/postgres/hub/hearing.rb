# frozen_string_literal: true

require "securerandom"

module Ringspun
  module Postgres
    class Hub
      # Whether what is notified reaches a new connection. Behind a pooler that gives each transaction another connection of the
      # server's, LISTEN succeeds, and nothing ever comes. Such a pooler names a process of its own when the connection begins;
      # then there is a notification on trial, from a second connection: one from the same might come back by chance, with the
      # answer to itself.
      #
      # @api private
      class Hearing
        # Seconds until it must have come.
        TRIAL = 5
        private_constant :TRIAL

        # @param patience [Numeric] seconds for an answer
        def initialize(pool, lane, patience)
          @pool = pool
          @lane = lane
          @patience = patience
        end

        # May switch strands.
        #
        # @return [Array] what was heard meanwhile
        # @raise [ListenUnsupported]
        def check
          return [] if ask(@lane, "select pg_backend_pid()").value.to_i == @lane.session.process

          name = "ringspun_#{SecureRandom.hex(12)}"
          ask(@lane, "LISTEN #{name}")
          notify(name)
          await(name).tap { ask(@lane, "UNLISTEN #{name}") }
        end

        private

        def ask(lane, sql, params = [])
          taken = lane.query(sql, params, @patience, false, true)
          taken.is_a?(Symbol) ? raise(Postgres.lost(lane.loss, false)) : taken
        end

        def notify(name)
          other = @pool.opener.call { Lane.open(@pool.config, @pool.canceller, shared: false) }
          ask(other, "select pg_notify($1, '')", [name])
        ensure
          other&.close
        end

        def await(name)
          due = Postgres.now + TRIAL
          all = []
          loop do
            heard = @lane.next_notifications([due - Postgres.now, 0].max)
            raise Postgres.lost(@lane.loss, false) if heard.empty?

            all.concat(heard)
            return all.reject { |channel, *| channel == name } if all.any? { |channel, *| channel == name }
          end
        rescue Ringspun::TimeoutError
          raise ListenUnsupported, "#{@lane.session.host}: LISTEN has no effect here, what is notified does not come. A pooler " \
                                   "stands before the server which gives each transaction another connection, as PgBouncer " \
                                   "does in transaction mode: listen with a client that connects to the server itself"
        end
      end
      private_constant :Hearing
    end
  end
end
