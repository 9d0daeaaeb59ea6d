# frozen_string_literal: true

require "ringspun/core_ext"

# The API of the gem `concurrently`, on Ringspun, for programs that were written for it. In a Gemfile the line
# `gem "concurrently"` becomes `gem "ringspun", require: "concurrently"`.
module Concurrently
  # The version of the gem whose API this is, for programs that check it.
  VERSION = "1.2.0"
  Error = Ringspun::Error
  Evaluation = Ringspun::Evaluation

  # The options of waits. The gem ignores other keys, and its programs pass them.
  module Limit
    def self.of(options, *more)
      return options unless options.is_a?(Hash)

      known = options.slice(:within, :timeout_result, *more)
      known[:within] ||= nil
      known.delete(:timeout_result) if Evaluation::TimeoutError.equal?(known[:timeout_result]) # so that it is raised
      known
    end
  end
  private_constant :Limit

  # As in the gem, {#call} runs in a strand of its own, which goes on when its caller is cancelled.
  class Proc < Ringspun::ConcurrentProc
    # The evaluations of its runs.
    class Evaluation < Concurrently::Evaluation
      # The errors that conclude an evaluation. No others do.
      module RescueableError
        # @api private
        def self.===(error) = [StandardError, ScriptError, SecurityError, SystemStackError].any? { |kind| error.is_a?(kind) }
      end

      # {Ringspun::Evaluation#await_result}, but other keys are ignored.
      #
      # May switch strands.
      #
      # @param limit [Hash, nil] `within:` and `timeout_result:`; other keys are ignored
      # @yieldparam result [Object, Exception] what would be returned or raised; the block's value takes its place
      # @return [Object]
      # @raise [Evaluation::TimeoutError] when the time is up
      # @since 0.1.0
      def await_result(limit = nil, &) = limit ? super(Limit.of(limit), &) : super(&)
    end

    # Methods for handlers that procs and their class have in the gem, besides `on`.
    module Callbacks
      # Like `on`, but the handler is called once.
      #
      # @param events [Array<Symbol>]
      # @yieldparam error [Exception]
      # @return [Ringspun::ConcurrentProc::Handler]
      # @since 0.1.0
      def once_on(*events, &block)
        of_class = is_a?(Class)
        handler = on(*events) do |*arguments|
          handler.cancel
          of_class ? instance_exec(*arguments, &block) : block.call(*arguments)
        end
      end

      # @param event [Symbol]
      # @return [Boolean] whether it has a handler of its own
      # @since 0.1.0
      def on?(event) = !handlers(event).empty?
    end

    include Callbacks
    extend Callbacks

    def self.evaluation_class = Evaluation
    private_class_method :evaluation_class

    # Sets where the errors that end runs are written; see {Ringspun::ConcurrentProc.error_log_output=}.
    #
    # @param output [IO, Logger, nil, false]
    # @raise [Error] for anything else, with the gem's message
    # @since 0.1.0
    def self.error_log_output=(output)
      super
    rescue Ringspun::UsageError
      raise Error, "output no logger or IO", cause: nil
    end

    # The text that the gem writes for an error.
    #
    # @param concurrent_proc [Ringspun::ConcurrentProc]
    # @param error [Exception]
    # @return [String]
    # @since 0.1.0
    def self.default_error_log_message(concurrent_proc, error)
      <<~TEXT
        Concurrent proc exited with error!
        Source location: #{(concurrent_proc.source_location&.first(2) || ["unknown"]).join(":")}
        Error: (#{error.class}) #{error}
        Backtrace: #{error.backtrace&.join("\n")}
      TEXT
    end

    alias call call_and_await
    alias [] call_and_await
    public :call, :[]

    # Calls the handlers of that event.
    #
    # @param event [Symbol]
    # @param arguments [Array<Object>] passed to the handlers
    # @return [:triggered]
    # @since 0.1.0
    def trigger(event, *arguments)
      super
      :triggered
    end
  end

  # The event loop of a thread, as far as programs use the gem's.
  class EventLoop
    # @return [EventLoop] this thread's
    # @since 0.1.0
    def self.current
      Thread.current.thread_variable_get(:concurrently_event_loop) ||
        new.tap { |event_loop| Thread.current.thread_variable_set(:concurrently_event_loop, event_loop) }
    end

    # @api private
    def initialize
      @thread = Thread.current
      @started = now
    end

    # Sets the clock back to zero, and cancels all other strands, which run their `ensure` blocks. Called in an evaluation or in a
    # block of Ringspun.run, it only sets the clock back. After a fork no call is needed.
    #
    # May switch strands.
    #
    # @return [EventLoop] self
    # @since 0.1.0
    def reinitialize!
      @started = now
      Ringspun::Machine.current.close if Thread.current == @thread && Ringspun::Machine.current? && closable?
      self
    end

    # @return [Float] seconds since it was made
    # @since 0.1.0
    def lifetime = now - @started

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def closable?
      Ringspun::Machine.current.__send__(:check_closable)
      true
    rescue Ringspun::UsageError
      false
    end
  end

  # The methods of Kernel, as in the gem.
  module KernelMethods
    private

    def concurrent_proc(evaluation_class = nil, &) = Concurrently::Proc.new(evaluation_class, &)

    def concurrently(*, **, &) = Concurrently::Proc.new(&).call_detached(*, **)

    def await_resume!(limit = nil) = limit ? super(Limit.of(limit)) : super()

    def await_fastest(*evaluations)
      evaluations.last.is_a?(Hash) ? super(*evaluations[0...-1], Limit.of(evaluations.last)) : super
    end
  end

  # The methods of IO, as in the gem.
  module IOMethods
    # The proc that {#concurrently_read} calls: `IO::READ_PROC`.
    READ_PROC = Proc.new { |io, maxlen, outbuf| io.await_read(maxlen, outbuf) }
    # The proc that {#concurrently_write} calls: `IO::WRITE_PROC`.
    WRITE_PROC = Proc.new { |io, string| io.await_written(string) }

    # Waits until the IO is readable or at its end.
    #
    # May switch strands.
    #
    # @param limit [Hash, nil] `within:`, `timeout_result:`, `poll_first:`; other keys are ignored
    # @return [true, Object] true, or the value given to {Evaluation#resume!}
    # @raise [Evaluation::TimeoutError] when the time is up
    # @since 0.1.0
    def await_readable(limit = nil) = limit ? super(Limit.of(limit, :poll_first)) : super()

    # Waits until the IO is writable.
    #
    # May switch strands.
    #
    # @param (see #await_readable)
    # @return (see #await_readable)
    # @raise (see #await_readable)
    # @since 0.1.0
    def await_writable(limit = nil) = limit ? super(Limit.of(limit, :poll_first)) : super()

    # `await_read` in a run of its own.
    #
    # @param maxlen [Integer] bytes, at most
    # @param outbuf [String, nil] the buffer that is read into
    # @return [Proc::Evaluation]
    # @since 0.1.0
    def concurrently_read(maxlen, outbuf = nil) = READ_PROC.call_detached(self, maxlen, outbuf)

    # `await_written` in a run of its own.
    #
    # @param string [String]
    # @return [Proc::Evaluation]
    # @since 0.1.0
    def concurrently_write(string) = WRITE_PROC.call_detached(self, string)
  end

  # The gem's message for a deadlock, which programs look for.
  module DeadlockReport
    private

    def deadlock_report
      "Infinitely running event loop detected: There are no evaluations scheduled and no IOs to await.\n#{super}"
    end
  end

  # The gem's advice on how to debug the misuse of an evaluation.
  module MisuseReport
    private

    def misuse_report(message)
      return super unless proc.nil? || proc.is_a?(Proc) # Debug logs only these

      <<~TEXT
        #{message}
          Evaluation id: #{__id__.to_s(36)}
          To debug how this happened enable logging of control flow with:

              require 'logger'
              Concurrently::Debug.enable Logger.new STDOUT
      TEXT
    end
  end
  private_constant :DeadlockReport, :MisuseReport

  Kernel.include(KernelMethods)
  IO.prepend(IOMethods)
  Ringspun::Machine.prepend(DeadlockReport)
  Ringspun::Machine.__send__(:run_in_whole_ticks) # the order of the gem's event loop
  MisuseReport.then { |report| Evaluation.prepend(report) } # YARD takes it for a constant
end

require_relative "concurrently/debug"
