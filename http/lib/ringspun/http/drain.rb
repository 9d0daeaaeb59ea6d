# frozen_string_literal: true

module Ringspun
  module HTTP
    # What a server has open, and what becomes of it when the server stops: an answer whose head is sent from then on says
    # `connection: close`, and a connection without a request has a few seconds for one more, for it may be on its way.
    #
    # @api private
    class Drain
      # Seconds after which it looks at sockets that a program has taken, for a library may close them past Ruby.
      LOOK_SECONDS = 1
      private_constant :LOOK_SECONDS

      # @param grace [Numeric, nil] seconds for one more request; nil: as long as ever
      def initialize(grace)
        @grace = grace
        @connections = {}.compare_by_identity
        @procs = {}.compare_by_identity
        @lent = ObjectSpace::WeakMap.new
        @left = Condition.new
        @closed = Thread::Queue.new
        @begun = false
      end

      # @return [Boolean] whether the server stops
      def begun? = @begun

      # @return [Integer] connections that have a strand
      def size = @connections.size

      # @param deadline [Float] of a connection that has waited without a strand, on the machine's clock
      # @return [Float] the one that it has, where the server stops
      def within(deadline) = @late ? [deadline, @late].min : deadline

      # @param connection [Connection]
      # @param stream [Stream]
      def enter(connection, stream)
        connection.leave(@grace) if @begun
        @connections[connection] = stream
      end

      # @param connection [Connection]
      def leave(connection)
        @connections.delete(connection)
        @left.broadcast if @begun
      end

      # Calls the block when the server stops, or at once if it does already.
      #
      # @return [Object] for {forget}
      def at_begin(&block)
        @begun ? block.call : @procs[block] = true
        block
      end

      # @param key [Object] what {at_begin} has returned
      def forget(key) = @procs.delete(key)

      # The server stops. See {Server#initialize}, `on_stop:`.
      #
      # @return [Numeric, nil] seconds that connections without a strand have
      def call
        @begun = true
        @late = Machine.current.now + @grace if @grace
        @connections.each_key { |connection| connection.leave(@grace) }
        @procs.keys.each(&:call)
        waiting = @connections.select { |connection, _| connection.idle? }
        Machine.current.spin { end_those_that_still_wait(waiting) } if @grace && waiting.any?
        @grace
      end

      # See {Server#busy}. A handler of a signal may call it.
      #
      # @return [Hash{Stream => Connection}] those without a request
      def waiting = @connections.select { |connection, _| connection.idle? }.invert.compare_by_identity

      # @param io [IO] a program has it, and closes it
      def lend(io) = @lent[io] = true

      # One of them is closed. From any thread.
      def returned
        @closed << true if @begun
      end

      # Waits until the programs have closed all of them.
      #
      # May switch strands.
      def wait_for_lent
        @closed.pop(timeout: LOOK_SECONDS) while @lent.keys.any? { |io| !io.closed? }
      end

      private

      def end_those_that_still_wait(waiting)
        machine = Machine.current
        @left.wait(timeout: [@late - machine.now, 0].max) while waiting.any? { |connection, _| waits?(connection) }
      rescue TimeoutError
        waiting.each { |connection, stream| machine.shutdown(stream.__send__(:over), :RD) if waits?(connection) }
      end

      # A request would have been the last one, so it is still the same wait.
      def waits?(connection) = @connections.key?(connection) && connection.idle?
    end
    private_constant :Drain
  end
end
