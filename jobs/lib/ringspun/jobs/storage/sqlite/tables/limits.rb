# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # The limits of queues, see {Storage#fetch}. Times go by the steady clock.
          #
          # @api private
          module Limits
            # Counts runs of jobs from the quarantine.
            #
            # @param node [String]
            # @param runs [Array<Begun>]
            # @return [Array<Trials, nil, Symbol>]
            def begin_quarantined(node, runs, isolated)
              runs.map do |begun|
                fetched = begun.fetched
                next unless flies?(node, fetched.queue, fetched.token)

                jid = Wire.jid(fetched.entry)
                next :later unless begin_in_place(fetched.entry, jid)

                count_run(jid, JSON.generate([text(node).scrub, begun.run, isolated]), isolated)
              end
            end

            private

            def count_run(jid, run, isolated)
              tries, alone, deaths, last = row("SELECT tries, isolated, deaths, last FROM trials WHERE jid = ?", text(jid))
              trials = Trials.new(tries || 0, alone || 0, deaths || 0)
              trials[isolated ? :isolated : :tries] += 1 unless last == run
              run("INSERT OR REPLACE INTO trials (jid, tries, isolated, deaths, last) VALUES (?, ?, ?, ?, ?)", text(jid),
                  *trials.to_a, run)
              trials
            end

            # @return [Hash{Integer => Integer}] queues and their limits, as whoever fetched last has said
            def most = @most ||= rows("SELECT id, most FROM queues WHERE most IS NOT NULL").to_h

            def limit(queue, most_now)
              return if most[queue] == most_now

              run("UPDATE queues SET most = ? WHERE id = ?", most_now, queue)
              @most = nil
            end

            # @return [Integer] how many more may be in flight now
            def room_of(node, queue, limit)
              return 0 unless leased?(node)

              waiting = value("SELECT count(*) FROM places WHERE queue = ? AND NOT running AND waits_until > ?", queue, steady)
              room(queue, limit, running_of(queue) + waiting)
            end

            def room(queue, limit, taken) = [limit - taken, (2 * limit) - taken - old_runs_of(queue)].min

            def running_of(queue)
              value("SELECT (SELECT count(*) FROM flight WHERE queue = ?) + " \
                    "(SELECT count(*) FROM places WHERE queue = ? AND running)", queue, queue)
            end

            def old_runs_of(queue)
              run("DELETE FROM old_runs WHERE ends <= ?", steady)
              value("SELECT count(*) FROM old_runs WHERE queue = ?", queue)
            end

            # @param entry [String] of a job in the quarantine
            # @return [Boolean] false: it must not begin yet; then it holds a place, so that it is the next
            def begin_in_place(entry, jid)
              queue = queue_id(Wire.queue_of(entry))
              limit = most[queue]
              running, = row("SELECT running FROM places WHERE jid = ?", text(jid))
              return true if limit.nil? || running == 1

              begins = room(queue, limit, running_of(queue)).positive?
              run("INSERT OR IGNORE INTO places (jid, queue, waits_until, running) VALUES (?, ?, 0, 0)", text(jid), queue)
              if begins
                run("UPDATE places SET running = 1 WHERE jid = ?", text(jid))
              else
                run("UPDATE places SET waits_until = ? WHERE jid = ?", steady + value("SELECT hold FROM state"), text(jid))
              end
              begins
            end

            # A job of a dead node goes to the quarantine.
            def keep_place(node, from, entry, jid)
              queue = queue_id(Wire.queue_of(entry))
              return unless most[queue]

              hold = steady + value("SELECT hold FROM state")
              if from != QUARANTINE || value("SELECT running FROM places WHERE jid = ?", text(jid)) == 1
                run("INSERT OR REPLACE INTO old_runs (node, fetched_from, jid, queue, ends) VALUES (?, ?, ?, ?, ?)",
                    text(node), text(from), text(jid), queue, hold)
              end
              return stop_in_place(jid) if from == QUARANTINE

              run("INSERT OR IGNORE INTO places (jid, queue, waits_until, running) VALUES (?, ?, ?, 0)", text(jid), queue, hold)
            end

            # Its first time of waiting goes on.
            def stop_in_place(jid) = run("UPDATE places SET running = 0 WHERE jid = ?", text(jid))

            def give_place_back(jid)
              queue = value("DELETE FROM places WHERE jid = ? RETURNING queue", text(jid))
              wake(queue) if queue
            end

            # A job has left what is in flight of the quarantine.
            def leave_place(jid, to) = to == QUARANTINE ? stop_in_place(jid) : give_place_back(jid)

            def old_run_ended(node, from, jid)
              queue = jid && value("DELETE FROM old_runs WHERE node = ? AND fetched_from = ? AND jid = ? RETURNING queue",
                                   text(node), text(from), text(jid))
              wake(queue) if queue
            end

            # A queue's limit may allow another one now.
            def wake(queue) = @woken << value("SELECT name FROM queues WHERE id = ?", queue)
          end
          private_constant :Limits
        end
      end
    end
  end
end
