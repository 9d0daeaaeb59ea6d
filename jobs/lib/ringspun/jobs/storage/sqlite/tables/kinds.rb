# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # Which number says which set.
          #
          # @api private
          module Kinds
            KINDS = { schedule: 0, retry: 1, dead: 2 }.freeze

            private

            def kind_of(set) = KINDS[set] || raise(ArgumentError, "#{set.inspect} is none of #{SETS.map(&:inspect).join(", ")}")
          end
          private_constant :Kinds
        end
      end
    end
  end
end
