# frozen_string_literal: true

module Ringspun
  class << self
    # Yields the signals as they come, until the block breaks. Meanwhile they have no other effect. Afterwards the handlers of
    # Ringspun.run and of the program work again.
    #
    # Each signal that reaches Ruby is yielded. The kernel does not queue standard signals: of several pending ones of the same
    # kind a process gets one (signal(7)).
    #
    # May switch strands.
    #
    # @param names [Array<Symbol, String, Integer>] :HUP, "SIGHUP", 1
    # @yieldparam name [Symbol] without SIG
    # @return [nil, Signals] without a block, the signals, which the caller must close
    # @raise [UsageError] for signals that cannot be trapped, or that Ruby reserves
    # @raise [UnsupportedError] on a simulated machine
    # @since 0.1.0
    def signals(*names, &block)
      signals = Signals.new(names)
      return signals unless block

      begin
        signals.each(&block)
      ensure
        signals.close
      end
    end
  end

  # Signals for strands. See {Ringspun.signals}. If several Signals have the same signal, each gets it.
  class Signals
    # KILL and STOP cannot be trapped; Ruby reserves the others.
    RESERVED = %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM].freeze

    # The Signals that wait for a signal, their handler, and the handler before.
    Trap = Struct.new(:before, :handler, :waiting)
    private_constant :RESERVED, :Trap

    @traps = {}
    @lock = ShortLock.new

    class << self
      private

      def subscribe(signals, name)
        @lock.synchronize do
          entry = @traps[name]
          next entry.waiting = [*entry.waiting, signals].freeze if entry

          entry = @traps[name] = Trap.new(nil, proc { deliver(name) }, [signals].freeze) # the first may come at once
          entry.before = trap(name, entry.handler)
        end
      end

      def unsubscribe(signals, name)
        @lock.synchronize do
          next unless (entry = @traps[name])

          left = entry.waiting.reject { |one| one.equal?(signals) }.freeze
          next entry.waiting = left unless left.empty?

          restore(name, entry) # first: a signal that comes now is handled
          @traps.delete(name)
        end
      end

      # Runs in a signal handler, where no lock may be taken. So the entries that it reads are never changed in place.
      def deliver(name)
        entry = @traps[name] or return
        here, elsewhere = entry.waiting.partition(&:here?)
        here.each { |signals| signals.__send__(:came, name) }
        pass_on(name, entry) if here.empty? && !elsewhere.empty?
      end

      # In a forked child, which has inherited the handler and not the waiting strands: restores the handler before, and sends the
      # signal again.
      def pass_on(name, entry)
        @traps.delete(name)
        restore(name, entry)
        Process.kill(name, Process.pid)
      end

      # Does nothing if the program has set another handler since. `before` is nil if the handler was not set by Ruby.
      def restore(name, entry)
        now = trap(name, entry.before || "SYSTEM_DEFAULT")
        trap(name, now) unless now.equal?(entry.handler)
      end
    end

    # @api private
    def initialize(names)
      @machine = Machine.current
      raise UnsupportedError, "signals: a simulated machine gets none" if @machine.backend.name == :sim
      raise UsageError, "signals: name at least one, as :HUP" if names.empty?

      @names = names.map { |name| name_of(name) }.uniq
      @pid = Process.pid
      @came = []
      @reading = Ringspun::Mutex.new
      @reader, @writer = @machine.pipe
      @bell = IO.for_fd(@writer, "w", autoclose: false)
      @names.each { |name| Signals.__send__(:subscribe, self, name) }
      subscribed = true
    ensure
      close if @bell && !subscribed
    end

    # Yields the signals, one after the other.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds for each signal; nil: no limit
    # @yieldparam name [Symbol]
    # @raise (see #next_signal)
    # @since 0.1.0
    def each(timeout: nil)
      return to_enum(:each, timeout: timeout) unless block_given?

      yield next_signal(timeout: timeout) until closed?
    end

    # Waits for the next signal. A cancellation or a timeout loses none. If several strands wait, each gets another signal.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Symbol]
    # @raise [TimeoutError] when the time is up
    # @raise [ClosedError] after {#close}, and in a forked child
    # @since 0.1.0
    def next_signal(timeout: nil)
      reader
      Net.within(@machine, timeout, "signals: none came") { wait } if @came.empty?
      @came.shift
    end

    # Restores the handlers before. A strand that waits gets a ClosedError.
    #
    # May switch strands.
    #
    # @return [nil] also when this was called before
    # @since 0.1.0
    def close
      return unless @reader

      reader, @reader = @reader, nil
      @names.each { |name| Signals.__send__(:unsubscribe, self, name) }
      [reader, @writer].each { |descriptor| @machine.close(descriptor) } unless @machine.closed?
      nil
    end

    # @return [Boolean]
    # @since 0.1.0
    def closed? = @reader.nil? || !here?

    # @return [Boolean] whether this is the process that made it
    # @api private
    def here? = @pid == Process.pid

    # @return [String]
    # @since 0.1.0
    def inspect = "#<#{self.class} #{@names.join(" ")}#{" (closed)" if closed?}>"

    private

    def reader
      raise ClosedError, "the signals are closed; a forked child has none of its parent's" if closed?

      @reader
    end

    # One strand at a time reads the pipe. Its signal may have been taken by another strand when it has read.
    def wait
      @reading.synchronize { @machine.read(reader, +"", 1) while @came.empty? }
    end

    # If the pipe is full, the byte is not needed: the reader will wake anyway.
    def came(name)
      return unless @reader

      @came << name.to_sym
      @bell.write_nonblock("!", exception: false)
    end

    def name_of(given)
      number = given.is_a?(Integer) ? given : Signal.list[given.to_s.delete_prefix("SIG")]
      name = Signal.signame(number) if number&.between?(0, 64)
      raise UsageError, "signals: there is no signal #{given.inspect}" unless name
      raise UsageError, "signals: SIG#{name} cannot be waited for" if RESERVED.include?(name)

      name
    end
  end
end
