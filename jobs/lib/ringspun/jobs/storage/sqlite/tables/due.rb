# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # What is due, and who wakes for it.
          #
          # @api private
          module Due
            # @return [Array(Integer, Float, Array<Array(String, String)>)] see {Storage#due}
            def due(limit, by)
              moved = 0
              dead = []
              %i[retry schedule].each do |set|
                ready = due_now(set, limit)
                limit -= ready.size
                ready.each do |job, entry|
                  leave_set(set, job)
                  enqueue(job, entry) ? moved += 1 : dead << bury(job, entry)
                end
              end
              first = first_due
              [moved, (first && wakes?(first, by) ? [first - now, 0.0].max : nil), dead]
            end

            # Somebody hears of what was stored.
            #
            # @return [Boolean] false: there was nothing that nobody has heard of
            def take_unheard = run("UPDATE state SET due_unheard = 0 WHERE due_unheard = 1").positive?

            # @return [Boolean]
            def unheard? = value("SELECT due_unheard FROM state") == 1

            private

            def due_now(set, limit)
              rows("SELECT sets.job, entry FROM sets JOIN jobs ON jobs.id = sets.job WHERE kind = ? AND at <= ? " \
                   "ORDER BY at, sets.job LIMIT ?", kind_of(set), now, limit)
            end

            def first_due
              value("SELECT min(at) FROM (SELECT (SELECT min(at) FROM sets WHERE kind = 0) AS at " \
                    "UNION ALL SELECT (SELECT min(at) FROM sets WHERE kind = 1))")
            end

            # One who waits is told, unless somebody wakes early enough.
            def tell_due(at)
              time = now
              return unless at - time < POLL_SECONDS

              changed = run("UPDATE state SET due_unheard = 1 WHERE wakes_at IS NULL OR wakes_at <= ? OR wakes_at > ?", time, at)
              @woken << Bells::DUE if changed.positive?
            end

            # Whether the caller is the one who wakes then.
            def wakes?(at, by)
              return true unless by

              wakes_at, who = row("SELECT wakes_at, wakes_by FROM state")
              return false if wakes_at && wakes_at > now && wakes_at <= at && who != by

              run("UPDATE state SET wakes_at = ?, wakes_by = ?", at, text(by)) unless wakes_at == at && who == by
              true
            end
          end
          private_constant :Due
        end
      end
    end
  end
end
