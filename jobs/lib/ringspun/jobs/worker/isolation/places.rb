# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      class Isolation
        # The places for children, and the suspects in each. How many there are depends on the computer's cores and memory.
        #
        # @api private
        class Places
          # Seconds after which a child no longer delays the next. One whose jobs all wait delays none.
          YOUNG_SECONDS = 2
          # Seconds after which to look for a free place again, for there may be more memory.
          LOOK_SECONDS = 1
          # The shortest of these pauses. One that only rounding has left over would end at once, again and again.
          LEAST_SECONDS = 0.001
          # Seconds without a free place after which that is logged, each time.
          FULL_SECONDS = 60

          # Suspects in a child, and since when.
          Place = Struct.new(:suspects, :since)
          private_constant :Place

          # @param quarantine [Jobs::Quarantine] says how many children there may be
          # @param log [Log]
          def initialize(quarantine, machine, log)
            @quarantine = quarantine
            @machine = machine
            @log = log
            @taken = []
          end

          # @return [Boolean] whether another child may start
          def free?
            young = @taken.count { |place| young?(place) }
            young < @quarantine.places_for_young && @taken.size < @quarantine.places(@taken.size)
          end

          # @return [Float, nil] seconds until there may be a free place without a {#give_back}; nil: there is one
          def look_in
            return if free?

            ages = @taken.map { |place| YOUNG_SECONDS - age(place) }.select(&:positive?)
            [*ages, LOOK_SECONDS].min.clamp(LEAST_SECONDS..)
          end

          # @param suspects [Array<Suspect>]
          # @return [Object] for {#give_back}
          def take(suspects)
            Place.new(suspects, @machine.now).tap { |place| @taken << place }
          end

          def give_back(place) = @taken.delete(place)

          # A suspect no longer shares a child.
          def leave(suspect) = @taken.each { |place| place.suspects.delete(suspect) }

          # A child may run for as long as it likes; but when all places are taken, those hold up all jobs that come later.
          def log_if_full
            last = @taken.last
            return if last.nil? || [last.since, *@logged_at].max > @machine.now - FULL_SECONDS || free?

            @logged_at = @machine.now
            jobs = @taken.sum { |place| place.suspects.count { |suspect| !suspect.gone? } }
            @log.event(:error, "the quarantine has no place left: the jobs in it do not end; cancel some", jobs: jobs)
          end

          # Tells all children that the worker begins no more jobs.
          def quiet = @taken.flat_map(&:suspects).filter_map(&:group).uniq.each(&:quiet)

          # Ends all children at once. May be called from any thread.
          def abandon = @taken.each { |place| place.suspects.each { |suspect| suspect.group&.break_up } }

          private

          def young?(place) = age(place) < YOUNG_SECONDS && place.suspects.none? { |suspect| suspect.group&.settled? }

          def age(place) = @machine.now - place.since
        end
      end
    end
  end
end
