# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # Holds up threads between two pieces of their work, however soon the next one begins. One of them works at a time. A
        # lock would not do: the thread that gives it back and wants it again is first.
        #
        # @api private
        class Pause
          def initialize
            @lock = Thread::Mutex.new
            @changed = Thread::ConditionVariable.new
            @paused = 0
            @working = false
          end

          # @yield as soon as nobody wants a pause, and no other thread works
          def work
            begun = false
            @lock.synchronize do
              @changed.wait(@lock) while @paused.positive? || @working
              begun = @working = true
            end
            yield
          ensure
            end_work if begun
          end

          # @yield if nobody wants a pause, and no other thread works
          # @return [Object, nil] the block's value; nil: it was not called
          def try
            begun = false
            @lock.synchronize { begun = @working = true unless @paused.positive? || @working }
            yield if begun
          ensure
            end_work if begun
          end

          # Returns when the work of now has ended. A caller that is interrupted before has no pause.
          #
          # @return [nil]
          def begin
            @lock.synchronize do
              @paused += 1
              @changed.wait(@lock) while @working
              begun = true
            ensure
              go_on unless begun
            end
            nil
          end

          # @return [nil]
          def end
            @lock.synchronize { go_on }
            nil
          end

          private

          def end_work
            @lock.synchronize do
              @working = false
              @changed.broadcast
            end
          end

          def go_on
            @paused -= 1
            @changed.broadcast
          end
        end
        private_constant :Pause
      end
    end
  end
end
