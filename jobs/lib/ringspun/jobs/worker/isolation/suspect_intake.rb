# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      class Isolation
        # How suspects come to this worker: fetches jobs from the quarantine, counts their runs, and says which of them may share
        # a child.
        #
        # @api private
        class SuspectIntake
          # Seconds of one wait for suspects.
          WAIT_SECONDS = 2
          # The same, while a job waits that the limit of its queue does not allow yet.
          LATER_SECONDS = 0.5
          # How many jobs may share a child in the first, second and third try; then they are isolated. A job that ends its worker
          # must be isolated in the end as well.
          SHARE = [200, 25, 3].freeze

          # @param intake [Intake]
          # @param processor [Processor] makes runs of jobs
          # @param concurrency [Integer] how many jobs may share a child at most
          def initialize(intake, processor, concurrency)
            @intake = intake
            @processor = processor
            @concurrency = concurrency
            @later = [] # suspects that may not begin yet
          end

          # (see Intake#open?)
          def open? = @intake.open?

          # (see Intake#closed?)
          def closed? = @intake.closed?

          # Waits for some seconds until there are suspects. May switch strands.
          #
          # @yieldparam suspects [Array<Suspect>] that may share a child
          def fetch(&share)
            new = wait || []
            more = new.any? ? fetch_more(new.size) : []
            suspects = @later.shift(@later.size).reject(&:gone?) + new + more
            sort(begin_runs(suspects)).each(&share) if suspects.any?
            close if closed?
          end

          # Called when the intake is closed: gives back what waits for a place of its queue.
          def close = @later.shift(@later.size).each(&:give_back)

          # Counts runs that begin, and answers suspects whose job was taken away. Those that the limit of their queue does not
          # allow yet are kept for later. May switch strands.
          #
          # @param suspects [Array<Suspect>]
          # @param isolated [Boolean]
          # @return [Array<Suspect>] those that are still in flight here
          def begin_runs(suspects, isolated: false)
            runs = suspects.map { |suspect| Storage::Begun.new(suspect.fetched, suspect.run.number) }
            all = @intake.begin_quarantined(runs, isolated: isolated)
            later, others = suspects.zip(all).partition { |_, trials| trials == :later }
            @later.concat(later.map(&:first))
            others.each { |suspect, trials| suspect.trials = trials }
            known, lost = others.map(&:first).partition(&:trials)
            lost.each(&:give_back) # which fails, and so is logged as taken away
            known
          end

          private

          # @return [Array<Suspect>, nil]
          def wait
            return if closed?

            seconds = @later.any? ? LATER_SECONDS : WAIT_SECONDS
            @intake.wait_any([Storage::QUARANTINE], seconds, max: share(0)) do |fetched|
              next start(fetched) unless closed?

              fetched.each { |one| @processor.give_back(one) }
              nil
            end
          end

          # A wait has most likely brought the first of many that were recovered together.
          def fetch_more(count) = @intake.fetch([Storage::QUARANTINE], share(0) - count) { |fetched| start(fetched) } || []

          def start(fetched) = fetched.filter_map { |one| @processor.start_quarantined(one) }

          # Those of which the most may share a child come first.
          def sort(suspects)
            suspects.group_by { |suspect| share_of(suspect.trials) }.sort.reverse
                    .flat_map { |share, some| some.each_slice(share).to_a }
          end

          def share_of(trials) = trials.deaths.positive? ? 1 : share(trials.tries - 1)

          def share(tries_before) = [SHARE.fetch(tries_before, 1), @concurrency].min
        end
      end
    end
  end
end
