# frozen_string_literal: true

# The names of the gem `mruby-concurrently`, for programs that were written for it.
module Concurrently
  # The version of the gem whose names these are, for programs that ask.
  VERSION = "1.2.0"
  Error = Ringspun::Error
  Evaluation = Ringspun::Evaluation
  Proc = Ringspun::ConcurrentProc

  # The loop that goes on beside the program, as far as programs use the gem's.
  class EventLoop
    def self.current = @current ||= new

    def initialize
      reinitialize!
    end

    # Sets the clock back to zero, and no more: a forked child of mruby has no strand but its own.
    def reinitialize!
      @started = Ringspun.machine.now
      self
    end

    # Seconds since then.
    def lifetime = Ringspun.machine.now - @started
  end

  # The gem logs here where evaluations begin, wait, go on and end.
  module Debug
    def self.enable(_logger, _filter = false)
      raise Ringspun::UnsupportedError, "Concurrently::Debug: evaluations are not logged on mruby; on CRuby they are"
    end
  end
end

module Ringspun
  class ConcurrentProc
    Evaluation = Ringspun::Evaluation

    # More of the gem's, for handlers.
    module Handlers
      # Like `on`, but the handler is called once.
      def once_on(*events, &block)
        of_class = is_a?(Class)
        handler = on(*events) do |*arguments|
          handler.cancel
          of_class ? instance_exec(*arguments, &block) : block.call(*arguments)
        end
      end

      # Whether that event has a handler here.
      def on?(event) = !__handlers(event).empty?
    end
  end

  class Evaluation
    # What ends a run and no more.
    module RescueableError
      def self.===(error) = ConcurrentProc.__rescueable?(error)
    end
  end
end
