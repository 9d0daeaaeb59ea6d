# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # Entries of schedules.
        #
        # @api private
        module Crons
          # (see Storage#cron_define)
          def cron_define(source, crons, fresh: true, stale: CRON_STALE_SECONDS, connection: nil)
            synchronize do
              ticks = crons.map { |cron| define_cron(source, cron, fresh, stale) }
              forget_crons(source, crons.map(&:name), stale)
              [now, ticks]
            end
          end

          # (see Storage#cron_push)
          def cron_push(name, tick, push, connection: nil)
            refuse(connection)
            synchronize do
              cron = @crons[name] or next :unknown
              next :paused if tick && cron.paused
              next :passed if tick && tick <= cron.tick

              holder = push && push_one(push)
              cron.tick = tick.to_f if tick
              jid = push.jid if push && !holder
              cron.runs = [CronRun.new(tick&.to_f, now, jid), *cron.runs].first(CRON_RUNS_MAX)
              holder ? :held : :pushed
            end
          end

          # (see Storage#crons)
          def crons(connection: nil) = synchronize { @crons.each_value.map(&:dup).sort_by(&:name) }

          # (see Storage#cron_pause)
          def cron_pause(name, paused, connection: nil)
            synchronize do
              cron = @crons[name] or next
              cron.paused != paused && !(cron.paused = paused).nil?
            end
          end

          private

          def define_cron(source, cron, fresh, stale)
            known = @crons[cron.name]
            return if known && known.source != source && known.seen > now - stale

            if known.nil?
              known = @crons[cron.name] = Cron.new(cron.name, source, cron.schedule, cron.text, now, now, false, [])
            elsif fresh || known.source != source
              known.tick = now if known.schedule != cron.schedule
              known.source, known.schedule, known.text = source, cron.schedule, cron.text
            end
            known.tick = now if known.tick > now + CRON_AHEAD_SECONDS
            known.seen = now
            known.tick
          end

          def forget_crons(source, names, stale)
            @crons.delete_if do |name, cron|
              !names.include?(name) && cron.seen <= now - (cron.source == source ? stale : CRON_FORGET_SECONDS)
            end
          end
        end
        private_constant :Crons
      end
    end
  end
end
