# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # One connection to the server, for one strand or thread at a time. It connects when it is first used, and again after it
        # was lost. In a forked child it makes a connection of its own.
        #
        # @api private
        class Connection
          # Seconds without use after which a PING comes first: the server, or something between, may have closed the
          # connection, and then a command would have an unknown outcome without need.
          IDLE_SECONDS = 5

          # Errors by which the server says: not now, and nothing has been done. For these and those below see
          # https://redis.io/docs/latest/develop/reference/errors/common/
          AWAY = /\A(?:LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/

          # Errors by which the server refuses a connection. A user that may connect, but not run a command, gets NOPERM as the
          # reply to that command.
          NO_ACCESS = /\A(?:WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password|ERR Client sent AUTH)/

          # @param config [RedisClient::Config, RedisClient::SentinelConfig]
          def initialize(config)
            @config = config
            @client = config.new_client
            @used_at = @id = nil
          end

          # Sends commands in one pipeline. May switch strands.
          #
          # @param commands [Array<Array>]
          # @param blocking [Float, nil] seconds that a command that waits may do so at the server
          # @return [Array] a reply for each; an {Error} where the server has refused
          # @raise [UnavailableError] nothing was sent
          # @raise [UnknownOutcomeError] not all replies came
          def exchange(commands, blocking: nil)
            replies = transmit(commands, blocking)
            return replies unless replies.any?(::RedisClient::Error)

            replies.each_with_index do |reply, index|
              next unless reply.is_a?(::RedisClient::Error)

              replies[index] = reply.is_a?(::RedisClient::NoScriptError) ? again_as_a_whole(commands[index]) : refusal(reply)
            end
          end

          # The number by which the server knows this connection. May switch strands.
          #
          # @return [Integer, nil] nil: the ACL refuses to tell it
          # @raise (see #exchange)
          def id
            @id ||= exchange([%w[CLIENT ID]]).first.then { |reply| reply unless reply.is_a?(Error) }
          end

          # Sends one command. May switch strands.
          #
          # @return [Object] its reply
          # @raise [Error] as for {#exchange}, or as the server has refused
          def call(*command)
            reply = exchange([command]).first
            raise reply if reply.is_a?(Error)

            reply
          end

          # @return [nil]
          def close
            @id = nil
            @client.close
            nil
          end

          private

          # An error now is the reply to this command alone: the others have been done.
          def again_as_a_whole(command)
            exchange([Script.whole(command)]).first
          rescue UnavailableError, UnknownOutcomeError => error
            error
          end

          def transmit(commands, blocking, again: @config.sentinel?)
            sent = false
            greet if @used_at && now - @used_at > IDLE_SECONDS
            replies = @client.exchange(commands, blocking && timeouts(commands, blocking)) { sent = true }
            @used_at = now
            replies
          rescue ::RedisClient::Error, SystemCallError, SocketError => error
            close
            # The master may have moved. Its sentinels are asked only when a new connection is made.
            return transmit(commands, blocking, again: false) if again && !sent

            raise lost(error, sent), cause: error
          rescue Exception # the reply is still to come, and the next command must not take it for its own
            close
            raise
          end

          # The commands that wait have names that begin like BLMOVE's.
          def timeouts(commands, blocking) = commands.map { |name, *| blocking if name.start_with?("BL") }

          # Without an answer the client drops its connection, and makes another one for the next command.
          def greet
            @client.call_once("PING")
          rescue ::RedisClient::Error
            @id = nil
          end

          def lost(error, sent)
            if error.message.match?(NO_ACCESS) then no_access(error)
            elsif sent
              UnknownOutcomeError.new("Redis has not answered, so what was sent may be done or not: #{error.message}")
            else
              UnavailableError.new("Redis cannot be reached, and nothing was sent: #{error.message}")
            end
          end

          def refusal(error)
            # The server was the master, and has become a replica.
            close if error.is_a?(::RedisClient::ReadOnlyError)
            return UnavailableError.new("Redis is not there yet: #{error.message}") if error.message.match?(AWAY)

            type = error.is_a?(::RedisClient::OutOfMemoryError) ? FullError : StorageError
            type.new("Redis has refused: #{error.message}")
          end

          def no_access(error)
            AccessError.new("Redis does not let this program in: #{error.message}; look at its user, password and ACL")
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
        private_constant :Connection
      end
    end
  end
end
