# frozen_string_literal: true

require_relative "terminal"

module Ringspun
  module Cluster
    # The parent's signal handlers. A handler stores the signal and writes a byte into a pipe on which the loop waits (self-pipe),
    # so that no signal is missed between the check and the wait.
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

      # Does what Ruby does for a signal without a handler: raises.
      def self.end_other(name) = raise(name == "INT" ? Interrupt.new("") : SignalException.new("SIG#{name}"))

      def initialize
        @pid = Process.pid
        @signals = []
        @signals_in_child = []
        @terminal = Terminal.new
        @reader, @writer = IO.pipe
        @before = SIGNALS.to_h { |name| [name, trap(name) { note(name) }] }
        @before["CHLD"] = trap("CHLD") { |number| child_ended(number) }
      end

      # The signals since the last call.
      def taken = Array.new(@signals.size) { @signals.shift }

      # @return [Boolean] whether a HUP tells that the terminal was closed; nohup(1) has a process ignore that
      def hung_up? = @before["HUP"] != "IGNORE" && @terminal.closed?(now)

      # @return [Array<IO>] the IOs that are readable
      def wait(ios, seconds)
        ready, = IO.select([@reader, *ios], nil, nil, seconds)
        nil while @reader.read_nonblock(4096, exception: false).is_a?(String)
        @terminal.look(now)
        ready || []
      end

      # The block forks a worker. The worker inherits these handlers (signal(7)), which store its signals until it has its own. In
      # any other child they do what Ruby does without a handler.
      def forking
        @forking = true
        yield
      ensure
        @forking = false
      end

      # Called in the worker, before it sets its own handlers.
      #
      # @return [Array<String>] the signals that the worker has got since the fork
      def end_in_child
        [@reader, @writer].each(&:close)
        put_back("CHLD")
        @signals_in_child
      end

      def close
        @before.each_key { |name| put_back(name) }
        [@reader, @writer].each(&:close)
      end

      private

      # A forked child must not write: it shares the parent's pipe.
      def note(name)
        unless Process.pid == @pid
          return @forking ? @signals_in_child << name : Traps.end_other(name)
        end

        @signals << name
        wake
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def wake = @writer.write_nonblock(".", exception: false)

      def child_ended(number)
        wake if Process.pid == @pid
        before = @before["CHLD"]
        before.call(number) if before.respond_to?(:call)
      end

      # trap returns nil for a handler that was not set by Ruby.
      def put_back(name) = trap(name, @before[name] || "SYSTEM_DEFAULT")
    end
  end
end
