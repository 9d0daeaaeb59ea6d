# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What a worker was told to do: to fetch nothing, to stop, to hurry, or to carry out an order. All methods but {#attach} and
      # {#obey} may be called from other threads and from signal handlers, and never wait.
      #
      # Orders have a queue of their own. The strand that carries them out is the program's, and so is what is scheduled for it.
      #
      # @api private
      class Control
        def initialize
          @quiet = @stopped = @hurried = @attached = false
          @orders = Thread::Queue.new
          @news = Channel.new(1)
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

        # From now on {#obey} carries orders out.
        def attach = @attached = true

        # Has {#obey} call the block. Before anybody obeys, calls it at once.
        def order(&block)
          return block.call && nil unless @attached

          @orders << block
          wake
        end

        # Wakes the strand that waits in {#obey}, for it to see what has changed.
        def wake
          @news.try_push(true) if @attached # a place that is taken is news enough
          nil
        end

        # Waits for orders or a {#wake}, and carries out what there is. May switch strands.
        #
        # @param seconds [Numeric, nil] how long at most
        # @return [Boolean] false: the time is over
        def obey(seconds = nil)
          woken = @news.pop(timeout: seconds) or return false

          @orders.pop.call until @orders.empty?
          woken
        end
      end
      private_constant :Control
    end
  end
end
