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
            @thread = Thread.new { serve }
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
              first = @queue.pop(timeout: (Lane.idle if @idle))
              next @idle&.call unless first

              requests = [first]
              requests << @queue.pop while requests.size < TOGETHER_MAX && !@queue.empty?
              answer(requests.reject(&:left))
            end
          ensure
            @queue.close
            @queue.pop.answer until @queue.empty?
          end

          def answer(requests)
            @body.call(requests) if requests.any?
          ensure
            requests.each(&:answer)
          end
        end
        private_constant :Lane
      end
    end
  end
end
