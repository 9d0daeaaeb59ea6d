# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # Which jobs of a place a page shows: those of a class, and, in a set, those of a queue. They are looked for, for no storage
      # keeps them apart; so a page looks at a limited number of jobs, and the next one goes on.
      #
      # @api private
      class Filter
        # The most jobs that a page looks at.
        LOOKED_MAX = 20_000

        # @param request [Request]
        # @param place [Place]
        def initialize(request, place)
          @place = place
          @cursor = request[:cursor]
          @query = { class: request[:class], in: (request[:in] unless place.queue?) }.compact
        end

        # @return [Hash{Symbol => String}] for a link
        attr_reader :query

        # @return [Boolean]
        def any? = @query.any?

        # @return [Hash{Symbol => String}] for a link to the same page
        def here = { **@query, cursor: @cursor }.compact

        # @param storage [Storage]
        # @return [Searched]
        # @raise [ArgumentError] the cursor in the address is none
        def search(storage)
          conditions = { places: [@place.id], job_class: @query[:class], queue: @query[:in] }.compact
          Searched.new(storage, conditions, cursor: @cursor, most: LOOKED_MAX).go
        end
      end
      private_constant :Filter
    end
  end
end
