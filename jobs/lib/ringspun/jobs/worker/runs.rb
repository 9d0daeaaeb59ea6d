# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # The jobs that this worker has in flight: each is a {Run} from when it was fetched until the storage has its outcome.
      # Starts runs, ends them early, and counts their outcomes.
      #
      # @api private
      class Runs
        # @return [Hash{Symbol => Integer}] how many have ended, by the kind of their outcome
        attr_reader :counts

        # @param performer [Performer]
        # @param retrying [Retrying]
        # @param log [Log]
        def initialize(performer, retrying, log)
          @performer = performer
          @retrying = retrying
          @log = log
          @all = {}.compare_by_identity
          @number = 0
          @counts = Hash.new(0)
          @dropped = 0
          @quarantined = 0
        end

        # @param scope [Scope] which owns the strands of jobs
        # @param acker [Acker] sends outcomes to the storage
        # @param orphans [Orphans] is told of each job that was fetched
        # @return [nil]
        def set_out(machine, scope, acker, orphans)
          @machine = machine
          @scope = scope
          @acker = acker
          @orphans = orphans
          nil
        end

        # --- which there are ---

        def size = @all.size
        def empty? = @all.empty?

        # @return [Array<Run>]
        def to_a = @all.keys

        # @return [Array<Run>] those whose job has not ended
        def running = to_a.reject(&:outcome)

        # @return [Array<Storage::Fetched>]
        def fetched = to_a.map(&:fetched)

        # Jobs from the quarantine take no place, for they run in children.
        #
        # @return [Integer] how many of so many places are free
        def free_places(places) = places - size + @quarantined

        # Adds the jobs that were dropped since the last call to the storage's count of failures.
        #
        # @param connection [Object, nil] of the storage
        def count_dropped(storage, connection = nil)
          dropped, @dropped = @dropped, 0
          storage.counters(failed: dropped, connection: connection) if dropped.positive?
        rescue UnavailableError # nothing was counted
          @dropped += dropped
          raise
        end

        # --- how they begin ---

        # @param fetched [Storage::Fetched]
        def start(fetched)
          run = admit(fetched) or return
          run.strand = @scope.spin { perform(run) { @performer.call(fetched, run.job, run) } }
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
        def give_back(fetched)
          finish(take_in(fetched, nil), @performer.ended_early(fetched, {}, :return))
        end

        # --- how they end ---

        # @param why [Symbol] :cancel or :return
        def end_early(run, why)
          return unless run.strand

          fresh = run.strand.state == :new # then it never runs
          run.ask(why)
          @machine.terminate(run.strand)
          finish(run, @performer.ended_early(run.fetched, run.job, why)) if fresh
        end

        # Called when the storage has the outcome of a run.
        #
        # @param taken_away [Boolean] whether it was not in flight here any more
        def settle(run, taken_away)
          @all.delete(run)
          @quarantined -= 1 if run.quarantined?
          record(run, taken_away)
        end

        # For a loop that no longer runs: gives back all but the run that holds the thread.
        #
        # @param in_flight [Array<Storage::Fetched>] what the storage says is in flight here
        # @return [Array<Run>] whose outcomes the storage is to get
        def abandon(in_flight)
          unread = unread(in_flight)
          runs = to_a.reject { |run| run.strand&.state == :running }
          runs.each { |run| run.outcome ||= @performer.ended_early(run.fetched, run.job || {}, :return) }
          runs + unread
        end

        private

        # Jobs that waits and fetches have brought since the loop last ran.
        def unread(in_flight)
          known = fetched.tally
          jobs = in_flight.reject { |one| known[one].to_i.positive? && known[one] -= 1 }
          jobs.map.with_index(@number + 1) do |one, number|
            Run.new(one, nil, number).tap { |run| run.outcome = @performer.ended_early(one, {}, :return) }
          end
        end

        def admit(fetched)
          take_in(fetched, Wire.parse(fetched.entry))
        rescue MalformedEntryError => error
          finish(take_in(fetched, nil), @retrying.malformed(fetched, error))
          nil
        end

        def take_in(fetched, job)
          @orphans.came(fetched)
          job["queue"] ||= fetched.queue if job
          run = Run.new(fetched, job, @number += 1)
          @all[run] = true
          @quarantined += 1 if run.quarantined?
          run
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
            finish(run, outcome)
          end
        end

        # A job that is cancelled with the whole worker ends as when the worker is stopped. A job that has cancelled itself has
        # failed.
        def stopped_from_outside(run, error)
          return @performer.ended_early(run.fetched, run.job, run.asked || :return) if run.asked || @scope.cancelled?

          @retrying.call(run.fetched, error)
        end

        def finish(run, outcome)
          run.outcome = outcome
          @acker.push(run)
        end

        def record(run, taken_away)
          outcome = run.outcome
          if taken_away
            @counts[:taken_away] += 1
            return @log.event(:warn, "taken away: others have run it, or will", jid: run.jid, class: run.class_name,
                                                                                queue: run.queue)
          end
          @counts[outcome.kind] += 1
          @dropped += 1 if outcome.kind == :dropped
          report(run, outcome)
        rescue StandardError => error # the methods of an error may be the job's own code
          @log.event(:error, "the end of a run cannot be told", jid: run.jid, error: error.class.name)
        end

        def report(run, outcome)
          case outcome.kind
          when :done then @log.done(run.job, outcome.seconds)
          when :malformed then @log.event(:error, "no job: #{outcome.error.message}", queue: run.queue)
          when :returned then nil
          else
            return @log.failed(run.job, outcome.error, outcome.seconds || 0.0, outcome.text) if outcome.error

            @log.event(:info, "#{outcome.kind} #{outcome.text}".strip, jid: run.jid, class: run.class_name, queue: run.queue)
          end
        end
      end
      private_constant :Runs
    end
  end
end
