# frozen_string_literal: true

module Ringspun
  module HTTP
    # What a streaming body gets: it writes the answer, and reads what the client still sends.
    #
    # A client that has gone away raises {GoneError} or a SystemCallError in the strand that writes; one that takes nothing for as
    # long as the limit `write:` allows, a TimeoutError. A strand that does not write may wait for the first, see {#until_gone}.
    #
    # It is for strands of its server's thread. On another thread all methods but {#stopping?} and {#closed?} raise a
    # WrongThreadError, and the answer is cut, for what that thread was to write is missing. What a thread makes goes to a strand
    # that writes it, by a Thread::Queue.
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
      # @raise [GoneError, AnswerError, SystemCallError, TimeoutError, WrongThreadError]
      # @raise [IOError] it was closed, or its answer has ended
      # @since 0.1.0
      def write(*strings)
        check_thread
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
        check_thread
        raise IOError, "closed for writing" if @closed_write

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
      # @raise [RequestError, SystemCallError, WrongThreadError]
      # @since 0.1.0
      def read(length = nil, buffer = nil)
        check_thread
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
      # @raise [RequestError, SystemCallError, WrongThreadError]
      # @since 0.1.0
      def readpartial(length, buffer = nil)
        check_thread
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
      # @raise [TimeoutError, UsageError, WrongThreadError]
      # @since 0.1.0
      def wait_gone(timeout: nil)
        check_thread
        @peer.wait_gone(timeout:)
      end

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
      # @raise [WrongThreadError]
      # @since 0.1.0
      def until_gone(drain: false, &)
        check_thread
        @peer.until_gone(drain:, &)
      end

      # @return [Boolean] whether the server stops; an answer that could go on for long should end
      # @since 0.1.0
      def stopping? = @peer.stopping?

      # @return [nil]
      # @raise [WrongThreadError]
      # @since 0.1.0
      def close_read
        check_thread
        @closed_read = true
        nil
      end

      # @return [nil]
      # @raise [WrongThreadError]
      # @since 0.1.0
      def close_write
        check_thread
        @closed_write = true
        @closing&.push(nil)
        nil
      end

      # Waits until the program has closed it for writing, or another thread has used it, which {#check_whole} tells.
      #
      # @return [nil]
      # @raise [GoneError]
      # @api private
      def wait_closed
        @closing = Thread::Queue.new
        @peer.until_gone { @closing.pop } unless @closed_write || @misused
      end

      # @return [nil]
      # @raise [WrongThreadError] another thread has used it
      # @api private
      def check_whole
        raise @misused if @misused
      end

      # @return [nil]
      # @raise [WrongThreadError]
      # @since 0.1.0
      def close(_error = nil)
        close_read
        close_write
      end

      # @return [Boolean]
      # @since 0.1.0
      def closed? = @closed_read && @closed_write ? true : false

      private

      # From any thread. What it notes is seen by the strand of the answer, which may wait for it.
      def check_thread
        @connection.check_thread
      rescue WrongThreadError => error
        @misused ||= error
        @closing&.push(nil)
        raise
      end

      def into(buffer, bytes) = bytes && buffer ? buffer.replace(bytes) : bytes

      def at_end(length, buffer)
        buffer&.clear
        length.nil? || length.zero? ? buffer || +"".b : nil
      end
    end
  end
end
