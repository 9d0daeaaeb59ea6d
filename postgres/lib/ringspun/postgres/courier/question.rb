# frozen_string_literal: true

module Ringspun
  module Postgres
    class Courier
      # A statement that stands alone, on its way. A lane takes it, and whoever attends to the lane brings the answer. It takes a
      # strand only where no lane can have it at once, or what a lane has answered is not the end of it.
      class Question < Errand
        # @param due [Float, nil] when its time is over
        def initialize(courier, sql, params, due, prepared, idempotent)
          super(nil)
          @courier = courier
          @sql = sql
          @params = params
          @due = due
          @prepared = prepared
          @idempotent = idempotent
        end

        def back? = super || @lane || @strand

        def begin(machine)
          Courier.left(@due)
          taken = @courier.lanes.post(@sql, @params, @prepared, self)
          taken.is_a?(Symbol) ? super : @courier.attend(@lane = taken)
        rescue Cancelled, TerminatedError
          raise
        rescue Exception => error # also NotImplementedError of a parameter's to_json, which is no other caller's
          fail(error)
        end

        # @param answer [Result, Exception, Symbol] of the lane; a Symbol: it was not executed
        def answer(machine, answer)
          return if given_up?

          lost = answer.is_a?(ConnectionLost)
          return fail(answer) if answer.is_a?(Exception) && !(lost && @idempotent)
          return @answer << [:value, answer] unless lost || answer.is_a?(Symbol)

          @idempotent = false if lost
          @strand = machine.spin { run }
        end

        # Its strand knows when the time is over.
        def take_back(machine)
          error = @courier.lanes.withdraw(@lane, self) if @lane
          fail(error) if error

          super if @given_up
        end

        private

        def receive
          return super unless @due

          @answer.pop(timeout: [@due - Postgres.now, 0].max) || begin
            yield true
            super
          end
        end

        def work = @courier.lanes.query(@sql, @params, Courier.left(@due), @prepared, @idempotent)
      end
      private_constant :Question
    end
  end
end
