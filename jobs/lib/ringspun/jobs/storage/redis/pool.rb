# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The storage's own connections, for strands and threads: each is lent to one of them at a time. Who finds all of them
        # lent waits for its turn.
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
          # @param waits [Boolean] it is for a wait at the server: it does not count, or such waits would hold up all others. For
          #   them there are as many connections as there ever were waits at the same time.
          # @yieldparam connection [Connection]
          # @return [Object] the block's value
          def lend(waits: false, &)
            open if @pid != Process.pid
            return hand_over(@waits, &) if waits

            @turns.lend { hand_over(@idle, &) }
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

          # What the parent of this process has lent and never takes back is lost to the child; so it begins anew.
          def open
            forget
            @turns = Turns.new(Array.new(@size, true))
            @pid = Process.pid
          end

          def forget
            @idle = []
            @waits = []
          end

          # The one that was used last, so that few are in use where few are needed.
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
