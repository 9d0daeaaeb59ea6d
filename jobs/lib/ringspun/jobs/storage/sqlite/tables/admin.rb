# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # What looks into the file, and what a person changes there.
          #
          # @api private
          module Admin
            # @return [Array<String>]
            def queues = rows("SELECT name FROM queues WHERE used").flatten

            # @return [Hash] see {Storage#stats}
            def stats
              sizes = rows("SELECT name, size FROM queues WHERE used ORDER BY name")
              sets = rows("SELECT size FROM set_sizes ORDER BY kind").flatten
              processed, failed, twice = row("SELECT processed, failed, twice FROM state")
              numbers = [processed, failed, sizes.sum(&:last), *sets, value("SELECT count(*) FROM flight"),
                         value("SELECT count(*) FROM nodes WHERE listed"), twice]
              { **STATS.zip(numbers).to_h, queues: sizes.to_h, unreadable: [] }
            end

            # A page is found in an index, so that the entries before it are not looked up.
            LISTS = %w[ASC DESC].map do |way|
              "SELECT job, entry FROM (SELECT job, priority, place FROM ready " \
                "WHERE queue = (SELECT id FROM queues WHERE name = ?) ORDER BY priority #{way}, place #{way} " \
                "LIMIT ? OFFSET ?) AS page CROSS JOIN jobs ON jobs.id = job ORDER BY priority #{way}, place #{way}".freeze
            end.freeze
            SCANS = %w[ASC DESC].map do |way|
              "SELECT job, entry, at FROM (SELECT job, at FROM sets WHERE kind = ? ORDER BY at #{way}, job #{way} " \
                "LIMIT ? OFFSET ?) AS page CROSS JOIN jobs ON jobs.id = job ORDER BY at #{way}, job #{way}".freeze
            end.freeze
            private_constant :LISTS, :SCANS

            # @return [Array<Stored>]
            def list_jobs(queue, from, count, from_end: false)
              rows(LISTS[from_end ? 1 : 0], text(queue), count, from).map { |job, entry| Stored.new(job.to_s, entry) }
            end

            # @return [Array<Stored>]
            def scan(set, from, count, from_end: false)
              rows(SCANS[from_end ? 1 : 0], kind_of(set), count, from).map { |job, entry, at| Stored.new(job.to_s, entry, at) }
            end

            # @return [Array<Boolean>]
            def remove(place, tokens)
              check(place)
              tokens.map { |token| !discard(place, token).nil? }
            end

            # @return [Integer] how many it has forgotten
            def clear_some(place, most)
              check(place)
              jobs = place.is_a?(Symbol) ? scan(place, 0, most) : list_jobs(place, 0, most)
              jobs.each { |job| discard(place, job.token) }.size
            end

            # @return [Array<Boolean>]
            def kill(place, tokens)
              check(place)
              tokens.map do |token|
                entry = take_out(place, token)
                next false unless entry

                release_lock_of(entry)
                put_into(:dead, number_of(token), entry, now)
                note(Wire.jid(entry), Event.new(kind: :killed))
                true
              end
            end

            # @return [Array<Boolean>]
            def retry_now(set, tokens)
              kind = kind_of(set)
              tokens.map do |token|
                number = number_of(token)
                entry = value("SELECT entry FROM sets JOIN jobs ON jobs.id = sets.job WHERE sets.job = ? AND kind = ?",
                              number, kind)
                next false unless entry && enqueue(number, entry)

                leave_set(set, number)
                moved_by_hand(entry)
              end
            end

            # @return [Array<Boolean>]
            def move(place, moves, to)
              check(place)
              moves.map do |move|
                entry = take_out(place, move.token) if place != to
                next false unless entry

                new = move.entry ? text(move.entry) : entry
                line_up(to, rewritten(number_of(move.token), entry, new), new)
                moved_by_hand(new)
              end
            end

            # @return [Array<Boolean>]
            def restore(place, jobs)
              check(place)
              jobs.map do |job|
                entry = text(job.entry)
                next false if place.is_a?(Symbol) && in_set?(place, entry)

                place.is_a?(Symbol) ? put_into(place, add(entry), entry, job.at) : add_to_queue(place, entry)
                true
              end
            end

            # @return [nil]
            def count(processed, failed, twice)
              { processed: processed, failed: failed, twice: twice }.each { |name, number| @counts[name] += number }
              nil
            end

            # @return [nil]
            def trim_dead(count, seconds)
              dead = kind_of(:dead)
              tokens = rows("SELECT job FROM sets WHERE kind = ? AND at <= ?", dead, now - seconds) +
                       rows("SELECT job FROM sets WHERE kind = ? ORDER BY at DESC, job DESC LIMIT -1 OFFSET ?", dead, count)
              tokens.flatten.uniq.each do |job|
                leave_set(:dead, job)
                forget(job)
              end
              nil
            end

            # @return [nil]
            def pause(queue, paused)
              run("UPDATE queues SET paused = ? WHERE id = ?", paused ? 1 : 0, queue_id(queue))
              @woken << queue unless paused
              nil
            end

            # @return [Array<String>]
            def paused = rows("SELECT name FROM queues WHERE paused ORDER BY name").flatten

            private

            # @raise [ArgumentError]
            def check(place) = place.is_a?(Symbol) && kind_of(place)

            # The job will not run.
            def discard(place, token)
              take_out(place, token)&.tap do |entry|
                release_lock_of(entry)
                forget(number_of(token))
              end
            end

            def moved_by_hand(entry)
              note(Wire.jid(entry), Event.new(kind: :by_hand))
              true
            end
          end
          private_constant :Admin
        end
      end
    end
  end
end
