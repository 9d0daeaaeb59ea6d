# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # One connection to the server, for one strand or thread at a time. It connects when it is first used, and anew after it
        # was lost. After a fork the child's makes a connection of its own.
        #
        # @api private
        class Connection
          # After so many seconds without use we ask whether the server still knows us: it, or what stands between, may have
          # closed the connection meanwhile, and what is sent then has an unknown outcome that it need not have.
          IDLE_SECONDS = 5

          # Errors of the server that say: not now, and nothing has been done.
          AWAY = /\A(?:LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/

          # Errors of the server that say: not you. Who connects gets them; whoever may do one thing and not another has got
          # further.
          NO_ACCESS = /\A(?:WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password|ERR Client sent AUTH)/

          # @param config [RedisClient::Config, RedisClient::SentinelConfig]
          def initialize(config)
            @config = config
            @client = config.new_client
            @middlewares = config.middlewares_stack.new(@client)
            @used_at = nil
          end

          # Sends commands in one go. May switch strands.
          #
          # @param commands [Array<Array>]
          # @param blocking [Float, nil] seconds that the last command may wait at the server
          # @return [Array] a reply for each; an {Error} of ours where the server has refused
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
            @client.close
            nil
          end

          private

          # What goes wrong now is this command's alone: the others have been done.
          def again_as_a_whole(command)
            exchange([Script.whole(command)]).first
          rescue UnavailableError, UnknownOutcomeError => error
            error
          end

          def transmit(commands, blocking, again: @config.sentinel?)
            sent = false
            greet if @used_at && now - @used_at > IDLE_SECONDS
            replies = @client.disable_reconnection do |wire|
              sent = true
              @middlewares.call_pipelined(commands, @config) do
                wire.call_pipelined(commands, blocking && [*Array.new(commands.size - 1), blocking], exception: false)
              end
            end
            @used_at = now
            replies
          rescue ::RedisClient::Error, SystemCallError, SocketError => error
            close
            # The sentinels have not been asked yet who is the master now.
            return transmit(commands, blocking, again: false) if again && !sent

            raise lost(error, sent), cause: error
          rescue Exception # which has cut the wait for a reply short: the next one must not be taken for it
            close
            raise
          end

          # If there is no answer the client forgets its connection, and makes the next one.
          def greet
            @client.call_once("PING")
          rescue ::RedisClient::Error
            nil
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
            # It was the master, and is none any more.
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
