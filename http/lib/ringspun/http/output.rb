# frozen_string_literal: true

module Ringspun
  module HTTP
    # What a streaming body gets: it writes the answer, and reads what the client still sends.
    #
    # A client that has gone away raises {GoneError} or a SystemCallError in the strand that writes; one that takes nothing for as
    # long as the limit `write:` allows, a TimeoutError. A strand that does not write may wait for the first, see {#until_gone}.
    #
    # @since 0.1.0
    class Output
      # @param connection [Connection]
      # @param stream [Stream]
      # @param input [Input, nil] the body of the request; nil: all bytes are the program's, as behind a 101
      # @param peer [Peer]
      # @api private
      def initialize(connection, stream, input, peer)
        @connection = connection
        @stream = stream
        @input = input
        @peer = peer
      end

      # Writes a piece of the answer; it leaves at the end of the tick. Waits while the client reads slowly.
      #
      # May switch strands.
      #
      # @param strings [Array<#to_s>]
      # @return [Integer] bytes
      # @raise [GoneError, AnswerError, SystemCallError, TimeoutError]
      # @since 0.1.0
      def write(*strings)
        raise IOError, "closed for writing" if @closed_write

        bytes = 0
        strings.each do |string|
          string = string.to_s
          @connection.write(string)
          bytes += string.bytesize
        end
        bytes
      end

      # @param string [#to_s]
      # @return [self]
      # @raise (see #write)
      # @since 0.1.0
      def <<(string)
        write(string)
        self
      end

      # Waits until all that was written is in the hands of the kernel.
      #
      # May switch strands.
      #
      # @return [self]
      # @raise (see #write)
      # @since 0.1.0
      def flush
        @connection.flush
        self
      end

      # Waits until all of these bytes have come, or the end.
      #
      # May switch strands.
      #
      # @param length [Integer, nil] bytes; nil: all up to the end
      # @param buffer [String, nil] gets the bytes in place of a new String
      # @return [String, nil] nil: with a length, at the end
      # @raise [RequestError, SystemCallError]
      # @since 0.1.0
      def read(length = nil, buffer = nil)
        return at_end(length, buffer) if @closed_read
        return @input.read(length, buffer) if @input

        into(buffer, @stream.read(length)) || at_end(length, buffer)
      end

      # Waits until some bytes have come, for protocols in which nobody knows how many there will be.
      #
      # May switch strands.
      #
      # @param length [Integer] bytes at most
      # @param buffer [String, nil] gets the bytes in place of a new String
      # @return [String]
      # @raise [EOFError] at the end
      # @raise [RequestError, SystemCallError]
      # @since 0.1.0
      def readpartial(length, buffer = nil)
        raise IOError, "closed for reading" if @closed_read
        return @input.readpartial(length, buffer) if @input

        into(buffer, @stream.read_partial(length)) || raise(EOFError, "end of what the client has sent")
      end

      # Waits until the client has gone. See {Peer#wait_gone}.
      #
      # May switch strands.
      #
      # @param timeout [Numeric, nil] seconds; nil: no limit
      # @return [nil]
      # @raise [TimeoutError, UsageError]
      # @since 0.1.0
      def wait_gone(timeout: nil) = @peer.wait_gone(timeout:)

      # Runs the block in a scope that is cancelled when the client goes. See {Peer#until_gone}.
      #
      #   ->(output) { output.until_gone { queue.each { |line| output << line } } }
      #
      # May switch strands.
      #
      # @param drain [Boolean] whether it is cancelled as well when the server stops
      # @yieldparam scope [Scope]
      # @return [Object] the block's value; nil: the server stops
      # @raise [GoneError] the client has gone, and the block was cancelled
      # @since 0.1.0
      def until_gone(drain: false, &) = @peer.until_gone(drain:, &)

      # @return [Boolean] whether the server stops; an answer that could go on for long should end
      # @since 0.1.0
      def stopping? = @peer.stopping?

      # @return [nil]
      # @since 0.1.0
      def close_read
        @closed_read = true
        nil
      end

      # @return [nil]
      # @since 0.1.0
      def close_write
        @closed_write = true
        @closing&.broadcast
        nil
      end

      # Waits until the program has closed it for writing.
      #
      # @return [nil]
      # @raise [GoneError]
      # @api private
      def wait_closed
        return if @closed_write

        @closing = Condition.new
        until_gone { @closing.wait until @closed_write }
      end

      # @return [nil]
      # @since 0.1.0
      def close(_error = nil)
        close_read
        close_write
      end

      # @return [Boolean]
      # @since 0.1.0
      def closed? = @closed_read && @closed_write ? true : false

      private

      def into(buffer, bytes) = bytes && buffer ? buffer.replace(bytes) : bytes

      def at_end(length, buffer)
        buffer&.clear
        length.nil? || length.zero? ? buffer || +"".b : nil
      end
    end
  end
end
