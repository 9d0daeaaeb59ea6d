# frozen_string_literal: true

require "redis_client/ruby_connection"

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # RedisClient's own driver, with an encoder of ours, which takes half the time for commands with hundreds of entries, and
        # reads that are one operation of the machine: to enqueue jobs is hardly anything else.
        #
        # @api private
        class Driver < ::RedisClient::RubyConnection
          # The bytes between two parts of a command, by the length of the second:
          # https://redis.io/docs/latest/develop/reference/protocol-spec/#bulk-strings
          SEPARATORS = Array.new(1024) { |size| "\r\n$#{size}\r\n".freeze }.freeze

          # A command builder that leaves commands as they are: RedisClient's own looks for options in each part of each command.
          module AsTheyAre
            def self.generate(command, _options = nil) = command
          end

          # @param commands [Array<Array>]
          def write_multi(commands)
            begin
              text = encode(commands)
            rescue Encoding::CompatibilityError # some are not UTF-8
              return super
            end
            @io.write(text)
          rescue SystemCallError, IOError, OpenSSL::SSL::SSLError => error
            raise connection_error(error.message)
          end

          # Reads by the machine, in a run: one operation, in place of a read that finds nothing, a wait and another read.
          module ByMachine
            private

            def fill_buffer(strict, size = @chunk_size)
              missing = @offset - @buffer.bytesize
              return super if missing.negative? || !Machine.current?

              machine = Machine.current
              bytes = machine.timeout(@blocking_reads ? nil : @read_timeout) do
                machine.recv(@io, @buffer, [size, @chunk_size].max)
              end
              raise EOFError if bytes.zero?

              @offset = missing
              super(true, size - bytes) if strict && bytes < size
            rescue TimeoutError
              raise ::RedisClient::ReadTimeoutError, "no answer within #{Words.duration(@read_timeout)}"
            end
          end
          private_constant :ByMachine

          # Answers the replies, with errors among them, as RedisClient asks for where it does not raise them.
          #
          # @param commands [Array<Array>]
          # @param timeouts [Array<Numeric, nil>, nil]
          # @return [Array]
          def exchange(commands, timeouts)
            @pending_reads += commands.size
            write_multi(commands)
            commands.each_index.map do |index|
              timeout = timeouts && timeouts[index]
              reply = read(timeout && connection_timeout(timeout))
              @pending_reads -= 1
              reply._set_config(config) if reply.is_a?(::RedisClient::Error)
              reply
            end
          end

          private

          def connect
            super
            @io.extend(ByMachine) unless @config.ssl
          end

          def encode(commands)
            # Room for most commands: to grow in steps takes longer, and so does far too much.
            text = String.new(capacity: 256 * commands.sum(&:size), encoding: Encoding::UTF_8)
            commands.each do |command|
              text << "*" << command.size.to_s
              command.each do |part|
                part = part.to_s unless part.is_a?(String)
                size = part.bytesize
                text << (SEPARATORS[size] || "\r\n$#{size}\r\n") << part
              end
              text << "\r\n"
            end
            text
          end
        end
        private_constant :Driver
      end
    end
  end
end
