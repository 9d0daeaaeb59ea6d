# frozen_string_literal: true

require_relative "suspect"

module Ringspun
  module Jobs
    class Worker
      # Runs jobs from the quarantine, each of which may end the process that it runs in. They share children. When a child dies
      # its jobs run anew in two halves, and so on, until one is isolated: if its child dies as well, that job has ended it. The
      # storage counts how often, and how often a worker has died while the job ran isolated.
      #
      # @api private
      class Isolation
        # Seconds after its child has got a signal in which a worker may get the same one.
        SIGNAL_SECONDS = 1

        # @param intake [SuspectIntake] from which suspects come
        # @param places [Places] for children
        # @param children [Children]
        # @param verdict [Verdict]
        # @param scope [Scope] which owns the strands that this starts
        # @param log [Log]
        def initialize(intake, places, children, verdict, scope, log)
          @intake = intake
          @places = places
          @children = children
          @verdict = verdict
          @scope = scope
          @log = log
          @waiting = [] # for a child, the next first: each an Array of suspects that share one
          @changed = Condition.new
          @fetching = false
        end

        # Returns when the intake is closed. May switch strands.
        def work
          until @intake.closed?
            @places.log_if_full # first, for it may switch strands, and from here to the pause nothing may
            start(@waiting.shift) while @waiting.any? && @places.free?
            begin_to_fetch if @waiting.empty? && !@fetching && @intake.open? && @places.free?
            pause
          end
        end

        # Looks again whether it may fetch.
        def look = @changed.signal

        # Called when the intake is closed: gives back the jobs that wait for a child, and tells those that are in one.
        def close
          @intake.close
          @places.quiet
          give_back(@waiting.shift) until @waiting.empty?
          @changed.broadcast
        end

        # Ends all children at once, for their jobs are given back. May be called from any thread.
        def abandon = @places.abandon

        private

        def begin_to_fetch
          @fetching = true
          @scope.spin do
            @intake.fetch { |suspects| take_in(suspects) }
          ensure
            @fetching = false
            @changed.signal
          end
        end

        def take_in(suspects)
          left = suspects.reject { |suspect| @verdict.at_once(suspect) }
          wait_last(left) if left.any?
        end

        def wait_last(suspects) = @intake.closed? ? give_back(suspects) : @waiting.push(suspects)

        def wait_first(*all) = @intake.closed? ? all.each { |suspects| give_back(suspects) } : @waiting.unshift(*all)

        def wait_first_in_halves(suspects) = wait_first(*suspects.each_slice([(suspects.size + 1) / 2, 1].max))

        def give_back(suspects) = suspects.each(&:give_back)

        # Until something changes, or the places have to be looked at again.
        def pause
          @changed.wait(timeout: @places.look_in)
        rescue TimeoutError
          nil
        end

        def start(suspects)
          place = @places.take(suspects)
          @scope.spin do
            run(suspects.reject(&:gone?))
          ensure
            @places.give_back(place)
            @changed.signal
          end
        end

        def run(suspects)
          isolated = suspects.one?
          suspects = suspects.select { |suspect| begin_isolated(suspect) } if isolated
          return if suspects.empty?

          ending = @children.run(suspects, settled: method(:look)) { |suspect| isolate(suspects.delete(suspect)) }
          left = suspects.reject(&:gone?)
          ending ? follow(left, ending, isolated) : wait_first(left)
        rescue StandardError => error # a fault of this library, by which no job must be lost
          suspects.one? ? @verdict.fault(suspects.first, error) : give_back(suspects)
        end

        # Counts an isolated run before it begins, for it may end the worker.
        def begin_isolated(suspect)
          return false if @intake.begin_runs([suspect], isolated: true).empty?

          @verdict.before(suspect)
          !suspect.gone?
        end

        # One that was cut short runs anew. Behind the others, so that it delays none of them again.
        def isolate(suspect)
          @places.leave(suspect)
          @log.event(:warn, "a job holds up the others of its child; it runs anew, isolated", jid: suspect.run.jid)
          wait_last([suspect])
          @changed.signal
        end

        # Decides what becomes of the jobs that have not ended with their child.
        #
        # @param isolated [Boolean] from the child's start on
        def follow(left, ending, isolated)
          if left.empty? then nil
          elsif asked_to_end?(ending) || (@intake.closed? && !isolated) then give_back(left)
          elsif ending.broken_up then separate(left, ending.held)
          else died(left, ending.fate, isolated)
          end
        end

        # A signal to all processes is no fault of a job's. It may still be on its way to this process.
        def asked_to_end?(ending)
          return false if ending.broken_up || !ending.told

          Machine.current.sleep(SIGNAL_SECONDS) unless @intake.closed?
          @intake.closed?
        end

        # Separates a job that could not be cut short, so that its child was ended, from the others.
        def separate(left, held)
          others = left.reject { |suspect| suspect.equal?(held) }
          @log.event(:warn, "a job holds up the others of its child, which run anew", jobs: others.size, jid: held&.run&.jid)
          wait_first_in_halves(others)
          wait_last([held]) unless others.size == left.size
        end

        # The hook may take its time, so a strand of its own calls it.
        def died(suspects, fate, isolated)
          if isolated
            @verdict.died(suspects.first, fate)
          else
            @log.event(:warn, "a child in quarantine has ended (#{fate}): its jobs run anew in halves", jobs: suspects.size)
            wait_first_in_halves(suspects)
          end
          @scope.spin { @verdict.report(suspects, fate) }
        end
      end
      private_constant :Isolation
    end
  end
end

require_relative "isolation/children"
require_relative "isolation/places"
require_relative "isolation/suspect_intake"
require_relative "isolation/verdict"
