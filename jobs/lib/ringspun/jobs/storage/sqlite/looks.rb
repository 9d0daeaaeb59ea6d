# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # When to look at the version of a file, which says whether another program has committed something.
        #
        # The kernel tells of each write to a file of the folder, and nothing of the commit, which comes after it in memory that
        # is shared. So a write asks for a look at once, and for another one soon. Where these show nothing, the writer waits for
        # its disk, and there are more, each after twice the time. Where the kernel does not tell, as for want of a descriptor,
        # the looks go on at their shortest time.
        #
        # @api private
        class Looks
          # Seconds to the next look after a write, and after another one that has shown something.
          SHORTEST_SECONDS = 0.05
          # Seconds between looks where nobody writes.
          LONGEST_SECONDS = 1
          KINDS = %i[modified created deleted moved].freeze
          # Events that are read at once, some thousands; what is left asks for the next look.
          BYTES = 65_536
          private_constant :KINDS, :BYTES

          # @param folder [String]
          # @param own [Socket] for {#wait}
          def initialize(folder, own)
            @own = own
            @events = watch(folder)
            @pause = SHORTEST_SECONDS
            @awaited = true # a commit
            @at = 0
          end

          # Waits until there is something to read at the socket, or a look is due.
          #
          # @param looking [Boolean] false: for the socket alone
          # @return [nil]
          def wait(looking)
            return @own.wait_readable unless looking

            left = @at - now
            return unless left.positive?

            ready, = IO.select([@own, (@events if quiet?)].compact, nil, nil, left)
            @at = now if ready&.include?(@events)
          end

          # @return [Boolean]
          def due? = now >= @at

          # To be called before a look: what is written after that is for the next one.
          #
          # @return [Boolean] whether the kernel has told of a write since the last one
          def take_writes = !@events.nil? && @events.read_nonblock(BYTES, exception: false) != :wait_readable

          # To be called after a look.
          #
          # @param written [Boolean] what {#take_writes} has said before it
          # @param changed [Boolean] whether it has shown a commit
          # @return [nil]
          def looked(written, changed)
            if written || changed || @events.nil?
              @pause = SHORTEST_SECONDS
              @awaited = written || !changed # of several who write nobody knows whose commit that was
            else
              @pause = @awaited ? [2 * @pause, LONGEST_SECONDS].min : LONGEST_SECONDS
            end
            @at = now + @pause
            nil
          end

          # @return [nil]
          def close
            @events&.close
            nil
          end

          private

          # Else writes wait for the look that is due soon, so that many of them wake this thread no more often than few.
          def quiet? = @pause > SHORTEST_SECONDS

          def watch(folder)
            Ringspun::Watch.io(folder, *KINDS)
          rescue LimitError, SystemCallError
            nil
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
        private_constant :Looks
      end
    end
  end
end
