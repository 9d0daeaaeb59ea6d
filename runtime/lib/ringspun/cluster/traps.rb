# frozen_string_literal: true

module Ringspun
  module Cluster
    # The parent's signals. A handler notes one and writes a byte into a pipe that the loop waits for, so that none is missed
    # between a look and a sleep.
    #
    # @api private
    class Traps
      SIGNALS = %w[HUP INT TERM].freeze

      def self.open
        traps = new
        yield traps
      ensure
        traps&.close
      end

      # What Ruby does where nobody has set a handler.
      def self.end_other(name) = raise(name == "INT" ? Interrupt.new("") : SignalException.new("SIG#{name}"))

      def initialize
        @pid = Process.pid
        @told = []
        @told_in_child = []
        @reader, @writer = IO.pipe
        @before = SIGNALS.to_h { |name| [name, trap(name) { tell(name) }] }
        @before["CHLD"] = trap("CHLD") { |number| child_ended(number) }
      end

      # Those that have come since.
      def taken = Array.new(@told.size) { @told.shift }

      # @return [Array<IO>] those of the IOs that can be read
      def wait(ios, seconds)
        ready, = IO.select([@reader, *ios], nil, nil, seconds)
        nil while @reader.read_nonblock(4096, exception: false).is_a?(String)
        ready || []
      end

      # While the block forks a worker. Its signals are noted until it has handlers; those of other children are their own.
      def forking
        @forking = true
        yield
      ensure
        @forking = false
      end

      # Before the worker sets its own. Until then a signal to it came to the parent's handlers.
      #
      # @return [Array<String>] the names of those that have come
      def end_in_child
        [@reader, @writer].each(&:close)
        put_back("CHLD")
        @told_in_child
      end

      def close
        @before.each_key { |name| put_back(name) }
        [@reader, @writer].each(&:close)
      end

      private

      # In a child that has just been forked, the pipe is the parent's.
      def tell(name)
        unless Process.pid == @pid
          return @forking ? @told_in_child << name : Traps.end_other(name)
        end

        @told << name
        wake
      end

      def wake = @writer.write_nonblock(".", exception: false)

      def child_ended(number)
        wake if Process.pid == @pid
        before = @before["CHLD"]
        before.call(number) if before.respond_to?(:call)
      end

      # nil: of a handler that is not Ruby's.
      def put_back(name) = trap(name, @before[name] || "SYSTEM_DEFAULT")
    end
  end
end
