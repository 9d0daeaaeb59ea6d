# frozen_string_literal: true

require "ringspun/core_ext"

# For programs that were written for the gem `concurrently`: its names, on Ringspun.
module Concurrently
  VERSION = Ringspun::VERSION
  Error = Ringspun::Error
  Evaluation = Ringspun::Evaluation

  # As the gem's: {#call} runs in a strand of its own, which goes on when its caller is cancelled.
  class Proc < Ringspun::ConcurrentProc
    # The evaluations of its runs.
    class Evaluation < Concurrently::Evaluation
      # What concludes an evaluation, and nothing else does.
      module RescueableError
        # @api private
        def self.===(error) = [StandardError, ScriptError, SecurityError, SystemStackError].any? { |kind| error.is_a?(kind) }
      end
    end

    # @api private
    def self.evaluation_class = Evaluation

    alias call call_and_await
    alias [] call_and_await
    public :call, :[]
  end

  # The loop of this thread.
  class EventLoop
    # @return [EventLoop] this thread's
    # @since 0.1.0
    def self.current
      Thread.current.thread_variable_get(:concurrently_event_loop) ||
        new.tap { |event_loop| Thread.current.thread_variable_set(:concurrently_event_loop, event_loop) }
    end

    # @api private
    def initialize = reinitialize!

    # Sets its clock back. After a fork nothing has to be done.
    #
    # @return [EventLoop] self
    # @since 0.1.0
    def reinitialize!
      @started = now
      self
    end

    # @return [Float] seconds since it was made
    # @since 0.1.0
    def lifetime = now - @started

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # What the methods of Kernel make here.
  module KernelMethods
    private

    def concurrent_proc(evaluation_class = nil, &) = Concurrently::Proc.new(evaluation_class, &)

    def concurrently(*, **, &) = Concurrently::Proc.new(&).call_detached(*, **)
  end
end

Kernel.include(Concurrently::KernelMethods)
