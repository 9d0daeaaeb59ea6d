# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # The storage is away, or refuses: tells of it once, not a thousand times, and says how long to wait until the next try.
      #
      # @api private
      class Outage
        FIRST_PAUSE = 0.05
        LONGEST_PAUSE = 1.0

        # What goes by when the storage can be reached again; everything else is an answer of its own.
        AWAY = [UnavailableError, UnknownOutcomeError].freeze

        def initialize(machine, log, random: Random)
          @machine = machine
          @log = log
          @random = random
          @away = {}
          @refused = {}
        end

        # Calls the block until it raises nothing. May switch strands.
        #
        # @param what [Symbol] is tried, for the log
        # @param till [#call] true: it may give up, and answers nil
        # @yieldparam error [Exception, nil] the last time's
        # @return [Object] the block's value
        def persist(what, till: nil)
          pause = FIRST_PAUSE
          error = nil
          until till&.call
            begin
              value = yield error
              over(what)
              return value
            rescue StandardError => error
              begins(what, error)
              @machine.sleep(pause * (0.5 + (@random.rand / 2)))
              pause = [pause * 2, LONGEST_PAUSE].min
            end
          end
        end

        # Calls the block once. May switch strands.
        #
        # @return [Object, nil] the block's value; nil when it has raised, after a pause
        def attempt(what)
          value = yield
          over(what)
          value
        rescue StandardError => error
          pause(what, error)
          nil
        end

        # After an error. May switch strands.
        def pause(what, error)
          begins(what, error)
          @machine.sleep(LONGEST_PAUSE * (0.5 + (@random.rand / 2)))
        end

        private

        def begins(what, error)
          if AWAY.any? { |kind| error.is_a?(kind) }
            @log.event(:error, "the storage is away: #{error.message}") if @away.empty?
            @away[what] = true
          elsif @refused[what] != error.class
            @refused[what] = error.class
            @log.event(:error, "#{what} fails, and is tried again: #{error.message}",
                       error: error.class.name, at: error.backtrace&.first)
          end
        end

        # It is back when all can do what they could not.
        def over(what)
          return if @away.empty? && @refused.empty?

          @log.event(:info, "the storage is back") if @away.delete(what) && @away.empty?
          @log.event(:info, "#{what} goes on") if @refused.delete(what)
        end
      end
      private_constant :Outage
    end
  end
end
