# frozen_string_literal: true

require_relative "inspector/prometheus"
require_relative "inspector/watch"

module Ringspun
  # Shows what a machine's strands are doing: as a tree, as metrics, and by a watch for strands that hold the thread. Its methods
  # may be called from any thread, and from a signal handler.
  #
  #   machine.locate = true # from now on, record where strands are spun and since when they wait
  #   puts Ringspun::Inspector.new(machine).tree
  class Inspector
    # Deeper strands are indented like those of this depth.
    INDENT_MAX = 40

    private_constant :Lookout, :INDENT_MAX

    class << self
      # The metrics of all open machines of this ractor.
      #
      # @return [String] in the text format of Prometheus
      # @since 0.1.0
      def prometheus = Prometheus.text(Machine.__send__(:all).map { |machine| new(machine) })

      # Prints {Ringspun.inspect_tree} to `$stderr` whenever this process gets that signal, whether the machines sleep or run.
      # Only in the main ractor, which handles all signals.
      #
      # @param signal [String, Symbol, Integer] such as "USR2"
      # @return [nil]
      # @raise [UsageError] when there is no such signal, or it cannot be trapped
      # @since 0.1.0
      def trap(signal)
        name = name_of(signal)
        check_main_ractor
        unless traps.key?(name)
          handler = proc { print_tree }
          traps[name] = [handler, set_trap(name, handler)]
        end
        nil
      end

      # Restores the handler before {.trap}. A handler that was set later stays.
      #
      # @param signal [String, Symbol, Integer]
      # @return [Boolean] whether the handler was restored
      # @raise [UsageError] when there is no such signal
      # @since 0.1.0
      def untrap(signal)
        name = name_of(signal)
        check_main_ractor
        handler, before = traps.delete(name)
        return false unless handler

        present = Signal.trap(name, before)
        Signal.trap(name, present) unless present.equal?(handler)
        present.equal?(handler)
      end

      # Watches this thread's machine. See {#watch}.
      #
      # @return [Watch]
      # @since 0.1.0
      def watch(limit: 0.1, to: $stderr) = new.watch(limit: limit, to: to)

      private

      # Not a constant: other ractors may not read a constant with a mutable value.
      def traps = @traps ||= {}

      def name_of(signal)
        name = signal.is_a?(Integer) ? Signal.signame(signal) : signal.to_s.delete_prefix("SIG")
        return name if Signal.list.key?(name) && name != "EXIT"

        raise UsageError, "there is no signal #{signal.inspect}; give a name such as \"USR2\""
      end

      def check_main_ractor
        return if Ractor.current == Ractor.main

        raise UsageError, "signals are for the main ractor: trap them there; it shows its own machines"
      end

      def set_trap(name, handler)
        Signal.trap(name, handler)
      rescue ArgumentError, Errno::EINVAL => e
        raise UsageError, "SIG#{name} cannot be trapped (#{e.message}); \"USR2\" can"
      end

      def print_tree = print_in_handler(Ringspun.inspect_tree)

      # Writes to the standard error in a handler of a signal. In Fiber.blocking, because the interrupted strand must not park
      # here. Errors of the output are ignored.
      def print_in_handler(text)
        Fiber.blocking { output.write(text) }
      rescue SystemCallError, IOError
        nil
      end

      # An IO of its own, for a strand may be within a write to `$stderr`, and has its lock.
      def output = $stderr.is_a?(IO) ? IO.for_fd($stderr.fileno, "w", autoclose: false).tap { |io| io.sync = true } : $stderr
    end

    # @return [Machine]
    # @since 0.1.0
    attr_reader :machine

    # @param machine [Machine] this thread's by default
    # @raise [UsageError] for any other object
    # @since 0.1.0
    def initialize(machine = Machine.current)
      raise UsageError, "expected a Ringspun::Machine, got #{machine.class}: #{machine.inspect}" unless machine.is_a?(Machine)

      @machine = machine
    end

    # All strands, each below the owner of its scope: where it was spun, what it waits for and for how long. Places and times are
    # known if {Machine#locate=} was true in time.
    #
    # @return [String] one line for the machine, and one a strand
    # @since 0.1.0
    def tree = [title, *lines].map { |line| "#{line}\n" }.join

    # {Machine#metrics}, the backend, and the number of strands by state.
    #
    # @return [Hash{Symbol => Object}] :backend is a Symbol, nil once the machine is closed; :strands a Hash of :new, :ready,
    #   :running and :parked; the others are Integers
    # @since 0.1.0
    def metrics = { backend: @machine.backend.name, strands: @machine.__send__(:strand_states), **@machine.metrics }

    # @return [String] the same in the text format of Prometheus
    # @since 0.1.0
    def prometheus = Prometheus.text([self])

    # Starts a thread that reports every strand that holds the machine's thread longer than the limit, once each time. No other
    # strand runs meanwhile. The thread looks four times per limit, and needs neither a tick of the machine nor the GVL. It ends
    # by {Watch#stop}, and with the machine. A forked child does not have it.
    #
    # @param limit [Numeric] seconds
    # @param to [Logger, IO, #call] gets a warning, a line, or the {Stall}
    # @return [Watch]
    # @raise [UsageError] when the machine is closed, or an argument is invalid
    # @since 0.1.0
    def watch(limit: 0.1, to: $stderr)
      raise UsageError, "this machine is closed; watch Machine.current" if @machine.closed?

      watch = Watch.new(@machine, limit, to)
      @machine.__send__(:watches).reject!(&:stopped?)
      @machine.__send__(:watches) << watch
      watch
    end

    # @return [String]
    # @since 0.1.0
    def inspect = "#<#{self.class} of #{@machine.inspect}>"

    private

    def title = @machine.closed? ? @machine.inspect : "#{@machine.inspect} on #{@machine.__send__(:thread).inspect}"

    def lines
      below = strands.group_by(&:last)
      below.default = [].freeze
      left = below[nil].reverse.map { |strand, _| [strand, 1] }
      lines = []
      while (strand, depth = left.pop)
        lines << "#{"  " * [depth, INDENT_MAX].min}#{describe(strand)}"
        below[strand].reverse_each { |child, _| left << [child, depth + 1] }
      end
      lines
    end

    # The strands with their owners. On another thread than the machine's, some may end meanwhile.
    def strands
      pairs = @machine.strands.map { |strand| [strand, strand.owner] }.select { |strand, _| strand.alive? }
      listed = pairs.to_h.compare_by_identity
      pairs.each { |pair| pair[1] = nil unless listed.key?(pair[1]) }
    end

    def describe(strand)
      place = strand.spawned_at
      "#{strand.inspect}#{" spun at #{place}" if place}: #{doing(strand)}"
    end

    def doing(strand)
      wait = strand.waits_for
      return strand.state.to_s unless wait

      seconds = strand.waited
      "waits for #{wait}#{format(", for %.3f s", seconds) if seconds}"
    end
  end

  class Machine
    # All strands and what they wait for, one a line, as in {Inspector#tree}.
    #
    # @return [String]
    # @since 0.1.0
    def describe_strands = Inspector.new(self).__send__(:lines).join("\n")
  end

  # The {Inspector#tree} of all open machines of this ractor.
  #
  # @return [String]
  # @since 0.1.0
  def self.inspect_tree
    machines = Machine.__send__(:all)
    machines.empty? ? "no machine is open\n" : machines.map { |machine| Inspector.new(machine).tree }.join
  end
end
