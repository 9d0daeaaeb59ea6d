# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Runs jobs from the quarantine, one at a time and each in a process of its own, which a {Jobs::Quarantine} makes. How often
      # a job has ended that process the storage counts, so that it also counts for those that ended ours.
      #
      # @api private
      class Alone
        WAIT_SECONDS = 2
        # Seconds that a worker may need to hear of a signal that its child has heard of.
        TOLD_SECONDS = 1
        # Seconds between looks whether a pause is over.
        LOOK_SECONDS = 0.5

        # The process in which a job ran alone has ended, so often that it will not run again.
        class DiedError < Error; end

        # @param worker [Worker]
        # @param runner [Jobs::Quarantine]
        def initialize(worker, machine, storage, config, outage, strays, runner)
          @worker = worker
          @machine = machine
          @storage = storage
          @config = config
          @outage = outage
          @strays = strays
          @runner = runner
          @closed = false
        end

        # Until it is closed. May switch strands.
        def work
          until @closed
            next @machine.sleep(LOOK_SECONDS) if paused?
            break if @closed # meanwhile; who ends waits has seen none here

            strand = @outage.attempt(:wait) { @strays.watch { wait } }
            finish(strand) if strand
          end
        end

        def close = @closed = true

        # @return [Boolean] whether a wait may bring one yet
        def waiting? = @waits == true

        # In a strand of the run's own. May switch strands.
        #
        # @param performer [Performer]
        # @return [Outcome]
        def call(performer, retrying, run)
          fetched = run.fetched
          begun = @outage.persist(:begin_alone) { @storage.begin_alone(@worker.node, fetched, run: run.number) }
          return performer.ended_early(fetched, run.job, :return) if begun.zero? # it is somebody else's by now
          return give_up(fetched, "with its worker", begun - 1, retrying) if begun > @config.deaths

          result = @runner.run(fetched, run.job) { Alone.portable(performer.call(fetched, run.job)) }
          return result.value unless result.died?

          told_to_end?(result) ? performer.ended_early(fetched, run.job, :return) : died(fetched, begun, result.fate, retrying)
        rescue SystemCallError => error # no process can be made now
          @outage.pause(:fork, error)
          performer.ended_early(fetched, run.job, :return)
        end

        # @return [Outcome]
        def self.portable(outcome)
          outcome.error &&= Jobs::Quarantine.portable(outcome.error)
          outcome
        end

        private

        # A signal that reaches all processes at once is no fault of the job's. It may be on its way to this one still.
        def told_to_end?(result)
          @machine.sleep(TOLD_SECONDS) if result.told && !@closed
          result.told && @closed
        end

        def finish(strand)
          strand.join
        rescue TerminatedError # it was cancelled before it had begun
          nil
        end

        def wait
          @waits = true
          fetched = @storage.wait(@worker.node, Storage::QUARANTINE, WAIT_SECONDS) or return
          return @worker.start_alone(fetched) unless @closed || paused?

          @worker.give_back(fetched)
          nil
        ensure
          @waits = false
          @worker.wait_ended
        end

        def paused? = @outage.attempt(:paused) { @storage.paused.include?(Storage::QUARANTINE) }

        def died(fetched, begun, fate, retrying)
          return give_up(fetched, fate, begun, retrying) if begun >= @config.deaths

          # Without the jid, for this run is not to be forgotten.
          change = Storage::Failure.new(fetched.queue, fetched.entry, nil, :queue, fetched.entry)
          Outcome.new(change, :died, nil, "(#{fate}); it runs alone again")
        end

        # @param fate [String] how the process has ended, the last time
        def give_up(fetched, fate, deaths, retrying)
          retrying.give_up(fetched, DiedError.new("the process in which it ran alone has ended (#{fate}), #{deaths} times"))
        end
      end
      private_constant :Alone
    end
  end
end
