# frozen_string_literal: true

module Ringspun
  # Runs strands on one thread. See {Machine.current}.
  class Machine
    OPTIONS = %i[backend entries sqpoll busy_poll file_io workers_max strands_max seed faults trace].freeze
    LIBRARY = "#{__dir__}/".freeze
    private_constant :OPTIONS, :LIBRARY

    # How long {#close} waits for cancelled strands to unwind, in seconds.
    CLOSE_GRACE = 1.0

    # Which backend runs, and why not a better one.
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

    # Runs the block every so many seconds, in this strand, until it breaks or is cancelled. The schedule does not drift: a
    # run that takes long makes the next wait shorter, and runs that were missed are left out.
    #
    # May switch strands.
    #
    # @param interval [Numeric] seconds
    # @yield
    # @raise [UsageError] when the interval is not positive
    # @since 0.1.0
    def periodically(interval)
      raise UsageError, "periodically needs a block" unless block_given?

      unless interval.is_a?(Numeric) && interval.positive?
        raise UsageError, "periodically: the interval must be a positive number of seconds, got #{interval.inspect}"
      end

      due = now + interval
      while true # not `loop`, which would take a StopIteration of the block for its own end
        sleep([due - now, 0].max)
        yield
        due += interval
        due += ((now - due) / interval).ceil * interval if due < now
      end
    end

    # @return [String]
    # @since 0.1.0
    def inspect
      return "#<#{self.class} closed>" if closed?

      "#<#{self.class} #{backend_name} strands=#{metrics[:strands_live]}>"
    end

    # What every strand waits for, one a line, as {Inspector#tree} says it.
    #
    # @return [String]
    # @since 0.1.0
    def describe_strands = Inspector.new(self).__send__(:lines).join("\n")

    private

    def check_options(options)
      unknown = options.keys - OPTIONS
      return if unknown.empty?

      raise UsageError, "unknown option #{unknown.map(&:inspect).join(", ")}; known are #{OPTIONS.map(&:inspect).join(", ")}"
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

    # Where the program has called what spins a strand. The first place is that of the method in C, which names itself.
    def place_of_call
      own = true
      Thread.each_caller_location do |place|
        return place unless own || place.absolute_path&.start_with?(LIBRARY)

        own = false
      end
    end

    # What is raised here and is not how the strand ended is meant for the root: its turn comes when the machine is closed.
    def wait_for_end(strand, held_back)
      strand.join
    rescue Cancelled
      raise
    rescue Exception => e
      own = !strand.alive? && (e.equal?(strand.error) || e.is_a?(TerminatedError))
      ordinary = [StandardError, ScriptError, NoMemoryError, SystemStackError].any? { |kind| e.is_a?(kind) }
      return strand.error && report_unread(strand, e) if own && ordinary

      held_back << e unless held_back.any? { |other| other.equal?(e) }
      retry unless own
    end

    def raise_first(errors)
      return if errors.empty?

      Ringspun.__send__(:suppress, errors.first, errors.drop(1)) if errors.size > 1
      raise errors.first
    end

    # Ends a forked child whose strand has ended: as a program ends with that error, but without its at_exit blocks, which
    # are the parent's.
    def end_child(error, failed)
      [$stdout, $stderr].each(&:flush)
      case error
      when SystemExit then exit!(error.status)
      when SignalException
        trap(error.signo, "SYSTEM_DEFAULT")
        Process.kill(error.signo, Process.pid)
      when Exception then warn(text_of(error))
      end
      exit!(!error && !failed)
    end

    def deadlock_report
      "nothing runs and nothing can wake anybody:\n#{describe_strands}"
    end

    def report_unread(strand, error)
      warn("ringspun: #{strand.inspect} ended with an error that nobody joined: #{text_of(error)}")
    end

    def text_of(error)
      error.full_message(highlight: false)
    rescue StandardError => e
      "#{error.class} (its message raises #{e.class})"
    end
  end

  class Strand
    # @return [String]
    # @since 0.1.0
    def inspect = "#<Ringspun::Strand:0x#{(object_id << 3).to_s(16)} #{state}>"
  end
end
