# frozen_string_literal: true

module Ringspun
  class Server
    # A connection that waits for its next bytes without a strand: what the block of a server returns for the connection to go on
    # later. It keeps the stream open, and little else.
    #
    # @api private
    class Idle
      # @return [Stream]
      attr_reader :stream

      # @return [Float, nil] when it goes on though no byte has come, on the machine's clock
      attr_reader :deadline

      # @param stream [Stream]
      # @param deadline [Float, nil]
      # @yieldreturn [Idle, Object] as the block of a server
      def initialize(stream, deadline = nil, &go_on)
        @stream = stream
        @deadline = deadline
        @go_on = go_on
      end

      # Goes on, in a strand: the stream has bytes or has ended, or the deadline has come.
      #
      # @return [Idle, Object] no Idle: the stream is closed
      def call = @go_on.call(@stream)

      # It is closed, and does not go on.
      def dropped = nil

      # @return [String] whose connection it is, as {Inspector} shows it
      def to_s = "a connection"
    end

    # The connections of a server that wait without a strand. The strand of the first one waits for all of them. Strands that it
    # makes have the fiber storage of the strand that has made the server, and nothing of that client's.
    #
    # @api private
    class IdleConnections
      # The number of them that are named where {Inspector} shows them.
      NAMED = 10
      private_constant :NAMED

      # @param machine [Machine]
      # @param change [Condition] is told of each that is closed here
      # @param close [#call] closes a stream
      # @yieldparam idle [Idle] to be given a strand
      def initialize(machine, change, close, &go_on)
        @machine = machine
        @change = change
        @close = close
        @go_on = go_on
        @streams = IdleStreams.new
        @storage = Fiber.current.storage || {}
        @in_hand = nil
        @closing = 0
      end

      # @return [Integer] those that wait, the one that is to have a strand, and those that are being closed
      def size = @streams.size + @closing + (@in_hand ? 1 : 0)

      # @param idle [Idle]
      # @return [Boolean] false: there is no place for one more wait
      def add(idle) = @streams.add(idle.stream, idle, idle.deadline)

      # Waits for all of them, until there is none, unless another strand does.
      #
      # May switch strands.
      def keep
        return if @keeper || @streams.size.zero?

        @keeper = @machine.running
        @keeper.name = self
        take_storage
        give_strands
      ensure
        end_keeping if @keeper == @machine.running
      end

      # None waits for longer than that.
      #
      # @param seconds [Numeric] from now on
      def hurry(seconds) = @streams.hurry(@machine.now + seconds)

      # Closes all, also the one for which there is no strand yet.
      #
      # May switch strands.
      #
      # @return [Integer] how many
      def drop_all
        @machine.terminate(@keeper) if @in_hand
        all = @streams.clear
        count = all.size + (@in_hand ? 1 : 0)
        close_all(all)
        @keeper.join if @keeper && @keeper != @machine.running
        count
      rescue TerminatedError
        count
      end

      # @return [String] as {Inspector} shows it
      def to_s
        more = @streams.size - NAMED
        "idle: #{@streams.words.first(NAMED).join(", ")}#{" and #{more} more" if more.positive?}"
      end

      private

      def take_storage
        Fiber.current.storage&.each_key { |name| Fiber[name] = nil }
        @storage.each { |name, value| Fiber[name] = value }
      end

      def give_strands
        while (idle = @streams.take)
          @in_hand = idle
          idle = nil
          @go_on.call(@in_hand)
          @in_hand = nil
        end
      ensure
        last, @in_hand = @in_hand, nil
        close_all([last]) if last
      end

      # Its strand was cancelled, or there is none left.
      def end_keeping
        @keeper = nil
        drop_all
      end

      def close_all(idles)
        @closing += idles.size
        Ringspun.shield { idles.filter_map { |idle| close(idle) } }.first&.then { |error| raise error }
      end

      # @return [StandardError, nil] what has gone wrong
      def close(idle)
        @close.call(idle.stream)
        nil
      rescue StandardError => error
        error
      ensure
        @closing -= 1
        idle.dropped
        @change.broadcast
      end
    end
    private_constant :IdleConnections
  end
end
