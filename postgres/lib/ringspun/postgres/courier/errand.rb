# frozen_string_literal: true

module Ringspun
  module Postgres
    class Courier
      # When the time of a call is over, which passes from the call on, also while the courier is busy with others.
      #
      # @param seconds [Numeric, nil]
      # @return [Float, nil]
      def self.due(seconds) = seconds && (Postgres.now + seconds)

      # In the courier's thread, whose machine's time stands while something holds up the thread.
      #
      # @return [Float, nil] seconds until then
      def self.left(due)
        return unless due

        over = Process.clock_gettime(Process::CLOCK_MONOTONIC) > due
        raise Postgres.late("the time was over before the server was asked", false) if over

        [due - Postgres.now, 0].max
      end

      # A call on its way, there and back.
      class Errand
        # @param undo [Proc, nil] gets the value when nobody waits for it any more
        def initialize(undo, &work)
          @undo = undo
          @work = work
          @answer = Thread::Queue.new
          @given_up = false
        end

        def given_up? = @given_up

        # In the caller. When it is interrupted, the block is called.
        #
        # @yieldparam late [true, nil] its time is over, and it goes on waiting
        def wait(&)
          kind, value = receive(&)
          answered = true
          return value if kind == :value

          value.set_backtrace(caller(3))
          raise value
        ensure
          yield unless answered
        end

        # Nobody waits for it any more.
        def give_up = @given_up = true

        # In the courier's thread, as all below.
        #
        # @return [Boolean] whether it has come before
        def back? = @given_up

        def begin(machine) = @strand = machine.spin { run }

        # Its strand may be about to answer, or have done so.
        def take_back(machine)
          @strand&.terminate
          kind, value = @answer.pop unless @answer.empty?
          machine.spin { @undo&.call(value) } if kind == :value
        end

        def fail(error) = @answer << [:error, error]

        private

        def receive = @answer.pop

        def work = @work.call

        def run
          answer = [:value, work]
        rescue Exception => error
          answer = [:error, error] unless error.is_a?(Cancelled) || error.is_a?(TerminatedError)
          raise unless error.is_a?(StandardError)
        ensure
          answer ||= [:error, Postgres.lost("the courier has ended", true)]
          @given_up && answer.first == :value ? @undo&.call(answer.last) : @answer << answer
        end
      end
      private_constant :Errand
    end
  end
end
