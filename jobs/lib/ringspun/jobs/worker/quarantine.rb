# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Runs jobs that were in flight when a process died, one at a time and each in a process of its own, so that one that ends
      # its process ends no other job.
      #
      # The process is made by the *runner*, an object with a method `run(fetched, job) { ... }`. That calls the block in a child
      # and returns what the block has returned there, an {Outcome} without its error, which Marshal can carry; or nil when the
      # child has ended without one. It may switch strands, and ends its child when it is cancelled.
      #
      # @api private
      class Quarantine
        WAIT_SECONDS = 2

        # The process in which a job ran alone has ended, so often that it will not run again.
        class DiedError < Error; end

        # @param worker [Worker]
        def initialize(worker, storage, config, outage, runner)
          @worker = worker
          @storage = storage
          @config = config
          @outage = outage
          @runner = runner
          @closed = false
        end

        # Until it is closed. May switch strands.
        def work
          until @closed
            fetched = @outage.attempt(:wait) { @storage.wait(@worker.node, Storage::QUARANTINE, WAIT_SECONDS) }
            next unless fetched
            next @worker.give_back(fetched) if @closed || paused?

            @worker.start_alone(fetched)&.join
          end
        end

        def close = @closed = true

        # In a strand of the run's own. May switch strands.
        #
        # @param performer [Performer]
        # @return [Outcome]
        def call(performer, retrying, run)
          fetched = run.fetched
          begun = @outage.persist(:begin_alone) { @storage.begin_alone(@worker.node, fetched) }
          @runner.run(fetched, run.job) { performer.call(fetched, run.job).tap { |outcome| outcome.error = nil } } ||
            died(fetched, begun, retrying)
        end

        private

        # Where it went wrong to ask, it may run.
        def paused? = @outage.attempt(:paused) { @storage.paused.include?(Storage::QUARANTINE) }

        def died(fetched, begun, retrying)
          error = DiedError.new("the process has ended in which the job ran alone, #{begun} times by now")
          return retrying.give_up(fetched, error) if begun >= @config.deaths

          change = Storage::Failure.new(fetched.queue, fetched.entry, Wire.parse(fetched.entry)["jid"], :queue, fetched.entry)
          change.new_queue = Storage::QUARANTINE
          Outcome.new(change, :died, nil, "its process has ended; it runs alone again")
        end
      end
    end
  end
end
