# frozen_string_literal: true

require_relative "suspect"

module Ringspun
  module Jobs
    class Worker
      # Runs jobs from the quarantine, each of which may end the process that it runs in. They share children, which a
      # {Jobs::Quarantine} makes. When a child dies its jobs run anew in two halves, and so on, until one is isolated: if its
      # child dies as well, that job has ended it. The storage counts how often, and how often a worker has died while the job ran
      # isolated.
      #
      # A group is an Array of suspects that run, or are to run, in one child.
      #
      # @api private
      class Isolation
        WAIT_SECONDS = 2
        # Seconds after its child has got a signal in which a worker may get the same one.
        TOLD_SECONDS = 1
        # Seconds between looks whether the quarantine is still paused.
        LOOK_SECONDS = 0.5
        # A child that has run for so many seconds no longer delays the next.
        YOUNG_SECONDS = 2
        # The shortest pause. One that only rounding has left over would end at once, again and again.
        LEAST_SECONDS = 0.001
        # Seconds without a free place after which that is logged, each time.
        FULL_SECONDS = 60
        # How many jobs may share a child in the first, second and third try; then they are isolated. A job that ends its worker
        # must be isolated in the end as well.
        SHARE = [200, 25, 3].freeze

        # The process in which a job ran isolated has ended, so often that the job will not run again.
        class DiedError < Error; end
        # Workers have ended while they ran a job isolated, so often that the job will not run again.
        class WorkerDiedError < Error; end

        # A group that runs, and since when.
        Running = Struct.new(:group, :since)

        # @param intake [Intake] says whether it may fetch, and is told of the end of waits
        # @param runs [Runs] starts the jobs that were fetched
        # @param scope [Scope] which owns the strands that this starts
        # @param runner [Jobs::Quarantine]
        # @param performer [Performer] which runs a job in a child
        # @param retrying [Retrying] which gives up jobs
        # @param deaths [Deaths] is told of jobs whose child has died
        def initialize(intake, runs, machine, scope, storage, config, log, backoff, orphans, runner,
                       performer:, retrying:, deaths:)
          @intake = intake
          @runs = runs
          @machine = machine
          @scope = scope
          @storage = storage
          @config = config
          @log = log
          @backoff = backoff
          @orphans = orphans
          @runner = runner
          @performer = performer
          @retrying = retrying
          @deaths = deaths
          @waiting = [] # groups, the next first
          @running = []
          @changed = Condition.new
          @closed = @fetching = false
        end

        # Returns when it is closed. May switch strands.
        def work
          until @closed
            start(@waiting.shift) while place? && @waiting.any?
            begin_to_fetch if place? && @waiting.empty? && !@fetching && @intake.open?
            tell_of_no_place
            pause
          end
        end

        # Looks again whether it may fetch.
        def look = @changed.signal

        # Fetches no more jobs, and gives back those that have not begun.
        def close
          @closed = true
          give_back(@waiting.shift) until @waiting.empty?
          @changed.broadcast
        end

        # Ends all children at once, for their jobs are given back. May be called from any thread.
        def abandon = @running.each { |one| one.group.each { |suspect| suspect.group&.break_up } }

        # @return [Boolean] whether a wait or a fetch may still bring a job
        def waiting? = @fetching

        private

        # --- from the queue ---

        def begin_to_fetch
          @fetching = true
          @scope.spin { fetch }
        end

        def fetch
          return @machine.sleep(LOOK_SECONDS) if paused?

          suspects = @backoff.attempt(:wait) { @orphans.watch { fetch_first } } || []
          suspects += @backoff.attempt(:fetch) { @orphans.watch { fetch_more } } || [] if suspects.any?
          sort(suspects)
        ensure
          @fetching = false
          @changed.signal
          @intake.ended if @closed
        end

        def paused? = @backoff.attempt(:paused) { @storage.paused.include?(Storage::QUARANTINE) }

        def fetch_first
          return [] if @closed # {Worker#end_waits} has seen no wait here

          fetched = @storage.wait(@intake.node, Storage::QUARANTINE, WAIT_SECONDS) or return []
          return [*@runs.start_quarantined(fetched)] unless @closed || paused?

          @runs.give_back(fetched)
          []
        end

        def fetch_more
          count = [SHARE.first, @config.concurrency].min - 1
          @storage.fetch(@intake.node, [Storage::QUARANTINE], count).filter_map { |fetched| @runs.start_quarantined(fetched) }
        end

        # Puts suspects into groups, by the counts of each.
        def sort(suspects)
          known = begin_runs(suspects)
          groups = known.group_by { |suspect| share_of(suspect.trials) }.sort.reverse
                        .flat_map { |share, some| some.each_slice(share).to_a }
          @closed ? groups.each { |group| give_back(group) } : @waiting.concat(groups)
        end

        def share_of(trials)
          share = trials.deaths.positive? ? 1 : SHARE.fetch(trials.tries - 1, 1)
          [share, @config.concurrency].min
        end

        # @return [Array<Suspect>] those that are still in flight here
        def begin_runs(suspects, isolated: false)
          return [] if suspects.empty?

          runs = suspects.map { |suspect| Storage::Begun.new(suspect.fetched, suspect.run.number) }
          all = @backoff.persist(:begin_quarantined) { @storage.begin_quarantined(@intake.node, runs, isolated: isolated) }
          suspects.zip(all) { |suspect, trials| suspect.trials = trials }
          known, lost = suspects.partition(&:trials)
          give_back(lost) # which fails, and so is logged as taken away
          known
        end

        def give_back(suspects)
          suspects.each { |one| one.answer(@performer.ended_early(one.fetched, one.run.job, :return)) }
        end

        # --- places ---

        def place?
          young = @running.count { |one| age(one) < YOUNG_SECONDS }
          young < @runner.places_for_young && @running.size < @runner.places(@running.size)
        end

        def age(running) = @machine.now - running.since

        # Waits until something changes, or a child is no longer young.
        def pause
          left = @running.map { |one| YOUNG_SECONDS - age(one) }.select(&:positive?)
          @changed.wait(timeout: [*left, FULL_SECONDS].min.clamp(LEAST_SECONDS..))
        rescue TimeoutError
          nil
        end

        # A child may run for as long as it likes; but when all places are taken, those hold up all jobs that come later.
        def tell_of_no_place
          last = @running.last
          return if last.nil? || [last.since, *@told_at].max > @machine.now - FULL_SECONDS || place?

          @told_at = @machine.now
          jobs = @running.sum { |one| one.group.count { |suspect| !suspect.gone? } }
          @log.event(:error, "the quarantine has no place left: the jobs in it do not end; cancel some", jobs: jobs)
        end

        # --- in a child ---

        def start(group)
          running = Running.new(group, @machine.now)
          @running << running
          @scope.spin do
            run(group.reject(&:gone?))
          ensure
            @running.delete(running)
            @changed.signal
          end
        end

        def run(suspects)
          isolated = suspects.one?
          suspects = suspects.select { |suspect| begin_isolated(suspect) } if isolated
          return if suspects.empty?

          ending = run_child(suspects)
          follow(suspects.reject(&:gone?), ending, isolated)
        rescue SystemCallError => error # no process can be made now
          @backoff.pause(:fork, error)
          wait_again([suspects])
        rescue StandardError => error # a fault of this library, by which no job must be lost
          suspects.one? ? suspects.first.answer(@retrying.last_resort(suspects.first.fetched, error)) : give_back(suspects)
        end

        # Counts an isolated run before it begins, for it may end the worker.
        def begin_isolated(suspect)
          begin_runs([suspect], isolated: true)
          return if suspect.gone?

          lost = suspect.trials.isolated - suspect.trials.deaths - 1
          return true if lost < @config.worker_deaths

          error = WorkerDiedError.new("its worker has died while it ran isolated, #{lost} times")
          suspect.answer(@retrying.give_up(suspect.fetched, error))
          nil
        end

        def run_child(suspects)
          group = @runner.group(suspects.dup, title: title(suspects)) { |suspect| perform(suspect.run) }
          suspects.each { |suspect| suspect.group = group }
          group.run do |suspect, outcome|
            outcome == Jobs::Quarantine::Group::HELD ? isolate(suspects.delete(suspect)) : suspect.answer(outcome)
          end
        ensure
          suspects.each do |suspect|
            suspect.group = nil
            suspect.answer(nil) if suspect.given_up?
          end
        end

        # Takes a job that was cut short out of its group. Its child goes on with the others.
        def isolate(suspect)
          suspect.group = nil
          return suspect.answer(nil) if suspect.given_up?

          @running.each { |one| one.group.delete(suspect) }
          @log.event(:warn, "a job holds up the others of its child; it runs anew, isolated", jid: suspect.run.jid)
          come_last(suspect)
          @changed.signal
        end

        # Puts it behind the others, so that it delays none of them again.
        def come_last(suspect)
          @closed ? give_back([suspect]) : @waiting.push([suspect])
        end

        def title(suspects)
          return "#{suspects.size} jobs" unless suspects.one?

          suspects.first.run.then { |run| "#{run.class_name} #{run.jid}" }
        end

        # Runs in the child.
        def perform(run)
          machine = Machine.current
          began = machine.now
          @performer.backoff = Backoff.new(machine, @log)
          outcome = @performer.call(run.fetched, run.job, run)
          outcome.seconds = machine.now - began
          outcome.error &&= Jobs::Quarantine.portable(outcome.error)
          outcome
        end

        # Decides what becomes of the jobs that have not ended.
        #
        # @param isolated [Boolean] from the child's start on
        def follow(left, ending, isolated)
          if left.empty? then nil
          elsif told_to_end?(ending) || (@closed && !isolated) then give_back(left)
          elsif ending.broken_up then separate(left, ending.held)
          else have_died(left, ending.fate, isolated)
          end
        end

        # The hook may take its time, so a strand of its own calls it.
        def have_died(suspects, fate, isolated)
          if isolated
            died(suspects.first, fate)
          else
            @log.event(:warn, "a child in quarantine has ended (#{fate}): its jobs run anew in halves", jobs: suspects.size)
            wait_again(halves(suspects))
          end
          @scope.spin { tell_deaths(suspects, fate) }
        end

        # Puts groups ahead of the others; or gives them back, when no group begins any more.
        def wait_again(groups)
          @closed ? groups.each { |group| give_back(group) } : @waiting.unshift(*groups)
        end

        # A signal to all processes is no fault of a job's. It may still be on its way to this process.
        def told_to_end?(ending)
          return false if ending.broken_up || !ending.told

          @machine.sleep(TOLD_SECONDS) unless @closed
          @closed
        end

        # Separates a job that could not be cut short, so that its child was ended, from the others.
        def separate(left, held)
          others = left.reject { |suspect| suspect.equal?(held) }
          @log.event(:warn, "a job holds up the others of its child, which run anew", jobs: others.size, jid: held&.run&.jid)
          wait_again(halves(others))
          come_last(held) unless others.size == left.size
        end

        def tell_deaths(suspects, fate)
          suspects.each { |one| @deaths.tell(one.run.job, :died, fate:, queue: one.run.queue, node: @intake.node) }
        end

        def halves(suspects) = suspects.each_slice([(suspects.size + 1) / 2, 1].max).to_a

        def died(suspect, fate)
          deaths = suspect.trials.deaths + 1
          return suspect.answer(once_more(suspect, fate)) if deaths < @config.deaths

          error = DiedError.new("the process in which it ran isolated has ended (#{fate}), #{deaths} times")
          suspect.answer(@retrying.give_up(suspect.fetched, error))
        end

        def once_more(suspect, fate)
          queue, entry = *suspect.fetched
          change = Storage::Failure.new(queue:, entry:, jid: suspect.run.jid, to: :queue, new_entry: entry, died: true)
          Outcome.new(change, :died, nil, "(#{fate}); it runs isolated again")
        end
      end
      private_constant :Isolation
    end
  end
end
