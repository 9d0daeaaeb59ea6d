# frozen_string_literal: true

module Ringspun
  module Jobs
    module Cron
      # Which ticks are pushed when several are due at once, for no worker has run meanwhile, or the entry was paused.
      #
      # @api private
      module CatchUp
        # :skip: none that is missed; :once: the last of all; :all: each, up to {ALL_MAX}.
        POLICIES = %i[skip once all].freeze

        # The number of ticks at most, the last ones: a day of an entry that comes each quarter of an hour, and some more. After a
        # longer pause thousands could come at once, and few programs have a use for these.
        ALL_MAX = 100

        # The seconds after which a tick counts as missed. A worker that looks late, or could not reach the storage for a moment,
        # has missed nothing.
        LATE_SECONDS = 60

        # The ticks to be pushed, the earliest first, and whether others are not, which were missed.
        Due = Struct.new(:ticks, :missed)

        # The words for the ticks that were missed.
        MADE_UP = { skip: "none is", once: "the last one is", all: "the last #{ALL_MAX} are" }.freeze

        module_function

        # @param policy [Symbol]
        # @param times [Times]
        # @param last [Numeric] the last tick that was pushed or passed
        # @param now [Numeric] by the same clock
        # @return [Due]
        def due(policy, times, last, now)
          ticks = ticks_between(times, last, now, policy == :all ? ALL_MAX : 1)
          return Due.new([], false) if ticks.empty?
          return Due.new([], true) if policy == :skip && ticks.last < now - LATE_SECONDS

          before = times.until(ticks.first - 1)
          Due.new(ticks, before > last && before < now - LATE_SECONDS)
        end

        def ticks_between(times, last, now, most)
          ticks = []
          tick = times.until(now)
          while tick > last && ticks.size < most
            ticks.unshift(tick)
            tick = times.until(tick - 1)
          end
          ticks
        end
        private_class_method :ticks_between
      end
    end
  end
end
