# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # What one request looks for: it ends after a second, or with a page of jobs, and says from where on to go on.
      #
      # @api private
      class Searched
        SECONDS = 1.0
        # The number of jobs found at which it ends.
        ENOUGH = 50
        # The number of jobs in its first step; later steps look at more and more.
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
        # @param most [Integer, nil] how many jobs it looks at before it ends
        # @param clock [#call] answers seconds
        def initialize(storage, conditions, cursor: nil, seconds: SECONDS, most: nil,
                       clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
          @storage = storage
          @conditions = conditions
          @cursor = cursor
          @seconds = seconds
          @most = most
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
            break if @cursor.nil? || enough? || @took + (@took / [@looked / step, 1].max) >= @seconds

            step = [step * 2, STEP_MAX].min
          end
          self
        end

        private

        def enough? = @found.size >= ENOUGH || (@most && @looked >= @most)
      end
      private_constant :Searched
    end
  end
end
