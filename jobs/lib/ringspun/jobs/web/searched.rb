# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # What one request looks for: it ends after a second, or with a page of jobs, and says from where on to go on.
      #
      # @api private
      class Searched
        SECONDS = 1.0
        # It ends when it has found so many.
        ENOUGH = 50
        # It looks at so many jobs first, and then at more and more in a step.
        FIRST_STEP = 100
        STEP_MAX = 1000

        # @return [Array<Storage::Found>]
        attr_reader :found

        # @return [Integer] how many jobs it has looked at
        attr_reader :looked

        # @return [String, nil] nil: it has looked at all
        attr_reader :cursor

        # @return [Float] seconds
        attr_reader :took

        # @param conditions [Hash] as {Storage#search} takes them
        # @param cursor [String, nil]
        # @param clock [#call] answers seconds
        def initialize(storage, conditions, cursor: nil, seconds: SECONDS,
                       clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
          @storage = storage
          @conditions = conditions
          @cursor = cursor
          @seconds = seconds
          @clock = clock
          @found = []
          @looked = 0
        end

        # @return [Searched] self
        # @raise [ArgumentError] the cursor is none
        def go
          began = @clock.call
          step = FIRST_STEP
          loop do
            page = @storage.search(**@conditions, count: step, cursor: @cursor)
            @found.concat(page.found)
            @looked += page.looked
            @cursor = page.cursor
            @took = @clock.call - began
            break if @cursor.nil? || @found.size >= ENOUGH || @took + (@took / [@looked / step, 1].max) >= @seconds

            step = [step * 2, STEP_MAX].min
          end
          self
        end
      end
      private_constant :Searched
    end
  end
end
