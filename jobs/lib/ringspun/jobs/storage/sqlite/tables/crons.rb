# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # Entries of schedules.
          #
          # @api private
          module Crons
            # @return [Array(Float, Array<Float, nil>)] see {Storage#cron_define}
            def cron_define(source, crons, fresh, stale)
              time = now
              ticks = crons.map { |cron| define_cron(text(source), cron, fresh, stale, time) }
              forget_crons(text(source), crons.map { |cron| text(cron.name) }, stale, time)
              [time, ticks]
            end

            # @return [Symbol] see {Storage#cron_push}
            def cron_push(name, tick, push)
              last, paused, runs = row("SELECT tick, paused, runs FROM crons WHERE name = ?", text(name))
              return :unknown unless last
              return :paused if tick && paused == 1
              return :passed if tick && tick <= last

              holder = push && push_one(push)
              this = [tick&.to_f, now, (push.jid if push && !holder)]
              run("UPDATE crons SET tick = ?, runs = ? WHERE name = ?", (tick || last).to_f,
                  JSON.generate([this, *JSON.parse(runs)].first(CRON_RUNS_MAX)), text(name))
              holder ? :held : :pushed
            end

            # @return [Array<Cron>]
            def crons
              rows("SELECT name, source, schedule, text, tick, seen, paused, runs FROM crons ORDER BY name")
                .map do |*fields, paused, runs|
                  Cron.new(*fields, paused == 1, JSON.parse(runs).map { |one| CronRun.new(*one) })
                end
            end

            # @return [Boolean, nil]
            def cron_pause(name, paused)
              was = value("SELECT paused FROM crons WHERE name = ?", text(name)) or return
              run("UPDATE crons SET paused = ? WHERE name = ?", paused ? 1 : 0, text(name))
              (was == 1) != paused
            end

            private

            def define_cron(source, cron, fresh, stale, time)
              name, schedule, definition = [cron.name, cron.schedule, cron.text].map { |one| text(one) }
              theirs, known, tick, seen = row("SELECT source, schedule, tick, seen FROM crons WHERE name = ?", name)
              return if theirs && theirs != source && seen > time - stale

              anew = fresh || theirs != source
              tick = time if tick.nil? || tick > time + CRON_AHEAD_SECONDS || (anew && known != schedule)
              if anew
                run("INSERT INTO crons (name, source, schedule, text, tick, seen) VALUES (?, ?, ?, ?, ?, ?) " \
                    "ON CONFLICT (name) DO UPDATE SET source = excluded.source, schedule = excluded.schedule, " \
                    "text = excluded.text, tick = excluded.tick, seen = excluded.seen",
                    name, source, schedule, definition, tick, time)
              else
                run("UPDATE crons SET tick = ?, seen = ? WHERE name = ?", tick, time, name)
              end
              tick
            end

            def forget_crons(source, names, stale, time)
              old = rows("SELECT name FROM crons WHERE seen <= CASE source WHEN ? THEN ? ELSE ? END", source, time - stale,
                         time - CRON_FORGET_SECONDS)
              (old.flatten - names).each { |name| run("DELETE FROM crons WHERE name = ?", name) }
            end
          end
          private_constant :Crons
        end
      end
    end
  end
end
