# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # A job from the quarantine that this worker has in flight. The strand of its run waits here until there is an outcome, in
      # however many children the job runs meanwhile.
      #
      # @api private
      class Suspect
        # Seconds in which a cancelled job has to end, before its child is ended.
        CANCEL_SECONDS = 3

        # @return [Run]
        attr_reader :run

        # @return [Storage::Trials, nil]
        attr_accessor :trials

        # @return [Jobs::Quarantine::Group, nil] the group whose child runs it
        attr_accessor :group

        # @param run [Run]
        def initialize(run)
          @run = run
          @answers = Queue.new
          @gone = @given_up = false
        end

        def fetched = @run.fetched

        # See {Jobs::Quarantine#group}.
        def ask(why) = @run.ask(why)

        # @return [Boolean] whether nobody waits for its outcome any more
        def gone? = @gone || !@run.outcome.nil?

        # @return [Boolean] whether its run is cancelled
        def given_up? = @given_up

        # @param outcome [Outcome, nil] nil: it was cancelled, and has none
        def answer(outcome)
          return if gone?

          @gone = true
          @answers.push(outcome)
        end

        # Has its job go back to the quarantine.
        def give_back = answer(Outcome.returned(fetched, @run.jid))

        # Waits for the outcome, in the strand of its run. May switch strands.
        #
        # @return [Outcome]
        # @raise [Cancelled] when it has none
        def outcome
          @answers.pop
        rescue Cancelled
          @given_up = true
          last = Ringspun.shield { outcome_of_cancelled } if @group
          raise unless last

          last
        ensure
          @gone = true
        end

        private

        # Waits until it has ended in its child, or the child has ended: it must not run on when others may have it.
        def outcome_of_cancelled
          @group.cancel(self, @run.asked || :return)
          Machine.current.timeout(CANCEL_SECONDS) { @answers.pop }
        rescue TimeoutError
          @group&.break_up
          @answers.pop
        end
      end
      private_constant :Suspect
    end
  end
end
