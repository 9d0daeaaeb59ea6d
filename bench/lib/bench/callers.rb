# frozen_string_literal: true

module Bench
  # Callers, each with one call after the other. `start` runs a block beside the others, `finish` awaits its value.
  class Callers
    def initialize(start, finish)
      @start = start
      @finish = finish.to_proc
    end

    # Returns how many calls all of so many callers have made in so many seconds.
    def run(count, seconds, call)
      over = false
      clock = @start.call do
        sleep(seconds)
        over = true
      end
      started = Array.new(count) do
        @start.call do
          calls = 0
          until over
            call.call
            calls += 1
          end
          calls
        end
      end
      @finish.call(clock)
      started.sum(&@finish)
    end
  end
end
