# frozen_string_literal: true

module Ringspun
  module HTTP
    # The client at the other end of a connection, for strands that neither read nor write: `env["ringspun.peer"]`.
    #
    #   env["ringspun.peer"].until_gone { answer_of_a_slow_service }
    #
    # A client that has closed its side counts as gone: so does every browser that leaves a page. One that only closes its side
    # for writing, and still reads, looks the same from here.
    #
    # It is for strands of its server's thread. On another one all but {#stopping?} raises a WrongThreadError.
    #
    # @since 0.1.0
    class Peer
      # POLLRDHUP of poll(2): the other side has closed the connection, or its side for writing. Errors come unasked.
      CLOSED = 0x2000
      private_constant :CLOSED

      # @param stream [Stream]
      # @param drain [Drain]
      # @api private
      def initialize(stream, drain)
        @stream = stream
        @drain = drain
        @thread = Thread.current
      end

      # Waits until the client has gone.
      #
      # May switch strands.
      #
      # @param timeout [Numeric, nil] seconds; nil: no limit
      # @return [nil]
      # @raise [TimeoutError, UsageError, WrongThreadError]
      # @since 0.1.0
      def wait_gone(timeout: nil)
        check_thread
        Machine.current.timeout(timeout) { Machine.current.poll(@stream.__send__(:over), CLOSED) }
        nil
      rescue ClosedError # our side is closed
        nil
      end

      # Runs the block in a scope that is cancelled when the client goes. Ensure blocks run, as with a deadline.
      #
      # May switch strands.
      #
      # @param drain [Boolean] whether the block is cancelled as well when the server stops, for answers that would never end
      # @yieldparam scope [Scope]
      # @return [Object] the block's value; nil: the server stops
      # @raise [GoneError] the client has gone, and the block was cancelled
      # @raise [WrongThreadError]
      # @since 0.1.0
      def until_gone(drain: false, &) = guard(drain:, &)

      # The same, and calls something now and then meanwhile.
      #
      # @param every [Numeric, nil] seconds
      # @param beat [#call, nil]
      # @api private
      def guard(drain:, every: nil, beat: nil)
        check_thread
        gone = ended = false
        value = Machine.current.scope do |scope|
          stops = @drain.at_begin { scope.cancel } if drain
          watch = scope.spin do
            watch_for_end(every, beat)
            gone = true
            scope.cancel
          end
          yield(scope).tap { ended = true }
        ensure
          @drain.forget(stops) if stops
          watch&.terminate
        end
        raise GoneError, "the client has closed the connection" if gone && !ended

        value
      end

      # @return [Boolean] whether the server stops; an answer that could go on for long should end
      # @since 0.1.0
      def stopping? = @drain.begun?

      private

      # A machine of another thread would watch a descriptor that is not its own.
      def check_thread
        return if Thread.current.equal?(@thread)

        raise WrongThreadError, "this client is served on another thread; wait for it in a strand there"
      end

      def watch_for_end(every, beat)
        wait_gone(timeout: every)
      rescue TimeoutError
        beat.call
        retry
      end
    end
  end
end
