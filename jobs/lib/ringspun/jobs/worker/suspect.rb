# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # A job from the quarantine that this worker has in flight. The strand of its run waits here until it has an outcome,
      # wherever and however often it runs meanwhile.
      #
      # @api private
      class Suspect
        # Seconds in which a job that is cancelled has to end; then its child does.
        CANCEL_SECONDS = 3

        # @return [Run]
        attr_reader :run

        # @return [Storage::Trials, nil]
        attr_accessor :trials

        # @return [Jobs::Quarantine::Group, nil] the child that runs it
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

        # @param outcome [Outcome, nil] nil: it was cancelled, and so has none
        def answer(outcome)
          return if gone?

          @gone = true
          @answers.push(outcome)
        end

        # In the strand of its run. May switch strands.
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

        # Until its child is gone, or it has ended in there: it must not run when others may have it.
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
