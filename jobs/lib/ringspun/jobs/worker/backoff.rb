# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Calls the storage again after an error, with growing pauses. Logs the error once a minute instead of each time.
      #
      # @api private
      class Backoff
        FIRST_PAUSE = 0.05
        LONGEST_PAUSE = 1.0
        # Seconds after which an error that lasts is logged again.
        AGAIN_SECONDS = 60

        # The errors that end when the storage can be reached again. All others are its answer to this call.
        AWAY = [UnavailableError, UnknownOutcomeError].freeze

        def initialize(machine, log, random: Random)
          @machine = machine
          @log = log
          @random = random
          @away = {}
          @complaints = {} # those since the storage was last reached
          @refused = {}
          @logged_at = {} # complaint => when it was last logged
        end

        # Calls the block until it raises nothing. May switch strands.
        #
        # @param what [Symbol] the name of the call, for the log
        # @param till [#call] returns true when it may give up; it returns nil then
        # @yieldparam error [Exception, nil] that of the try before
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
        # @return [Object, nil] the block's value; nil, after a pause, when it has raised
        def attempt(what)
          value = yield
          over(what)
          value
        rescue StandardError => error
          pause(what, error)
          nil
        end

        # Logs an error, and sleeps. May switch strands.
        def pause(what, error)
          begins(what, error)
          @machine.sleep(LONGEST_PAUSE * (0.5 + (@random.rand / 2)))
        end

        private

        def begins(what, error)
          if AWAY.any? { |kind| error.is_a?(kind) }
            complaint = error.is_a?(AccessError) ? "no access to the storage" : "the storage is away"
            @log.event(:error, "#{complaint}: #{error.message}") if log_now?(complaint, !@complaints[complaint])
            @away[what] = @complaints[complaint] = true
          elsif log_now?(what, @refused[what] != error.class)
            @refused[what] = error.class
            @log.event(:error, "#{what} fails, and is tried again: #{error.message}",
                       error: error.class.name, at: error.backtrace&.first)
          end
        end

        def log_now?(what, new)
          now = @machine.now
          return false unless new || now - @logged_at.fetch(what) >= AGAIN_SECONDS

          @logged_at[what] = now
        end

        def back
          @complaints.clear
          @log.event(:info, "the storage is back")
        end

        # The storage is back when every call that failed works again.
        def over(what)
          return if @away.empty? && @refused.empty?

          back if @away.delete(what) && @away.empty?
          @log.event(:info, "#{what} goes on") if @refused.delete(what)
        end
      end
      private_constant :Backoff
    end
  end
end
