# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # What the strategies with connections of their own share. Each call of the storage has one job, or one caller's jobs.
      #
      # @api private
      class Pooled
        # @param delivery [Delivery]
        # @param size [Integer]
        def initialize(delivery, size)
          @delivery = delivery
          @size = size
          connect
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
          connect unless Process.pid == @pid
          with_connection { |connection| @delivery.deliver(pushes, connection) }
        end

        # May switch strands.
        def close
          @connections.each { |connection| connection&.close } if Process.pid == @pid
        end

        private

        def connect
          @pid = Process.pid
          @connections = Array.new(@size) { @delivery.storage.connect }
        end
      end

      # A number of connections with a lock each.
      #
      # @api private
      class NamedPool < Pooled
        def initialize(delivery, pool_size:, **) = super(delivery, pool_size)

        private

        def connect
          super
          @locks = @connections.map { Thread::Mutex.new }
        end

        def with_connection
          index = @locks.size == 1 ? 0 : rand(@locks.size)
          @locks[index].synchronize { yield @connections[index] }
        end
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
          @free = Thread::Queue.new(@connections.each_index.to_a)
        end

        def with_connection
          free = @free
          index = free.pop(timeout: @timeout) || raise(PoolTimeoutError, <<~TEXT.tr("\n", " ").strip)
            none of #{@size} connections was free within #{@timeout} s;
            make the pool larger, or take the strategy :group_commit
          TEXT
          begin
            yield @connections[index]
          ensure
            free << index
          end
        end
      end
      private_constant :Pooled, :NamedPool, :Single, :Pool
    end
  end
end
