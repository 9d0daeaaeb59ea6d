# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Lends each of some things to one caller at a time, strand or thread, in the order in which they come. What is given back
      # is handed to the next of them: whoever has brought it and wants it again at once would else be the first to take it.
      #
      # @api private
      class Turns
        # None was free in time.
        class TimeoutError < Error; end

        # @param things [Array<Object>]
        def initialize(things)
          @lock = Thread::Mutex.new
          @free = things.dup
          @gates = [] # of those who wait, the first one first
          @lent = {}.compare_by_identity # by the gates of those who have them
        end

        # May switch strands.
        #
        # @param timeout [Numeric, nil] seconds
        # @yieldparam thing [Object]
        # @return [Object] the block's value
        # @raise [TimeoutError]
        def lend(timeout = nil)
          gate = Thread::Queue.new
          begin
            enter(gate)
            yield gate.pop(timeout: timeout) || raise(TimeoutError, "none was free in time")
          ensure
            left = leave(gate)
          end
        ensure
          leave(gate) unless left # a thread is killed once, and that was as it began to leave
        end

        private

        def enter(gate)
          locked do
            @gates << gate
            hand_over
          end
        end

        # A caller may go wherever it is: by an exception, or without one when its thread is killed. So what it has is written
        # down here, by whoever hands it over, and can be given back from any point.
        def leave(gate)
          Thread.handle_interrupt(Object => :never) do
            locked do
              @gates.delete(gate)
              @free << @lent.delete(gate) if @lent.key?(gate)
              hand_over
            end
            true
          end
        end

        def hand_over
          while @gates.any? && @free.any?
            gate = @gates.shift
            gate << (@lent[gate] = @free.shift)
          end
        end

        # For a few instructions, so nobody waits here for other strands, and no strand that is cancelled is refused.
        def locked(&) = Fiber.blocking { @lock.synchronize(&) }
      end

      # What the strategies with connections of their own share. Each call of the storage has one job, or one caller's jobs.
      #
      # @api private
      class Pooled
        # @param delivery [Delivery]
        # @param size [Integer]
        def initialize(delivery, size)
          @delivery = delivery
          @size = size
          @beginning = Thread::Mutex.new
          connect_anew
        end

        # May switch strands.
        #
        # @return [nil, String, Exception]
        def push(push)
          answers = push_all([push])
          answers.is_a?(Array) ? answers.first : answers
        end

        # May switch strands.
        #
        # @return [nil, Array, Exception]
        def push_all(pushes)
          connect_anew unless Process.pid == @pid
          with_connection { |connection| @delivery.deliver(pushes, connection) }
        end

        # May switch strands.
        def close
          @connections.each { |connection| connection&.close } if Process.pid == @pid
        end

        private

        # Several threads of a forked child may come here at once; none may go on with the connections of its parent.
        def connect_anew
          @beginning.synchronize do
            next if Process.pid == @pid

            connect
            @pid = Process.pid
          end
        end

        def connect
          @connections = Array.new(@size) { @delivery.storage.connect }
        end
      end

      # A number of connections, one of which is chosen by chance.
      #
      # @api private
      class NamedPool < Pooled
        def initialize(delivery, pool_size:, **) = super(delivery, pool_size)

        private

        def connect
          super
          @turns = @connections.map { |connection| Turns.new([connection]) }
        end

        def with_connection(&) = @turns[@turns.size == 1 ? 0 : rand(@turns.size)].lend(&)
      end

      # @api private
      class Single < NamedPool
        def initialize(delivery, **) = super(delivery, pool_size: 1)
      end

      # @api private
      class Pool < Pooled
        def initialize(delivery, pool_size:, pool_timeout:)
          @timeout = pool_timeout
          super(delivery, pool_size)
        end

        private

        def connect
          super
          @turns = Turns.new(@connections)
        end

        def with_connection(&)
          @turns.lend(@timeout, &)
        rescue Turns::TimeoutError
          raise PoolTimeoutError, "none of #{@size} connections was free within #{@timeout} s; make the pool larger, or take " \
                                  "the strategy :group_commit"
        end
      end
      private_constant :Turns, :Pooled, :NamedPool, :Single, :Pool
    end
  end
end
