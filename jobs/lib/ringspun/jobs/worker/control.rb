# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What a worker was told to do: to fetch nothing, to stop, to hurry, or to carry out an order. All methods but {#attach} and
      # {#obey} may be called from other threads and from signal handlers, and never wait.
      #
      # @api private
      class Control
        def initialize
          @quiet = @stopped = @hurried = false
        end

        def quiet
          @quiet = true
          wake
        end

        def stop
          @stopped = true
          wake
        end

        def hurry
          @hurried = true
          stop
        end

        # @return [Boolean] whether the worker fetches no more jobs; once true, it stays so
        def quiet? = @quiet || @stopped

        def stopped? = @stopped

        def hurried? = @hurried

        # Makes the strand that calls it the one that carries out orders.
        def attach(machine)
          @machine = machine
          @strand = machine.running
        end

        # Has that strand call the block. Before there is one, calls the block at once.
        def order(&block)
          @strand ? @machine.schedule(@strand, block) : block.call
          nil
        rescue ClosedError # the machine has ended meanwhile
          nil
        end

        # Wakes that strand, for it to see what has changed.
        def wake = @strand && order

        # Waits for an order or a {#wake}, and carries the order out. May switch strands.
        #
        # @param seconds [Numeric, nil] how long at most
        # @raise [TimeoutError]
        def obey(seconds = nil) = @machine.park(seconds)&.call
      end
      private_constant :Control
    end
  end
end
