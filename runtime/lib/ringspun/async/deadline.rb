# frozen_string_literal: true

module Ringspun
  module AsyncBridge
    # The deadline of a scope, with the methods of the timer of an Async::Timeout.
    class Deadline
      # @return [Float] on the machine's clock, in seconds
      attr_reader :time

      def initialize(machine, scope, seconds)
        @machine = machine
        @scope = scope
        @time = machine.now + seconds
        @cancelled = false
      end

      def now = @machine.now
      def cancelled? = @cancelled

      # The action of the timer. Async::Timeout only passes it back to {#schedule}, so it is never called.
      def block = @cancelled ? nil : self

      def cancel!
        @cancelled = true
        @scope.deadline = nil
      end

      def schedule(time, _block)
        @cancelled = false
        @time = time
        @scope.deadline = [time - now, 0].max
        self
      end
    end
  end
end
