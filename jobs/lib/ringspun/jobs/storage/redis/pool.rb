# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The storage's own connections. Each is lent to one strand or thread at a time. A caller that finds all of them lent
        # waits until one is back.
        #
        # @api private
        class Pool
          # @param size [Integer] how many are lent at a time
          # @yieldreturn [Connection]
          def initialize(size, &connect)
            @size = size
            @connect = connect
            open
          end

          # May switch strands.
          #
          # @param waits [Boolean] whether it is for a wait at the server. Such connections do not count, or waits would hold up
          #   all others: there are as many as there ever were waits at the same time.
          # @yieldparam connection [Connection]
          # @return [Object] the block's value
          def lend(waits: false, &)
            open if @pid != Process.pid
            return hand_over(@waits, &) if waits

            @lender.lend { hand_over(@idle, &) }
          end

          # Closes those that are not lent, and the others when they come back.
          #
          # @return [nil]
          def close
            all = @idle + @waits
            forget
            all.each(&:close) if @pid == Process.pid
            nil
          end

          private

          # Also in a forked child: what its parent had lent never comes back there, so the child begins anew.
          def open
            forget
            @lender = Lender.new(Array.new(@size, true))
            @pid = Process.pid
          end

          def forget
            @idle = []
            @waits = []
          end

          # Lends the connection that was used last, so that few are used where few are needed.
          def hand_over(idle)
            connection = idle.pop || @connect.call
            yield connection
          ensure
            idle.equal?(@idle) || idle.equal?(@waits) ? idle.push(connection) : connection.close if connection
          end
        end
        private_constant :Pool
      end
    end
  end
end
