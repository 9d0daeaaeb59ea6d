# frozen_string_literal: true

module Ringspun
  module HTTP
    # The body of a request, read as it comes: `rack.input`. It cannot be rewound.
    #
    # Every method may switch strands, and raises {RequestError} when the body is not framed as it should be, ends before its end,
    # or does not come in time. On another thread than that of its server it raises a WrongThreadError, and takes nothing. When
    # the request has ended it raises an IOError.
    #
    # @since 0.1.0
    class Input
      # What is read at once where nobody says how much.
      PIECE_BYTES = 65_536
      private_constant :PIECE_BYTES

      # @param connection [Connection]
      # @api private
      def initialize(connection)
        @connection = connection
        @ahead = nil
      end

      # @param length [Integer, nil] bytes at most; nil: all that is left
      # @param buffer [String, nil] gets the bytes in place of a new String
      # @return [String, nil] nil: with a length, at the end of the body
      # @raise [RequestError, ArgumentError]
      # @since 0.1.0
      def read(length = nil, buffer = nil)
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        bytes = length ? up_to(length) : rest
        return buffer ? buffer.replace(bytes) : bytes if bytes

        buffer&.clear
        nil
      end

      # @return [String, nil] the next line, with its end; nil: there is none
      # @raise [RequestError]
      # @since 0.1.0
      def gets
        line = take || return
        until (ends = line.index("\n"))
          line << (take || (return line))
        end
        give_back(line, ends + 1)
      end

      # @yieldparam piece [String]
      # @return [self]
      # @raise [RequestError]
      # @since 0.1.0
      def each
        return to_enum unless block_given?

        while (piece = take)
          yield piece
        end
        self
      end

      # What has come, for protocols in which nobody knows how much there will be.
      #
      # @param length [Integer] bytes at most
      # @param buffer [String, nil] gets the bytes in place of a new String
      # @return [String]
      # @raise [EOFError] at the end of the body
      # @raise [RequestError]
      # @since 0.1.0
      def readpartial(length, buffer = nil)
        bytes = take(length) or raise(EOFError, "end of the body of the request")
        bytes = give_back(bytes, length)
        buffer ? buffer.replace(bytes) : bytes
      end

      # What was not read is dropped.
      #
      # @return [nil]
      # @since 0.1.0
      def close
        @connection.check_thread
        @closed = true
        @ahead = nil
      end

      private

      def take(most = PIECE_BYTES)
        @connection.check_thread
        raise IOError, "the body of the request was closed" if @closed

        ahead, @ahead = @ahead, nil
        ahead || @connection.read(most)
      end

      def take_all_of(most)
        @connection.check_thread
        return take unless @ahead.nil? && !@closed

        @connection.read_all_of(most)
      end

      # Keeps what is behind `length` bytes for the next call.
      def give_back(bytes, length)
        @ahead = bytes.byteslice(length..) if bytes.bytesize > length
        bytes.bytesize > length ? bytes.byteslice(0, length) : bytes
      end

      def up_to(length)
        return +"" if length.zero?

        bytes = take_all_of(length) || return
        while bytes.bytesize < length && (more = take_all_of(length - bytes.bytesize))
          bytes << more
        end
        give_back(bytes, length)
      end

      def rest
        bytes = take_all_of(@connection.left || PIECE_BYTES) || (return +"".b)
        while (more = take_all_of(PIECE_BYTES))
          bytes << more
        end
        bytes
      end
    end

    # That of a request without a body, one for all.
    #
    # @api private
    class NoInput
      def read(length = nil, buffer = nil)
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        buffer&.clear
        length.nil? || length.zero? ? buffer || +"".b : nil
      end

      def gets = nil
      def readpartial(*) = raise(EOFError, "the request has no body")
      def each = block_given? ? self : [].each
      def close = nil
    end
    private_constant :NoInput
  end
end
