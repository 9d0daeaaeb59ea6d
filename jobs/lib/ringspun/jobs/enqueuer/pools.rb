# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # A strategy with connections of its own. Each call of the storage has the job or the jobs of one caller.
      #
      # @api private
      class Pooled
        # What is lent where a storage has no connections: the number of callers at once is limited there as well.
        NONE = Object.new
        private_constant :NONE

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
          with_connection { |connection| @delivery.deliver(pushes, (connection unless connection.equal?(NONE))) }
        end

        # May switch strands.
        def close
          @connections.each { |connection| connection.close unless connection.equal?(NONE) } if Process.pid == @pid
        end

        private

        # In a forked child, which must not use its parent's connections. Several of its threads may come here at once.
        def connect_anew
          @beginning.synchronize do
            next if Process.pid == @pid

            connect
            @pid = Process.pid
          end
        end

        def connect
          @connections = Array.new(@size) { @delivery.storage.connect || NONE }
        end
      end

      # Some connections; each call takes one at random.
      #
      # @api private
      class NamedPool < Pooled
        def initialize(delivery, pool_size:, **) = super(delivery, pool_size)

        private

        def connect
          super
          @lenders = @connections.map { |connection| Lender.new([connection]) }
        end

        def with_connection(&) = @lenders[@lenders.size == 1 ? 0 : rand(@lenders.size)].lend(&)
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
          @lender = Lender.new(@connections)
        end

        def with_connection(&)
          @lender.lend(@timeout, &)
        rescue Lender::TimeoutError
          raise PoolTimeoutError, "none of the pool's connections (#{@size}) was free within #{Words.duration(@timeout)}; make " \
                                  "the pool larger, or take the strategy :group_commit"
        end
      end
      private_constant :Pooled, :NamedPool, :Single, :Pool
    end
  end
end
