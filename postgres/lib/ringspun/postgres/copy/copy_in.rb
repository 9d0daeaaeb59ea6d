# frozen_string_literal: true

module Ringspun
  module Postgres
    # What the block of {Copying#copy_in} gives its rows to.
    #
    # @since 0.1.0
    class CopyIn
      # @api private
      # @param session [Session]
      # @param rows [CopyRows]
      # @param deadline [Float, nil]
      # @param progress [#call, nil]
      def initialize(session, rows, deadline, progress)
        @session = session
        @rows = rows
        @deadline = deadline
        @progress = progress
        @bytes = 0
        @open = true
      end

      # Adds a row, or bytes as they are. They are sent when there are 64 KB of them, and then this waits while more than as many
      # have not left: so it goes no faster than the server reads.
      #
      # May switch strands.
      #
      # @param item [Array<Object>, String] the values of a row in the order of the columns; or bytes of the statement's format,
      #   any number of rows or a part of one
      # @return [self]
      # @raise [InvalidRow] a value that Postgres cannot have; nothing of the row was added
      # @raise [ServerError] what the server found wrong in what was sent before
      # @raise [TimeoutError] nothing of the COPY takes effect
      # @since 0.1.0
      def <<(item)
        raise UsageError, "this COPY has ended; use it inside of its block only" unless @open

        send_rows if @rows.add(item)
        self
      end

      alias write <<
      alias write_row <<

      # @return [Integer] bytes that were sent
      # @since 0.1.0
      attr_reader :bytes

      # @return [Integer] rows that were made of values
      # @since 0.1.0
      def rows = @rows.count

      # @return [String]
      def inspect = "#<#{self.class} rows: #{rows}, bytes: #{bytes}#{" ended" unless @open}>"

      private

      # All that the source has.
      def take(source)
        case source
        when String then self << source
        else source.respond_to?(:each) && !readable?(source) ? source.each { |item| self << item } : take_bytes(source)
        end
      end

      def readable?(source) = source.respond_to?(:read_partial) || source.respond_to?(:readpartial)

      # Bytes of a read: as many are worth a message (FULL in client/copy_rows.c).
      PIECE = 65_536
      private_constant :PIECE

      def take_bytes(source)
        unless readable?(source)
          raise UsageError, "expected rows (each), an IO or Stream, a String, or a block, got one of #{source.class}"
        end
        return take_stream(source) if source.respond_to?(:read_partial)

        while (bytes = read_from(source))
          self << bytes
        end
      end

      def read_from(io)
        io.readpartial(PIECE)
      rescue EOFError
        nil
      end

      def take_stream(stream)
        while (bytes = stream.read_partial(PIECE))
          self << bytes
        end
      end

      def left = @deadline && [@deadline - Postgres.now, 0].max

      def send_rows
        bytes = @rows.take
        return if bytes.empty?
        return ended unless put(bytes)

        @bytes += bytes.bytesize
        bytes.clear # its memory is the next one's, which need not wait for a collection
        @progress&.call(@bytes, rows)
        refuse_late
      end

      def put(bytes)
        @session.__send__(:put_copied, bytes, left)
      rescue TimeoutError
        raise late
      end

      def refuse_late = @deadline && @deadline <= Postgres.now && raise(late)

      def late = Postgres.late("the time is up before all rows were sent; nothing of the COPY takes effect", false)

      # @raise [ServerError]
      def ended
        finish
        raise ProtocolError, "the server has ended the COPY before it had all rows"
      end

      # @return [Result] which has the number of rows
      def conclude
        @rows.finish
        send_rows
        refuse_late
        finish
      end

      def finish
        result = @session.__send__(:finish_copy_in, left)
        @done = true
        result
      rescue ServerError => error
        @done = true
        raise CopyRowError.locate(error, @rows.lines?)
      rescue TimeoutError
        raise Postgres.late("the server has not answered before the deadline; all rows were sent and may have taken effect", true)
      end

      def close = @open = false
    end
  end
end
