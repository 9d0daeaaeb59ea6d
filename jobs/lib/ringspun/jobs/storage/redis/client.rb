# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # RedisClient's own client, which connects, greets and asks sentinels, with one more method: it sends commands as they
        # are, once, and returns the replies as they come.
        #
        # @api private
        class Client < ::RedisClient
          # @param commands [Array<Array>]
          # @param timeouts [Array<Numeric, nil>, nil] seconds for which a command may wait at the server
          # @yield before anything is sent
          # @return [Array] an error of RedisClient where the server has refused
          def exchange(commands, timeouts)
            ensure_connected(retryable: false) do |connection|
              yield
              @middlewares.call_pipelined(commands, config) { connection.exchange(commands, timeouts) }
            end
          end
        end
        private_constant :Client
      end
    end
  end
end
