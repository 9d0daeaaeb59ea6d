# frozen_string_literal: true

require "socket"

module Ringspun
  module HTTP
    # `rack.hijack`: gives the program the connection as an IO of its own, which it has to close. What was read ahead is read from
    # it first. With TLS the IO is one end of a pair of sockets, and what goes through it is carried to the client and back.
    #
    # @api private
    class Hijack
      # A socket that tells its server when the program closes it, from any thread.
      module Watched
        # @param drain [Drain]
        def watched_by(drain)
          @drain = drain
          drain.lend(self)
          self
        end

        def close
          super
        ensure
          @drain&.returned
        end
      end

      # @param connection [Connection]
      # @param stream [Stream]
      # @param drain [Drain]
      def initialize(connection, stream, drain)
        @connection = connection
        @stream = stream
        @drain = drain
      end

      # @return [Exchange] what is served on the connection
      attr_writer :exchange

      # Libraries that were made for Rack 2 look for it in `rack.hijack_io`.
      #
      # May switch strands.
      #
      # @return [BasicSocket] the same at each call
      # @raise [UsageError] the answer has begun
      # @raise [WrongThreadError]
      def call
        @io ||= take.tap { |io| @exchange.env["rack.hijack_io"] = io unless @exchange.env.frozen? }
      end

      # @return [Boolean] whether the program has the connection
      def taken? = !@io.nil?

      # Ends the connection that the program has taken.
      def close
        @io.close unless @io.closed?
      end

      # Waits until all that goes through a pair of sockets was carried: the stream must live as long.
      #
      # May switch strands.
      #
      # @return [nil]
      def wait
        @carrier&.join
        nil
      ensure
        @carrier&.terminate
      end

      private

      def take
        rest = @connection.give_up
        @connection.flush
        return end_of_pair(rest) if @stream.tls

        io = own_socket
        io.ungetbyte(rest) unless rest.empty?
        io.watched_by(@drain)
      end

      # The stream closes its descriptor, and this one lives on.
      def own_socket
        socket = ::Socket.for_fd(@stream.__send__(:over))
        socket.autoclose = false
        socket.dup.tap { |own| own.autoclose = true }.extend(Watched)
      end

      def end_of_pair(rest)
        theirs, ours = UNIXSocket.pair
        inner = Stream.new(ours)
        inner.write(rest)
        @carrier = Machine.current.spin { carry(inner) }
        theirs.extend(Watched).watched_by(@drain)
      end

      # A program that only closes its side for writing still reads.
      def carry(inner)
        Ringspun.scope do |scope|
          from_client = scope.spin { pass_on(@stream, inner) }
          pass_on(inner, @stream)
          scope.spin do
            Machine.current.poll(inner.to_io, :priority) # none ever comes: the program has closed its end
            scope.cancel
          end
          from_client.join
          scope.cancel
        end
      ensure
        inner.close
      end

      def pass_on(from, to)
        from.copy_to(to)
        to.close_write
      rescue Error, SystemCallError
        nil # one of the two has gone
      end
    end
    private_constant :Hijack
  end
end
