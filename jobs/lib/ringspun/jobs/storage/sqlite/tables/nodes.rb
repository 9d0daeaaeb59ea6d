# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # Nodes: their leases, what is taken from those that are dead, and what is told of them and to them. A node is dead when
          # its lease is over, or when the process that held its lock of the kernel has ended.
          #
          # @api private
          module Nodes
            # Seconds after which what is left of a node that is forgotten goes too.
            TRACES_SECONDS = 86_400
            private_constant :TRACES_SECONDS

            # @return [Array<Boolean>] see {Storage#extend}
            def extend_leases(names, seconds)
              note_outage
              names.map do |name|
                listed, lease = row("SELECT listed, lease FROM nodes WHERE name = ?", text(name))
                kept = lease ? lease > steady : listed != 1
                run("UPDATE nodes SET lease = ?, lasts = ?, gone = NULL WHERE id = ?", steady + seconds, seconds, list(name))
                kept
              end
            end

            # @return [Array<Recovered>] see {Storage#recover}
            def recover(limit, forget, hold)
              note_outage
              run("UPDATE state SET hold = ? WHERE hold <> ?", hold, hold)
              moved = []
              dead_nodes.each do |id, name, gone|
                break if moved.size >= limit

                before = moved.size
                empty(id, name, moved, limit)
                next run("UPDATE nodes SET gone = NULL WHERE id = ?", id) if moved.size > before

                gone ||= steady.tap { |time| run("UPDATE nodes SET gone = ? WHERE id = ?", time, id) }
                run("UPDATE nodes SET listed = 0, locked = 0 WHERE id = ?", id) if steady - gone >= forget
              end
              run("DELETE FROM nodes WHERE NOT listed AND gone < ?", steady - TRACES_SECONDS)
              moved
            end

            # @return [nil]
            def leave(name)
              id = known_node(name)
              give_back(id, name) if id
              @lock_file.let_go(id) if id
              run("DELETE FROM nodes WHERE name = ?", text(name))
              run("DELETE FROM signals WHERE node = ?", text(name))
              run("DELETE FROM old_runs WHERE node = ?", text(name))
              @node_ids.delete(name)
              nil
            end

            # @return [Integer]
            def losses(name) = value("SELECT losses FROM nodes WHERE name = ?", text(name)) || 0

            # Says in which file of locks this process holds its nodes, for it has made that one anew.
            #
            # @return [nil]
            def note_locks
              @lock_file.held.each { |id| run("UPDATE nodes SET locked = ? WHERE id = ?", @lock_file.number, id) }
              nil
            end

            # What this process holds goes by its lease alone from now on.
            def unlock_nodes
              @lock_file.held.each { |id| run("UPDATE nodes SET locked = 0 WHERE id = ?", id) }
              nil
            end

            # @return [nil]
            def announce(node, info, work)
              shown = { "quiet" => false, "rss" => 0, "rtt_us" => 0, **JSON.parse(JSON.generate(info)), "busy" => work.size }
              jobs = work.map { |slot, queue, entry, began| [slot.to_s, text(queue), text(entry).scrub, began.to_f] }
              run("DELETE FROM announced WHERE ends <= ?", lasting)
              run("INSERT OR REPLACE INTO announced (node, info, work, beat, ends) VALUES (?, ?, ?, ?, ?)", text(node),
                  JSON.generate(shown), JSON.generate(jobs), now, lasting + SHOWN_SECONDS)
              nil
            end

            # @return [nil]
            def retract(node)
              run("DELETE FROM announced WHERE node = ?", text(node))
              nil
            end

            # @return [Array<Hash{String => Object}>]
            def announced
              rows("SELECT node, info, beat FROM announced WHERE ends > ? ORDER BY node", lasting)
                .map { |node, info, beat| JSON.parse(info).merge("identity" => node, "beat" => beat) }
            end

            # @return [Array<Array<Running>>]
            def work(nodes)
              nodes.map do |node|
                jobs = value("SELECT work FROM announced WHERE node = ? AND ends > ?", text(node), lasting)
                JSON.parse(jobs || "[]").map { |job| Running.new(node, *job) }.sort_by { |job| [job.began_at, job.slot] }
              end
            end

            # @return [nil]
            def signal(node, message)
              run("DELETE FROM signals WHERE ends <= ?", lasting) # of nodes that are dead
              run("INSERT INTO signals (node, message, ends) VALUES (?, ?, ?)", text(node), text(message),
                  lasting + SHOWN_SECONDS)
              nil
            end

            # @return [Boolean]
            def signals?(node) = !value("SELECT 1 FROM signals WHERE node = ? AND ends > ?", text(node), lasting).nil?

            # @return [Array<String>]
            def signals(node)
              messages = rows("SELECT message FROM signals WHERE node = ? AND ends > ? ORDER BY id", text(node), lasting).flatten
              run("DELETE FROM signals WHERE node = ?", text(node)) if messages.any?
              messages
            end

            private

            def known_node(name) = @node_ids[name] ||= value("SELECT id FROM nodes WHERE name = ?", text(name))

            # @return [Integer] the number of a node that is on the list from now on
            def list(name)
              run("INSERT INTO nodes (name, listed) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET listed = 1 WHERE NOT listed",
                  text(name))
              known_node(name)
            end

            # A node that fetches, which this process runs.
            def register(name)
              listed, locked, id = row("SELECT listed, locked, id FROM nodes WHERE name = ?", text(name))
              id = list(name) unless listed == 1
              here = @lock_file.number
              run("UPDATE nodes SET locked = ? WHERE id = ?", here, id) if @lock_file.hold(id) && locked != here
              @node_ids[name] = id
            end

            def leased?(id) = (value("SELECT lease FROM nodes WHERE id = ?", id) || 0) > steady

            # While nobody could write, nobody could extend a lease: so leases stand still, and what else goes by the same clock.
            # Any node that lives extends its own within half of it, see {Config#beat}, so a longer time without that is such an
            # outage.
            def note_outage
              time = steady
              beaten = value("SELECT beaten FROM state")
              run("UPDATE state SET beaten = ?", time)
              lasts = beaten && value("SELECT max(lasts) FROM nodes WHERE lease > ?", beaten) or return
              outage = time - beaten
              stand_still(beaten, outage) if outage > [lasts / 2, OUTAGE_SECONDS].max
            end

            def stand_still(since, seconds)
              run("UPDATE nodes SET lease = lease + ? WHERE lease > ?", seconds, since)
              run("UPDATE places SET waits_until = waits_until + ? WHERE waits_until > ?", seconds, since)
              run("UPDATE old_runs SET ends = ends + ? WHERE ends > ?", seconds, since)
            end

            def dead_nodes
              rows("SELECT id, name, gone, lease, locked FROM nodes WHERE listed").reject do |id, _, _, lease, locked|
                lease && lease > steady && (locked != @lock_file.number || @lock_file.held?(id))
              end
            end

            def empty(id, name, moved, limit)
              rows("SELECT job, entry, queues.name FROM flight JOIN jobs ON jobs.id = job JOIN queues ON queues.id = queue " \
                   "WHERE node = ? ORDER BY queue, number LIMIT ?", id, limit - moved.size).each do |job, entry, queue|
                run("DELETE FROM flight WHERE job = ?", job)
                run("UPDATE nodes SET losses = losses + 1 WHERE id = ?", id)
                moved << Recovered.new(name, queue, entry, give_away(name, queue, job, entry))
                @woken << queue # whose limit may allow another one now
              end
            end

            def give_away(node, queue, number, entry)
              job = Wire.read(entry)
              if job.nil?
                line_up(queue, number, entry, place: next_in_front)
                return :queue
              end
              new = queue == QUARANTINE || job["queue"] ? entry : Wire.with_queue(entry, queue)
              keep_place(node, queue, new, job["jid"])
              note(job["jid"], Event.new(kind: :taken_over), node)
              line_up(QUARANTINE, rewritten(number, entry, new), new)
              :quarantine
            end

            def give_back(id, name)
              rows("SELECT job, entry, queues.name FROM flight JOIN jobs ON jobs.id = job JOIN queues ON queues.id = queue " \
                   "WHERE node = ? ORDER BY number DESC", id).each do |job, entry, queue|
                jid = Wire.jid(entry)
                if queue == QUARANTINE
                  run("DELETE FROM trials WHERE jid = ?", text(jid))
                  stop_in_place(jid)
                end
                note(jid, Event.new(kind: :returned), name)
                line_up(queue, job, entry, place: next_in_front)
              end
              run("DELETE FROM flight WHERE node = ?", id)
            end
          end
          private_constant :Nodes
        end
      end
    end
  end
end
