# frozen_string_literal: true

module Ringspun
  class << self
    # Yields those signals as they come, until the block breaks. Meanwhile they have no other effect; what Ringspun.run does on
    # INT and TERM, and a program's own handlers, are there again afterwards.
    #
    # Each one that reaches Ruby is yielded. The kernel keeps but one of each kind for a process that has not taken it yet, so of
    # many at once some may be one.
    #
    # May switch strands.
    #
    # @param names [Array<Symbol, String, Integer>] :HUP, "SIGHUP", 1
    # @yieldparam name [Symbol] without SIG
    # @return [nil, Signals] without a block, the signals: close them
    # @raise [UsageError] for those that nobody can trap, or that Ruby has for itself
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

  # Signals that come to strands. See {Ringspun.signals}. Where several wait for the same, each gets it.
  class Signals
    # KILL and STOP nobody can trap; the others are Ruby's.
    RESERVED = %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM].freeze

    # Who waits for a signal, what to do on it, and what stood there before.
    Trap = Struct.new(:before, :handler, :waiting)
    private_constant :RESERVED, :Trap

    @traps = {}
    @lock = ::Mutex.new

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

          restore(name, entry) # first, so that none comes to nobody
          @traps.delete(name)
        end
      end

      # In a handler, where no lock may be taken: what it looks at is never changed in place.
      def deliver(name)
        entry = @traps[name] or return
        here, elsewhere = entry.waiting.partition(&:here?)
        here.each { |signals| signals.__send__(:came, name) }
        pass_on(name, entry) if here.empty? && !elsewhere.empty?
      end

      # A forked child has inherited the handler, and not those who wait.
      def pass_on(name, entry)
        @traps.delete(name)
        restore(name, entry)
        Process.kill(name, Process.pid)
      end

      # Unless somebody has put one of his own there. Ruby cannot tell what stood there if that was no handler of its own.
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
      @turn = Ringspun::Mutex.new
      @reader, @writer = @machine.pipe
      @bell = IO.for_fd(@writer, "w", autoclose: false)
      @names.each { |name| Signals.__send__(:subscribe, self, name) }
      subscribed = true
    ensure
      close if @bell && !subscribed
    end

    # Yields one after the other.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds that each may take
    # @yieldparam name [Symbol]
    # @raise (see #next_signal)
    # @since 0.1.0
    def each(timeout: nil)
      return to_enum(:each, timeout: timeout) unless block_given?

      yield next_signal(timeout: timeout) until closed?
    end

    # Waits for the next one. Cancelled or out of time, it has lost none. Of several strands that wait each gets another one.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [Symbol]
    # @raise [TimeoutError]
    # @raise [ClosedError] once they are closed, and in a forked child
    # @since 0.1.0
    def next_signal(timeout: nil)
      reader
      Net.within(@machine, timeout, "signals: none came") { wait } if @came.empty?
      @came.shift
    end

    # What stood there before stands there again. A strand that waits gets a ClosedError.
    #
    # May switch strands.
    #
    # @return [nil] also when they are closed already
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

    # @return [Boolean] whether this is the process in which they are waited for
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

    # One listens for all: what one has heard another may have taken.
    def wait
      @turn.synchronize { @machine.read(reader, +"", 1) while @came.empty? }
    end

    # A pipe that is full has rung often enough.
    def came(name)
      return unless @reader

      @came << name.to_sym
      @bell.write_nonblock("!", exception: false)
    end

    def name_of(given)
      number = given.is_a?(Integer) ? given : Signal.list[given.to_s.delete_prefix("SIG")]
      name = Signal.signame(number) if number
      raise UsageError, "signals: there is no signal #{given.inspect}" unless name
      raise UsageError, "signals: SIG#{name} cannot be waited for" if RESERVED.include?(name)

      name
    end
  end
end
