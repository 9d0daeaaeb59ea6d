# frozen_string_literal: true

module Ringspun
  class << self
    # Runs the block in a strand of this thread's machine. Returns the block's value after the block has ended, and all strands
    # that were spun in it, or in one of those. An error of the block cancels the others. Inside another run the block runs in
    # the present strand, and the strands spun there belong to the inner run.
    #
    # On the main thread (of the main ractor), unless the program has a handler of its own, the first INT or TERM cancels the run,
    # so that `ensure` blocks run, and is then raised from here. The second is raised at once, in the code that runs. If no strand
    # can run any more, because all wait in a shield, the second ends the process.
    #
    # With options of {Machine#initialize} a machine is made for this run, and closed at its end.
    #
    # May switch strands.
    #
    # @param on_error [#call, nil] called with the error and the strand for errors that nobody joins: a second after the strand's
    #   end, at once if the program has no handle of it, or at the end of the run. It is called in a strand of its own and may
    #   wait. Its own errors are reported by a warning. nil: that of the run around this one, else the machine's `on_error:`, else
    #   a warning
    # @param options [Hash{Symbol => Object}] as for {Machine#initialize}
    # @yieldparam machine [Machine]
    # @return [Object] the block's value
    # @raise [Exception] what the block raised
    # @raise [UsageError] for an unknown option, and for options if the thread has a machine already
    # @since 0.1.0
    def run(on_error: nil, **options)
      raise UsageError, "Ringspun.run needs a block" unless block_given?

      made = machine_for_run(options)
      machine = made || Machine.current
      begin
        Run.new(machine, on_error: on_error).call { yield machine }
      ensure
        made.close if made && !made.closed?
      end
    end

    # Runs the block in a scope of the current strand. See {Machine#scope}.
    #
    # May switch strands.
    #
    # @param deadline [Numeric, nil] seconds from now; nil: none
    # @param on_error [#call, nil] called with the error and the strand as soon as a strand of this scope fails
    # @return [Object] the block's value; nil when {Scope#cancel} has cancelled the block
    # @since 0.1.0
    def scope(deadline: nil, on_error: nil, &block) = Machine.current.scope(deadline: deadline, on_error: on_error, &block)

    # Runs the block protected from cancellations from outside. They are raised at the next wait after it. Give it a deadline if
    # its end is not certain.
    #
    # May switch strands.
    #
    # @param deadline [Numeric, nil] seconds from now; nil: none
    # @return [Object] the block's value; nil when {Scope#cancel} has cancelled the block
    # @since 0.1.0
    def shield(deadline: nil, &block) = Machine.current.scope(deadline: deadline, shield: true, &block)

    # Starts a strand on this thread's machine. See {Machine#spin}.
    #
    # @return [Strand]
    # @since 0.1.0
    def spin(&block) = Machine.current.spin(&block)

    # @return [Machine::Backend] the backend of this thread's machine, and why it was chosen
    # @since 0.1.0
    def backend = Machine.current.backend

    private

    def machine_for_run(options)
      return if options.empty?
      return Machine.new(**options) unless Machine.current?

      Machine.__send__(:check_options, options)
      names = options.keys.map { |name| "#{name}:" }.join(", ")
      raise UsageError, "Ringspun.run: #{names} can only be chosen where the machine is made, and this thread has one already: " \
                        "leave them out, or close that machine first (Ringspun::Machine.current.close, outside a run)"
    end
  end

  # One Ringspun.run: its scope, and if it is the outermost one, the signals that cancel it.
  #
  # @api private
  class Run
    SIGNALS = %w[INT TERM].freeze

    # How long the end of a run waits for strands beside it that are needed.
    BESIDE_SECONDS = 1
    private_constant :BESIDE_SECONDS

    class << self
      # @param simulation [#cancel, nil] what this thread waits for outside of its machine, and is to be cancelled with its run
      def beside=(simulation)
        Thread.current.thread_variable_set(:ringspun_simulation, simulation)
      end

      # Cancels what that thread waits for so. May be called from a signal handler.
      def cancel_beside(thread) = thread.thread_variable_get(:ringspun_simulation)&.__send__(:cancel)
    end

    # @param signals [Boolean] whether INT and TERM cancel it
    def initialize(machine, signals: true, on_error: nil)
      @machine = machine
      @machine.__send__(:check_on_error, on_error)
      @on_error = on_error
      @signals = signals
      @pid = Process.pid
      @signal = nil
      @beside = {}.compare_by_identity # strand => whether the end waits for it
      @beside_changed = Condition.new
    end

    def call(&block)
      around = Thread.current.thread_variable_get(:ringspun_run)
      return run_nested(&block) if around&.here?

      begin
        Thread.current.thread_variable_set(:ringspun_run, self)
        with_signals { with_scheduler { @machine.__send__(:with_on_error, @on_error) { run_root(&block) } } }
      ensure
        Thread.current.thread_variable_set(:ringspun_run, around)
      end
    end

    # @return [Boolean] false in a forked child, whose own runs are inside none of the parent's
    def here? = @pid == Process.pid

    def cancel = @scope&.cancel

    # Runs the block at once in a strand of no scope: the run does not wait for its end, and cancels it at its own.
    #
    # @param needed [Boolean] the end of the run waits for up to a second until the strand calls what the block gets
    # @yieldparam done [Proc]
    def spin_beside(needed, &block)
      Fiber.scheduler.__send__(:begin_strand, false) do
        strand = @machine.running
        @beside[strand] = needed
        block.call(-> { leave_beside { @beside[strand] = false } })
      ensure
        leave_beside { @beside.delete(strand) }
      end
    end

    # @return [Boolean] true once a signal has cancelled it
    def signalled? = !@signal.nil?

    private

    def run_root(&block)
      value = @machine.scope do |scope|
        @scope = scope
        @machine.__send__(:adopt, scope)
        strand = scope.spin(&block)
        strand.await
      end
      raise_signal
      value
    rescue TerminatedError, Cancelled
      raise_signal
      raise
    ensure
      @machine.__send__(:adopt, nil) if @scope
      end_tasks
    end

    def run_nested
      scope = nil
      @machine.scope do |opened|
        (scope = opened).__send__(:become_run, @on_error)
        yield
      end
    ensure
      @machine.__send__(:report_errors_of_run, scope) if scope
    end

    # Ends what runs beside the strands of the run: Async's tasks, strands of libraries, unsent bytes, unread errors.
    def end_tasks
      scheduler = Fiber.scheduler
      scheduler.__send__(:end_tasks) if scheduler.is_a?(Scheduler)
      end_beside
    ensure
      Machine.__send__(:flush_streams)
      @machine.__send__(:report_unread_errors)
    end

    def leave_beside
      yield
      @beside_changed.broadcast
    end

    # In a forked child none of the parent's is alive.
    def end_beside
      return if @beside.empty?

      begin
        @machine.timeout(BESIDE_SECONDS) { @beside_changed.wait while @beside.any? { |strand, needed| needed && strand.alive? } }
      rescue TimeoutError
        nil # nobody knows how long it would take
      end
      @beside.keys.select(&:alive?).each(&:terminate).each { |strand| join_beside(strand) }
    end

    def join_beside(strand)
      strand.join
    rescue TerminatedError
      nil
    end

    def raise_signal = @signal && raise(exception_of(@signal))

    def exception_of(signal) = signal == "INT" ? Interrupt.new("") : SignalException.new("SIG#{signal}")

    # A Ringspun::Scheduler of the program stays.
    def with_scheduler
      present = Fiber.scheduler
      return yield if present.is_a?(Scheduler)

      if present
        raise UsageError, "this thread has another fiber scheduler (#{present.class}); run Ringspun on a thread of its own"
      end

      begin
        Fiber.set_scheduler(Scheduler.new.__send__(:stay))
        yield
      ensure
        Fiber.set_scheduler(nil)
      end
    end

    # Handlers of the program stay. They must be replaced first, because only the return value of `trap` shows the handler before.
    # Every ractor has a Thread.main.
    def with_signals
      return yield unless @signals && Thread.current == Thread.main && Ractor.current == Ractor.main

      replaced = SIGNALS.to_h { |name| [name, trap(name) { handle(name) }] }
      replaced.reject! { |name, before| !%w[DEFAULT SYSTEM_DEFAULT].include?(before) && trap(name, before) }
      begin
        yield
      ensure
        replaced.each { |name, before| trap(name, before) }
      end
    end

    def handle(name)
      return handle_in_child(name) unless here?

      # All strands were cancelled before and none became ready: no exception can reach any of them, not even the root.
      end_process(name) if @signal && @machine.__send__(:asleep?)
      raise exception_of(name) if @signal || !@scope

      @signal = name
      say_what_another_does
      @scope.cancel
      # The running strand may be waiting for a simulation, and the whole machine with it.
      Run.cancel_beside(Thread.current)
    end

    ANOTHER_ENDS = "\nringspun: a strand computes, and ends at its next wait. Ctrl-C again ends the program.\n"
    private_constant :ANOTHER_ENDS

    # For who presses Ctrl-C and sees nothing happen.
    def say_what_another_does
      $stderr.write(ANOTHER_ENDS) if @signal == "INT" && $stderr.tty? && !@machine.__send__(:asleep?)
    rescue SystemCallError, IOError
      nil # the terminal is gone
    end

    # A forked child inherits the handler, and not the run; it may have one of its own.
    def handle_in_child(name)
      run = Thread.current.thread_variable_get(:ringspun_run)
      run&.here? ? run.__send__(:handle, name) : raise(exception_of(name))
    end

    def end_process(name)
      trap(name, "SYSTEM_DEFAULT")
      Process.kill(name, Process.pid)
    end
  end
  private_constant :Run

  # For programs that use a machine without a run: sends the last written bytes, and reports errors that nobody joined.
  at_exit do
    Machine.__send__(:flush_streams)
    Machine.__send__(:report_unread_errors)
  end
end
