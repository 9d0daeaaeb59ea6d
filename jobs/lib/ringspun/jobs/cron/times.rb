# frozen_string_literal: true

module Ringspun
  module Jobs
    module Cron
      # When the ticks of a schedule are. The gem fugit reads the text and knows the days; it counts here by the clock on the
      # wall, without a zone. When the clock on the wall shows a time, this class says:
      #
      # - A schedule that names hours has a tick at each time that it names, once a day. Where the clock is put forward past that
      #   time, the tick is when it is put forward; where it is put back, so that the time comes twice, the first of them.
      # - A schedule of every hour goes on as hours do: a time that does not exist has no tick, and one that comes twice has two.
      #
      # So does cron on Debian: https://manpages.debian.org/bookworm/cron/cron.8.en.html (daylight saving time)
      #
      # @api private
      class Times
        # How many of a unit are evenly in the one above it. Others cron cannot say: "every 45 minutes" would be at 0 and 45. By
        # how the unit's name begins.
        UNITS = { "mon" => ["month", 12], "s" => ["second", 60], "m" => ["minute", 60], "h" => ["hour", 24],
                  "d" => ["day", 1] }.freeze
        EVERY = /\bevery\s+(\d+)\s*(mon|[smhd])/i
        # A clock on the wall differs from UTC by less, and from one change of a zone to the next it is more.
        TWO_DAYS = 2 * 86_400
        private_constant :UNITS, :EVERY, :TWO_DAYS

        # @return [String] the text as crontab has it, without a zone
        attr_reader :cron

        # @return [String] the name of the zone
        attr_reader :zone

        # @param text [String] in words or as crontab has it, with a zone at its end or without
        # @param zone [String, nil] its zone, if the text has none
        # @param default [String] the zone if neither says one
        # @raise [ConfigError] which says what is wrong
        def initialize(text, zone = nil, default: "UTC")
          require "fugit"
          parsed = parse(text)
          if parsed.zone && zone
            raise ConfigError, "the schedule #{text.inspect} has a zone, and so has zone: #{zone.inspect}; leave one of them out"
          end

          @zone = parsed.zone || zone || default
          @timezone = timezone(@zone)
          @cron = parsed.original.strip.delete_suffix(parsed.zone.to_s).strip
          @wall = Fugit::Cron.do_parse(@cron)
          check(text)
        rescue ConfigError
          raise
        rescue TZInfo::DataSourceNotFound
          raise ConfigError, "this host has no data of time zones: install the package tzdata, or the gem tzinfo-data"
        rescue StandardError # of fugit or tzinfo, for a text that they do not foresee, such as one with the zone UTC+3
          refuse(text)
        end

        # @param time [Numeric] seconds since the epoch
        # @return [Integer] the first tick after it, seconds since the epoch
        def after(time)
          time = time.floor
          return instant_of(later(reached(time))) unless every_hour?

          loop do
            period = period_at(time)
            tick = later(time + offset(period)) - offset(period)
            ends = ending(period)
            return tick unless ends && tick >= ends

            return ends if on_the_wall?(ends)

            time = ends
          end
        end

        # @param time [Numeric] seconds since the epoch
        # @return [Integer] the last tick that is not after it
        def until(time)
          time = time.floor
          return instant_of(earlier(reached(time) + 1)) unless every_hour?

          loop do
            period = period_at(time)
            tick = earlier(time + offset(period) + 1) - offset(period)
            begins = beginning(period)
            return tick unless begins && tick < begins

            time = begins - 1
          end
        end

        private

        def parse(text)
          unless text.is_a?(String) && text.valid_encoding?
            raise ConfigError, "a schedule must be a text such as \"every day at 4am\", got #{text.inspect}"
          end

          refuse_what_is_uneven(text)
          found = Fugit::Cron.parse(text) || several(text)
          found.is_a?(Fugit::Cron) ? found : refuse(text)
        end

        # In words one may say what needs several schedules.
        def several(text)
          found = Array(text.strip.empty? ? nil : Fugit::Nat.parse(text, multi: true)).grep(Fugit::Cron)
          return found.first if found.size < 2

          raise ConfigError, "the schedule #{text.inspect} is several: give each an entry of its own: " \
                             "#{found.map { |one| one.original.inspect }.join(", ")}"
        rescue ArgumentError # that it is several, or too long
          nil
        end

        def refuse_what_is_uneven(text)
          text.scan(EVERY) do |number, beginning|
            unit, most = UNITS.fetch(beginning.downcase)
            next if number.to_i.positive? && (most % number.to_i).zero?

            even = (1..(most / 2)).select { |each| (most % each).zero? }
            may_be = "#{unit}s may be #{even.join(", ")}; or " if even.any?
            raise ConfigError, "the schedule #{text.inspect} has no even times: #{may_be}write the times as crontab has them"
          end
        end

        def refuse(text)
          duration = begin
            Fugit::Duration.parse(text)
          rescue StandardError # of fugit
            nil
          end
          hint = "it is a duration; write \"every hour\"" if duration && !text.strip.empty?
          hint ||= "write \"every day at 4am\" or \"0 4 * * *\""
          raise ConfigError, "#{text.inspect} is no schedule, or names a time that never comes or a zone that is not: #{hint}"
        end

        def timezone(name)
          found = EtOrbi.get_tzone(name) if name.is_a?(String) && name.valid_encoding? && !name.strip.empty?
          found || no_zone(name)
        rescue TZInfo::InvalidTimezoneIdentifier
          no_zone(name)
        end

        def no_zone(name)
          raise ConfigError, "there is no time zone #{name.inspect}; write one such as \"Europe/Berlin\" or \"UTC\""
        end

        def check(text)
          after(0)
        rescue RuntimeError # of fugit, which has looked for decades
          raise ConfigError, "the schedule #{text.inspect} never comes: there is no such day; leave the entry out, or mend " \
                             "its day"
        end

        def every_hour? = @wall.hours.nil?

        # --- on the wall: times as if they were of UTC ---

        def later(wall) = @wall.next_time(EtOrbi::EoTime.new(wall, "UTC")).to_i

        def earlier(wall) = @wall.previous_time(EtOrbi::EoTime.new(wall, "UTC")).to_i

        # The latest time that the clock has shown until then.
        def reached(time)
          period = period_at(time)
          begins = beginning(period)
          return time + offset(period) unless begins

          [time + offset(period), begins + offset(period_at(begins - 1)) - 1].max
        end

        # When the clock shows that time, or a later one, for the first time.
        def instant_of(wall)
          period = period_at(wall - TWO_DAYS)
          while (ends = ending(period)) && ends + offset(period) <= wall
            period = period_at(ends)
            return ends if ends + offset(period) > wall
          end
          wall - offset(period)
        end

        # --- the zone ---

        def period_at(time) = @timezone.period_for(Time.at(time))

        def offset(period) = period.observed_utc_offset

        def beginning(period) = period.start_transition&.timestamp_value

        def ending(period) = period.end_transition&.timestamp_value

        def on_the_wall?(time)
          wall = time + offset(period_at(time))
          later(wall - 1) == wall
        end
      end
    end
  end
end
