# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      class Isolation
        # The process in which a job ran isolated has ended, so often that the job will not run again.
        class DiedError < Error; end
        # Workers have ended while they ran a job isolated, so often that the job will not run again.
        class WorkerDiedError < Error; end

        # Why a job that is not tried again is dead. Another job may have ended the process: nobody knows.
        NOT_AGAIN = "its process ended while it ran, by this job's fault or another's: how far it had come nobody knows, " \
                    "and it is not to be tried again (retry: 0 or false, or deaths: 0), so it does not run twice; if it may, " \
                    "retry it by hand"
        private_constant :NOT_AGAIN

        # Decides what becomes of an isolated suspect that has ended its child or its worker.
        #
        # @api private
        class Verdict
          # @param config [Config] says how many deaths are too many
          # @param retrying [Retrying] gives jobs up
          # @param deaths [Deaths]
          def initialize(node, config, retrying, deaths)
            @node = node
            @config = config
            @retrying = retrying
            @deaths = deaths
          end

          # Gives up a suspect that is not to run again after its process has ended.
          #
          # @return [Boolean] whether it is given up
          def at_once(suspect)
            return false unless @retrying.deaths(suspect.run.job).zero?

            give_up(suspect, DiedError.new(NOT_AGAIN))
            true
          end

          # Gives up a suspect that has ended too many workers, before it runs once more.
          def before(suspect)
            lost = suspect.trials.isolated - suspect.trials.deaths - 1
            return if lost < @config.worker_deaths

            give_up(suspect, WorkerDiedError.new("its worker has died while it ran isolated, #{Words.times(lost)}"))
          end

          # The child in which it ran isolated has ended.
          #
          # @param fate [String] how
          def died(suspect, fate)
            deaths = suspect.trials.deaths + 1
            return suspect.answer(once_more(suspect, fate)) if deaths < @retrying.deaths(suspect.run.job)

            give_up(suspect, DiedError.new("the process in which it ran isolated has ended (#{fate}), #{Words.times(deaths)}"))
          end

          # Something else than its job has failed.
          def fault(suspect, error) = suspect.answer(@retrying.last_resort(suspect.fetched, error))

          # Tells the program of suspects whose child has ended. May switch strands.
          def report(suspects, fate)
            suspects.each { |one| @deaths.report(one.run.job, :died, fate:, queue: one.run.queue, node: @node) }
          end

          private

          def give_up(suspect, error) = suspect.answer(@retrying.give_up(suspect.fetched, error))

          def once_more(suspect, fate)
            change = Storage::Failure.new(queue: suspect.fetched.queue, token: suspect.fetched.token, jid: suspect.run.jid,
                                          to: :queue, died: true, event: Storage::Event.new(kind: :died, error_message: fate))
            Outcome.new(change, :died, nil, "(#{fate}); it runs isolated again")
          end
        end
      end
    end
  end
end
