# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      class Isolation
        # Runs suspects in a child, which a {Jobs::Quarantine} makes for them.
        #
        # @api private
        class Children
          # @param quarantine [Jobs::Quarantine]
          # @param performer [Performer] which runs a job in the child
          # @param backoff [Backoff] makes a pause when no process can be made
          # @param control [Control] whose copy in the child is told what this one is
          # @param log [Log]
          def initialize(quarantine, performer, backoff, control, log)
            @quarantine = quarantine
            @performer = performer
            @backoff = backoff
            @control = control
            @log = log
          end

          # Returns when the child has ended; suspects whose job has ended have got their answer. May switch strands.
          #
          # @param suspects [Array<Suspect>]
          # @param settled [#call] called when each job has had a turn in the child
          # @yieldparam suspect [Suspect] whose job was cut short, for it held up the others; those go on
          # @return [Jobs::Quarantine::Group::Ending, nil] nil, after a pause, when there was no child
          def run(suspects, settled:, &cut_short)
            run_in_child(suspects.dup, settled, &cut_short)
          rescue SystemCallError => error
            @backoff.pause(:fork, error)
            nil
          end

          private

          def run_in_child(suspects, settled)
            group = @quarantine.group(suspects.dup, title: title(suspects), quiet: @control.method(:quiet), settled:) do |suspect|
              perform(suspect.run)
            end
            suspects.each { |suspect| suspect.group = group }
            group.run do |suspect, outcome|
              next suspect.answer(outcome) unless outcome == Jobs::Quarantine::Group::HELD

              leave(suspects.delete(suspect))
              yield suspect unless suspect.given_up?
            end
          ensure
            suspects.each { |suspect| leave(suspect) }
          end

          def leave(suspect)
            suspect.group = nil
            suspect.answer(nil) if suspect.given_up?
          end

          def title(suspects)
            return Words.count(suspects.size, "job") unless suspects.one?

            suspects.first.run.then { |run| "#{run.class_name} #{run.jid}" }
          end

          # Runs in the child.
          def perform(run)
            machine = Machine.current
            began = machine.now
            @performer.backoff = Backoff.new(machine, @log)
            outcome = @performer.call(run)
            outcome.seconds = machine.now - began
            outcome.acknowledged = run.acknowledged?
            outcome.noted # by the error itself
            outcome.error &&= Jobs::Quarantine.portable(outcome.error)
            outcome
          end
        end
      end
    end
  end
end
