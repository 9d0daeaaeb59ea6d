# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # This worker's lease, see {Storage#extend}: extends it, and says by this process's own clock whether it lasts. A process
      # that was frozen must not fetch before it has extended its lease: others could take over at once what it has fetched.
      #
      # @api private
      class Lease
        # @param seconds [Numeric]
        # @param extended_here [Boolean] false: a supervisor extends it, and the lease counts as lasting here
        # @yield when it was extended after it had run out
        def initialize(node, storage, seconds, machine, log, extended_here:, &again)
          @node = node
          @storage = storage
          @seconds = seconds
          @machine = machine
          @log = log
          @extended_here = extended_here
          @again = again
          @simulated = machine.backend.name == :sim
          @extended_at = now
        end

        # @return [Boolean]
        def extended_here? = @extended_here

        # @return [Boolean] false: it has run out
        def lasts? = !@extended_here || now - @extended_at < @seconds

        # May switch strands.
        #
        # @param connection [Object, nil] of the storage
        def extend(connection = nil)
          asked_at = now # the storage may have extended it as early as this
          known, = @storage.extend([@node], @seconds, connection: connection)
          lasted = lasts?
          @extended_at = asked_at
          @again.call unless lasted
          return if known

          @log.event(:warn, "this worker's lease had run out; others may run what it had in flight", node: @node)
        end

        # A lease also runs out while the computer is suspended. CLOCK_MONOTONIC, the machine's clock, stands still then:
        # https://man7.org/linux/man-pages/man2/clock_getres.2.html
        def now = @simulated ? @machine.now : Process.clock_gettime(Process::CLOCK_BOOTTIME)
      end
      private_constant :Lease
    end
  end
end
