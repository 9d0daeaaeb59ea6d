# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # Entries of schedules. `ringspun:cron` has the name of each, with when it was last seen; `ringspun:cron:entry:NAME` the
        # entry, and `ringspun:cron:runs:NAME` its last runs.
        #
        # @api private
        module Crons
          # (see Storage#cron_define)
          def cron_define(source, crons, fresh: true, stale: CRON_STALE_SECONDS, connection: nil)
            entries = crons.flat_map { |cron| [cron.name, cron.schedule, cron.text] }
            command = Script[:cron_define].command(@prefix, source, fresh ? 1 : 0, stale, CRON_FORGET_SECONDS,
                                                   CRON_AHEAD_SECONDS, *entries)
            now, *ticks = call(connection, command, again: true)
            [now.to_f, ticks.map { |tick| tick.to_f unless tick.empty? }]
          end

          # (see Storage#cron_push)
          def cron_push(name, tick, push, connection: nil)
            of_push = push ? Batch.arguments(push) : []
            command = Script[:cron_push].command(@prefix, AGAIN_SECONDS * 1000, CRON_RUNS_MAX, name,
                                                 tick ? format("%.6f", tick) : "", *of_push)
            call(connection, command, again: !tick.nil?).to_sym
          end

          # (see Storage#crons)
          def crons(connection: nil)
            call(connection, Script[:crons].command(@prefix), again: true).map { |name, seen, fields, runs|
              source, schedule, text, tick, paused = fields
              Cron.new(name, source, schedule, text, tick.to_f, seen.to_f, paused == "1",
                       runs.map { |run| cron_run(run) })
            }.sort_by(&:name)
          end

          # (see Storage#cron_pause)
          def cron_pause(name, paused, connection: nil)
            changed = call(connection, Script[:cron_pause].command(@prefix, name, paused ? 1 : 0), again: true)
            changed == 1 if changed
          end

          private

          # @param text [String] tick, time and jid; the first and the last may be "-"
          def cron_run(text)
            tick, at, jid = text.split(" ", 3)
            CronRun.new(tick == "-" ? nil : tick.to_f, at.to_f, jid == "-" ? nil : jid)
          end
        end
        private_constant :Crons
      end
    end
  end
end
