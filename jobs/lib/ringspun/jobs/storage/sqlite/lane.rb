# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # A thread that works for strands and threads, which wait until their work is done. What many of them want at the same
        # time it does together.
        #
        # @api private
        class Lane
          # The most at once, for the first of them waits for the last.
          TOGETHER_MAX = 256
          # Seconds without work after which it looks around.
          IDLE_SECONDS = 1

          # The masks of its thread. It may be killed at any time, and all callers are answered nevertheless: that takes effect
          # only where it waits or works.
          LATER = { Object => :never }.freeze
          WHILE_IT_WAITS = { Object => :on_blocking }.freeze
          AT_ONCE = { Object => :immediate }.freeze
          private_constant :LATER, :WHILE_IT_WAITS, :AT_ONCE

          @idle = IDLE_SECONDS

          class << self
            # @return [Numeric] seconds without work after which one that begins to wait looks around
            attr_accessor :idle
          end

          # What one caller wants.
          class Request
            attr_reader :work, :durable
            attr_accessor :value, :error, :left

            def initialize(work, durable)
              @work = work
              @durable = durable
              @gate = Thread::Queue.new
              @error = UnknownOutcomeError.new("the thread of the storage has ended")
            end

            # May switch strands.
            def wait
              @gate.pop
              raise @error if @error

              @value
            ensure
              @left = true
            end

            def answer = @gate << true
          end

          # @param name [String] of the thread
          # @param idle [Proc, nil] is called in it now and then while nobody wants anything; it raises nothing
          # @yieldparam requests [Array<Request>] it gives each of them a value or an error
          def initialize(name, idle: nil, &body)
            @body = body
            @idle = idle
            @queue = Thread::Queue.new
            @thread = Thread.handle_interrupt(LATER) { Thread.new { serve } } # a thread inherits the mask of its maker
            @thread.name = name
            @thread.report_on_exception = false
          end

          # May switch strands. A caller that is cancelled before its work has begun takes it along.
          #
          # @param durable [Boolean]
          # @param work [Proc]
          # @return [Object] the block's value
          # @raise [StandardError] the block's
          def call(work, durable: true)
            request = Request.new(work, durable)
            @queue << request
            request.wait
          rescue ClosedQueueError
            raise UnavailableError, "the storage has been closed, and nothing was done"
          end

          # @return [Boolean] false: it was closed, or other code of the program has killed it
          def alive? = @thread.alive?

          # Ends when all that was asked for is done. May switch strands.
          #
          # @return [nil]
          def close
            @queue.close
            @thread.join
            nil
          end

          private

          def serve
            until @queue.closed? && @queue.empty?
              first = Thread.handle_interrupt(WHILE_IT_WAITS) { @queue.pop(timeout: (Lane.idle if @idle)) }
              next look_around unless first

              requests = [first]
              requests << @queue.pop while requests.size < TOGETHER_MAX && !@queue.empty?
              answer(requests.reject(&:left))
            end
          ensure
            @queue.close
            @queue.pop.answer until @queue.empty?
          end

          def look_around = Thread.handle_interrupt(AT_ONCE) { @idle&.call }

          def answer(requests)
            Thread.handle_interrupt(AT_ONCE) { @body.call(requests) } if requests.any?
          ensure
            requests.each(&:answer)
          end
        end
        private_constant :Lane
      end
    end
  end
end
