# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      class Relocation
        # The jobs that are at the target when a relocation begins: an earlier one that was killed has left some at the source as
        # well.
        #
        # An entry changes on its way: when it is due, when its job fails, and when it is taken over. So a job is known by what
        # stays. Another job may have the same jid, and is none of these.
        #
        # @api private
        class Arrivals
          # @param target [Storage] which is looked through as a whole
          def initialize(target)
            @known = {}
            Selection.new(target, nil, {}).each_page { |found| found.each { |one| note(one.entry) } }
          end

          # @param entry [String]
          # @return [Boolean] whether it was there. It counts as the source's only once
          def include?(entry)
            key, value = traits(entry)
            values = @known[key] or return false
            !values.delete(value).nil?
          end

          private

          def note(entry)
            key, value = traits(entry)
            (@known[key] ||= []) << value
          end

          def traits(entry)
            job = Wire.read(entry) or return [entry.b, nil.hash]
            [job["jid"], job.values_at("class", "args", "created_at").hash]
          end
        end
        private_constant :Arrivals
      end
    end
  end
end
