# frozen_string_literal: true

module Ringspun
  # Runs strands on one thread. See {Machine.current}.
  class Machine
    OPTIONS = %i[backend entries sqpoll busy_poll stream_io file_io workers_max strands_max seed faults trace on_error].freeze
    LIBRARY = "#{__dir__}/".freeze
    # Errors that end a strand; any other exception ends the program.
    ORDINARY = [StandardError, ScriptError, NoMemoryError, SystemStackError].freeze
    private_constant :OPTIONS, :LIBRARY, :ORDINARY

    # The step of the machine's clock, in seconds. A simulated clock stands still for what is shorter.
    CLOCK_STEP = 1e-9
    private_constant :CLOCK_STEP

    # How long {#close} waits for cancelled strands to unwind, in seconds.
    CLOSE_GRACE = 1.0

    # The backend of a machine, and why it was chosen.
    #
    # @!attribute name [Symbol, nil] :uring, :epoll or :sim; nil once the machine is closed
    # @!attribute reason [String]
    Backend = Struct.new(:name, :reason) do
      # @return [String]
      # @since 0.1.0
      def to_s = "#{name} (#{reason})"
    end

    # @return [Backend]
    # @since 0.1.0
    def backend = Backend.new(backend_name, backend_reason).freeze

    # Runs the block every `interval` seconds, in this strand, until it breaks or is cancelled. The schedule does not drift: after
    # a long run the next wait is shorter, and missed runs are left out.
    #
    # May switch strands.
    #
    # @param interval [Numeric] seconds; less than a nanosecond counts as one
    # @yield
    # @raise [UsageError] when the interval is not positive
    # @since 0.1.0
    def periodically(interval)
      raise UsageError, "periodically needs a block" unless block_given?

      seconds = Seconds.positive(interval)
      unless seconds
        raise UsageError, "periodically: the interval must be a positive number of seconds, got #{interval.inspect}"
      end

      seconds = [seconds, CLOCK_STEP].max
      due = now + seconds
      while true # not `loop`, which ends when the block raises StopIteration
        sleep([due - now, 0].max)
        yield
        due = [due + seconds, due.next_float].max # where the clock has run for months, a Float does not tell nanoseconds
        due += ((now - due) / seconds).ceil * seconds if due < now
      end
    end

    # @return [String]
    # @since 0.1.0
    def inspect
      return "#<#{self.class} closed>" if closed?

      "#<#{self.class} #{backend_name} strands=#{metrics[:strands_live]}>"
    end

    def self.check_options(options)
      unknown = options.keys - OPTIONS
      return if unknown.empty?

      raise UsageError, "unknown option #{unknown.map(&:inspect).join(", ")}; known are #{OPTIONS.map(&:inspect).join(", ")}"
    end
    private_class_method :check_options

    private

    def take_options(options)
      self.class.__send__(:check_options, options)
      check_on_error(@on_error = options[:on_error])
    end

    def check_on_error(handler)
      return if handler.nil? || handler.respond_to?(:call)

      raise UsageError, "on_error: must be something to call with an error and its strand, got #{handler.inspect}"
    end

    # For libraries: runs the block in a strand for which no run waits. Outside of a run as {#spin}.
    #
    # May switch strands.
    #
    # @param needed [Boolean] the end of the run waits for up to a second until the strand calls what the block gets
    # @yieldparam done [Proc]
    # @return [Strand]
    def spin_beside(needed: false, &block)
      run = Thread.current.thread_variable_get(:ringspun_run)
      run ? run.spin_beside(needed, &block) : spin { block.call(-> {}) }
    end

    # Sets the handler while the block runs; nil: the one before.
    def with_on_error(handler)
      before = @on_error
      @on_error = handler || before
      yield
    ensure
      @on_error = before
    end

    def shut_down
      return if closed?

      check_closable
      others = strands - [running]
      others.each { |strand| terminate(strand) }
      held_back = []
      begin
        timeout(CLOSE_GRACE) { others.each { |strand| wait_for_end(strand, held_back) } }
      rescue TimeoutError
        raise UsageError, "these strands did not end within #{CLOSE_GRACE} s of their cancellation:\n#{describe_strands}"
      end
      close_engine
      raise_first(held_back)
    ensure
      watches.each { |watch| watch.__send__(:end_soon) } if closed?
    end

    def watches = @watches ||= []

    # The place in the program from which a strand was spun. The first location is that of the C method.
    def place_of_call
      own = true
      Thread.each_caller_location do |place|
        return place unless own || place.absolute_path&.start_with?(LIBRARY)

        own = false
      end
    end

    # An exception raised here that is not the strand's own is for the root, and is raised after the machine is closed.
    def wait_for_end(strand, held_back)
      strand.join
    rescue Cancelled
      raise
    rescue Exception => e
      own = !strand.alive? && (e.equal?(strand.error) || e.is_a?(TerminatedError))
      ordinary = ORDINARY.any? { |kind| e.is_a?(kind) }
      return strand.error && report_error(strand, e) if own && ordinary

      held_back << e unless held_back.any? { |other| other.equal?(e) }
      retry unless own
    end

    def raise_first(errors)
      return if errors.empty?

      Ringspun.__send__(:suppress, errors.first, errors.drop(1)) if errors.size > 1
      raise errors.first
    end

    # Ends a forked child whose strands have ended, like a program that ends with that error, but without at_exit blocks: those
    # are the parent's.
    def end_child(error, failed)
      [$stdout, $stderr].each { |io| io.flush rescue nil } # as Ruby does at the end of a program
      case error
      when SystemExit then exit!(error.status)
      when SignalException
        trap(error.signo, "SYSTEM_DEFAULT")
        Process.kill(error.signo, Process.pid)
      when Exception then Warnings.tell(text_of(error))
      end
      exit!(!error && !failed)
    end

    def deadlock_report
      "nothing runs and nothing can wake anybody:\n#{describe_strands}"
    end

    # Reports the errors that are due. Runs in a strand of its own.
    def report_due_errors
      while (entry = next_unread(false))
        report_error(*entry)
      end
    end

    # Reports all errors, at the end of a run, a machine or the program. If a handler raises an error that is not ORDINARY, it is
    # raised after all are reported.
    def report_unread_errors
      held_back = []
      while (entry = next_unread(true))
        begin
          report_error(*entry)
        rescue Cancelled
          raise
        rescue Exception => e
          held_back << e
        end
      end
      raise_first(held_back)
    end

    # Reports those of strands of a run inside another one, at its end.
    def report_errors_of_run(scope)
      make_due(scope)
      report_due_errors
    end

    # @param handler [#call, false, nil] false: a warning; nil: the `on_error:` of the run or the machine, else a warning
    def report_error(strand, error, handler = nil)
      reported = false
      handler = @on_error if handler.nil?
      handler ? hand_over(handler, strand, error) : warn_of(strand, error)
      reported = true
    rescue *ORDINARY # if $stderr is closed, for example
      reported = true
    ensure
      keep_unreported(strand, error) unless reported
    end

    def on_error? = !@on_error.nil?

    def hand_over(handler, strand, error)
      handler.call(error, strand)
    rescue *ORDINARY => e
      warn_of(strand, error)
      warn("ringspun: on_error: failed itself when it was told of that: #{text_of(e)}")
    end

    def warn_of(strand, error)
      warn("ringspun: #{strand.inspect} ended with an error that nobody joined: #{text_of(error)}")
    end

    def text_of(error)
      error.full_message(highlight: false)
    rescue StandardError => e
      "#{error.class} (its message raises #{e.class})"
    end
  end

  class Strand
    # Cancels the strand, as {Machine#terminate} does: its present wait ends and every later one is refused, so that it unwinds
    # through its ensure blocks. Join it to wait for its end. May be called from any thread and from a signal handler; never
    # waits.
    #
    # @return [Boolean] false when the strand has ended
    # @since 0.1.0
    def terminate = machine.terminate(self)

    # Says what the strand is there for. {Inspector} shows it, and so does {#inspect}.
    #
    # @param value [#to_s, nil] an object is asked anew each time, on any thread: it may say what the strand does at present
    # @return [#to_s, nil]
    # @since 0.1.0
    attr_writer :name

    # @return [String, nil] what it was named
    # @since 0.1.0
    def name = @name&.to_s

    # @return [String]
    # @since 0.1.0
    def inspect = "#<Ringspun::Strand:0x#{(object_id << 3).to_s(16)} #{state}#{" #{name.inspect}" if @name}>"
  end
end
