# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Makes runs of the jobs that were fetched, each in a strand, and ends runs early. A run that has ended goes to the {Acker}.
      #
      # @api private
      class Processor
        # The token of no job.
        NO_TOKEN = "taken away"
        private_constant :NO_TOKEN

        # @param scope [Scope] which owns the strands of jobs
        # @param runs [Runs] to which each run is added
        # @param performer [Performer]
        # @param retrying [Retrying] decides about what cannot be performed
        # @param acker [Acker]
        # @param log [Log]
        # @param keeps_done [Boolean] whether the storage is to keep jobs that are done
        def initialize(machine, scope, runs, performer, retrying, acker, log, keeps_done:)
          @machine = machine
          @scope = scope
          @runs = runs
          @performer = performer
          @retrying = retrying
          @acker = acker
          @log = log
          @keeps_done = keeps_done
        end

        # @param fetched [Storage::Fetched]
        def start(fetched)
          run = admit(fetched) or return
          run.strand = @scope.spin { perform(run) { @performer.call(run) } }
        end

        # @param fetched [Storage::Fetched] from the quarantine
        # @return [Suspect, nil] whose outcome is the run's
        def start_quarantined(fetched)
          run = admit(fetched) or return
          suspect = Suspect.new(run)
          run.strand = @scope.spin { perform(run) { suspect.outcome } }
          suspect
        end

        # @param fetched [Storage::Fetched] which shall not run here after all
        def give_back(fetched) = finish(@runs.add(fetched, nil), Outcome.returned(fetched, nil))

        # Cancels a job, if it runs here.
        #
        # @param jid [String]
        def cancel(jid) = @runs.running.each { |run| end_early(run, :cancel) if run.jid == jid }

        # Has a job know that it is to be cancelled: one that computes lets nobody cancel it, and must ask. May be called from
        # other threads and from signal handlers.
        #
        # @param jid [String]
        def mark_cancelled(jid) = @runs.running.each { |run| run.mark_cancelled if run.jid == jid }

        # Ends a run whose job was taken away.
        #
        # @param run [Run]
        def lose(run)
          run.lose
          @log.event(:warn, "taken away while it runs: it ends here", jid: run.jid, class: run.class_name, queue: run.queue)
          end_early(run, :return)
        end

        # Ends all runs, whose jobs go back to their queues.
        def return_all = @runs.running.each { |run| end_early(run, :return) }

        private

        def admit(fetched)
          job = Wire.parse(fetched.entry)
          job["queue"] ||= fetched.queue
          @runs.add(fetched, job)
        rescue MalformedEntryError => error
          finish(@runs.add(fetched, nil), @retrying.malformed(fetched, error))
          nil
        end

        # A run that has not begun never begins.
        def end_early(run, why)
          return unless run.strand

          fresh = run.strand.state == :new
          run.ask(why)
          @machine.terminate(run.strand)
          finish(run, Outcome.ended_early(run.fetched, run.job, why)) if fresh
        end

        # Nothing here may wait, for the strand may be cancelled.
        def perform(run)
          began = @machine.now
          @log.started(run.job)
          outcome = begin
            yield
          rescue Cancelled => error
            stopped_from_outside(run, error)
          end
        rescue Exception => error # a fault of this library, by which neither place nor entry must be lost
          outcome = @retrying.last_resort(run.fetched, error)
        ensure
          if outcome
            outcome.seconds ||= @machine.now - began
            outcome.change.ran = Storage::Ran.new(outcome.seconds, run.class_name) if @keeps_done && outcome.kind == :done
            finish(run, outcome)
          end
        end

        # A job that is cancelled with the whole worker ends as when the worker is stopped. A job that has cancelled itself has
        # failed.
        def stopped_from_outside(run, error)
          return Outcome.ended_early(run.fetched, run.job, run.asked || :return) if run.asked || @scope.cancelled?

          @retrying.call(run.fetched, error)
        end

        # That a lost run has ended is told all the same, for the sake of limits. But not in the name of its entry: the same job
        # may be in flight here again.
        def finish(run, outcome)
          outcome.change = Storage::Failure.new(run.queue, NO_TOKEN, run.jid, :queue) if run.lost?
          run.outcome = outcome
          run.acknowledge if outcome.acknowledged
          @acker.push(run)
        end
      end
      private_constant :Processor
    end
  end
end
