# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # The registry of the jobs that this worker has in flight: each is a {Run} from when it was fetched until the storage has
      # its outcome. Counts and logs outcomes.
      #
      # @api private
      class Runs
        # @return [Hash{Symbol => Integer}] how many have ended, by the kind of their outcome
        attr_reader :counts

        # @return [Measures, nil]
        attr_reader :measures

        # @param log [Log]
        # @param measures [Measures, nil] which hear of each outcome
        def initialize(log, measures = nil)
          @log = log
          @measures = measures
          @all = {}.compare_by_identity # run => whether its job is from the quarantine
          @number = 0
          @counts = Hash.new(0)
          @dropped = @twice = 0
          @quarantined = 0
        end

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
        # @return [Integer] how many of the places are free
        def free_places(places) = places - size + @quarantined

        # @param fetched [Storage::Fetched]
        # @param job [Hash, nil] nil for an entry that does not run
        # @return [Run]
        def add(fetched, job)
          run = Run.new(fetched, job, @number += 1)
          @quarantined += 1 if (@all[run] = run.quarantined?)
          run
        end

        # Removes a run, for the storage has its outcome.
        #
        # @param run [Run]
        # @param taken_away [Boolean] whether it was not in flight here any more
        def settle(run, taken_away)
          @quarantined -= 1 if @all.delete(run)
          return record(run, taken_away) unless taken_away && run.acknowledged? && !run.lost?

          run.outcome = run.outcome.after_own_ack
          record(run, false)
        end

        # For a loop that no longer runs: ends all runs but the one that holds the thread, for their jobs go back.
        #
        # @param in_flight [Array<Storage::Fetched>] what the storage says is in flight here
        # @return [Array<Run>] whose outcomes the storage is to get
        def abandon(in_flight)
          runs = to_a.reject { |run| run.strand&.state == :running } + unread(in_flight)
          runs.each { |run| run.outcome ||= Outcome.returned(run.fetched, run.jid) }
        end

        # Adds what the storage does not see to its counts: the jobs that were dropped since the last call, as failures, and the
        # runs of jobs that were taken away meanwhile. May switch strands.
        #
        # @param connection [Object, nil] of the storage
        # @raise [UnavailableError] nothing was counted; they stay for the next call
        def count_unseen(storage, connection = nil)
          dropped, @dropped = @dropped, 0
          twice, @twice = @twice, 0
          storage.counters(failed: dropped, twice: twice, connection: connection) if dropped.positive? || twice.positive?
        rescue UnavailableError
          @dropped += dropped
          @twice += twice
          raise
        end

        private

        # Jobs that waits and fetches have brought since the loop last ran.
        def unread(in_flight)
          known = fetched.tally
          jobs = in_flight.reject { |one| known[one].to_i.positive? && known[one] -= 1 }
          jobs.map.with_index(@number + 1) { |one, number| Run.new(one, nil, number) }
        end

        def record(run, taken_away)
          return taken_away(run) if taken_away

          outcome = run.outcome
          @counts[outcome.kind] += 1
          @dropped += 1 if outcome.kind == :dropped
          @measures&.add(run, outcome)
          report(run, outcome)
        rescue StandardError => error # the methods of an error may be the job's own code
          @log.event(:error, "the end of a run cannot be told", jid: run.jid, error: error.class.name)
        end

        # One that goes back of itself has not begun; one that goes back because it was asked has.
        def taken_away(run)
          @counts[:taken_away] += 1
          @twice += 1 unless run.outcome.kind == :returned && run.asked.nil?
          @log.event(:warn, "taken away: others have run it, or will", jid: run.jid, class: run.class_name, queue: run.queue)
        end

        # Says nothing of a job that had not begun.
        def returned(run, outcome)
          @log.event(:info, "back in its queue", **Log.fields_of(run.job, outcome.seconds)) if run.job && outcome.seconds
        end

        def report(run, outcome)
          case outcome.kind
          when :done
            @log.done(run.job, outcome.seconds)
            @log.event(:warn, outcome.text, jid: run.jid, class: run.class_name, queue: run.queue) if outcome.text
          when :malformed then @log.event(:error, "no job: #{outcome.error.message}", queue: run.queue)
          when :returned then returned(run, outcome)
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
