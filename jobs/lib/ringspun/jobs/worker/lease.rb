# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Whether this worker's lease lasts, by its own clock, see {Storage#extend}. A process that was frozen must not fetch before
      # it has extended its lease: others could take over at once what it has fetched.
      #
      # @api private
      class Lease
        # @param machine [Machine]
        # @param seconds [Numeric]
        # @param extended_here [Boolean] false: a supervisor extends it, and the lease counts as lasting here
        def initialize(machine, seconds, extended_here:)
          @machine = machine
          @seconds = seconds
          @extended_here = extended_here
          @simulated = machine.backend.name == :sim
          @began_at = now
        end

        # @return [Boolean]
        def extended_here? = @extended_here

        # @return [Boolean] false: it has run out
        def lasts? = !@extended_here || now - @began_at < @seconds

        # @param asked_at [Float] by {#now}, when the storage was asked: it may have extended the lease as early as that
        # @return [Boolean] whether the lease had lasted until now
        def extended(asked_at)
          lasts?.tap { @began_at = asked_at }
        end

        # A lease also runs out while the computer is suspended. CLOCK_MONOTONIC, the machine's clock, stands still then:
        # https://man7.org/linux/man-pages/man2/clock_getres.2.html
        def now = @simulated ? @machine.now : Process.clock_gettime(Process::CLOCK_BOOTTIME)
      end
      private_constant :Lease
    end
  end
end
