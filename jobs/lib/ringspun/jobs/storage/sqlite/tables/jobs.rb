# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # Jobs, and how they come into queues and sets.
          #
          # @api private
          module Jobs
            # What an entry has whose lock outlives the job.
            UNTIL_EXPIRY = '"unique_until":"expiry"'
            ADD = "INSERT INTO jobs (id, entry) VALUES (?, ?)"
            FORGET = "DELETE FROM jobs WHERE id = ?"
            LINE_UP = "INSERT INTO ready (queue, priority, place, job) VALUES (?, ?, ?, ?)"
            # For jobs whose places are their numbers, from one number to another.
            LINE_UP_NEW = "INSERT INTO ready (queue, priority, place, job) SELECT ?, ?, id, id FROM jobs WHERE id BETWEEN ? AND ?"
            private_constant :UNTIL_EXPIRY, :ADD, :FORGET, :LINE_UP, :LINE_UP_NEW

            # Most rows are written at the end, many by each call: what comes before does not look at them.
            #
            # @return [Array<String, nil>] for each push the jid that has its lock
            def push(pushes)
              @added = []
              @lined_up = []
              answers = pushes.map do |push|
                push.lock || push.at || push.delay ? push_one(push) : add_to_queue(push.queue, push.entry)
              end
              run_all(ADD, @added) if @added.any?
              @lined_up.each { |range| run(LINE_UP_NEW, *range) }
              answers
            ensure
              @added = @lined_up = nil
            end

            private

            def push_one(push)
              at = push.at || (push.delay && now + push.delay)
              if push.lock
                return if pushed_before?(push.jid)

                seconds = push.lock_seconds + (at ? [at - now, 0].max : 0)
                holder = hold(push.lock, push.jid, seconds, stays: push.entry.b.include?(UNTIL_EXPIRY))
                return (holder if holder != push.jid) if holder

                remember_push(push.jid)
              end
              at ? put_into(:schedule, add(push.entry), push.entry, at) : add_to_queue(push.queue, push.entry)
              nil
            end

            # @return [Integer] the number of the new job
            def add(entry)
              number = next_number
              @added ? @added << [number, text(entry)] : run(ADD, number, text(entry))
              number
            end

            # @return [nil]
            def add_to_queue(queue, entry)
              number = add(entry)
              return line_up(queue, number, entry, place: number) unless @lined_up

              line_up_later(used_queue(queue), priority_in(queue, entry), number)
              grow(queue)
            end

            def line_up_later(queue, priority, number)
              range = @lined_up.last
              if range && range[3] == number - 1 && range[0] == queue && range[1] == priority
                range[3] = number
              else
                @lined_up << [queue, priority, number, number]
              end
            end

            # @param place [Integer] where it is in the queue: at the end, unless told otherwise
            def line_up(queue, job, entry, place: next_number)
              run(LINE_UP, used_queue(queue), priority_in(queue, entry), place, job)
              grow(queue)
            end

            # @return [nil]
            def grow(queue)
              @grown[used_queue(queue)] += 1
              @woken << queue unless @woken.last == queue
              nil
            end

            # What anybody has ever pushed to.
            def used_queue(name)
              @used[name] ||= begin
                id, used = row("SELECT id, used FROM queues WHERE name = ?", text(name))
                id ||= queue_id(name)
                run("UPDATE queues SET used = 1 WHERE id = ?", id) unless used == 1
                @queue_ids[name] = id
              end
            end

            def put_into(set, job, entry, at)
              at = at.to_f
              run("INSERT INTO sets (job, kind, at, sum) VALUES (?, ?, ?, ?)", job, kind_of(set), at, Zlib.crc32(entry))
              @grown[set] += 1
              tell_due(at) if set != :dead
            end

            # @return [Boolean] whether it was there
            def leave_set(set, job)
              left = run("DELETE FROM sets WHERE job = ? AND kind = ?", job, kind_of(set)).positive?
              @grown[set] -= 1 if left
              left
            end

            # @return [Boolean] whether a set has a job with that entry
            def in_set?(set, entry)
              !value("SELECT 1 FROM sets JOIN jobs ON jobs.id = sets.job WHERE sum = ? AND kind = ? AND entry = ?",
                     Zlib.crc32(entry), kind_of(set), entry).nil?
            end

            def entry_of(job) = value("SELECT entry FROM jobs WHERE id = ?", job)

            def forget(job) = run(FORGET, job)

            def forget_all(jobs) = run_all(FORGET, jobs.map { |job| [job] })

            # With the same number, if the entry stays as it is.
            #
            # @return [Integer]
            def rewritten(job, old, new)
              return job if old == new

              forget(job)
              add(new)
            end

            def priority_in(queue, entry) = queue == QUARANTINE ? 0 : priority_of(entry)

            def priority_of(entry)
              return 0 unless entry.include?(Wire::PRIORITY)

              job = Wire.read(entry)
              job ? Wire.priority(job) : 0
            rescue ArgumentError, EncodingError # no text
              0
            end

            # Moves a job from nowhere into the queue that it names.
            #
            # @return [Boolean] false: its entry is no job or names a queue that is reserved, so there is no queue for it
            def enqueue(number, entry)
              job = Wire.read(entry)
              return false if job.nil? || Wire.reserved?(job["queue"])

              new = Wire.enqueued(entry, job, Wire.time(now, milliseconds: @milliseconds))
              line_up(job["queue"] || "default", rewritten(number, entry, new), new)
              true
            end

            # Puts an entry that is no job among the dead.
            #
            # @return [Array(String, String)] the entry then, and the reason
            def bury(number, entry)
              fault = Wire.fault(entry)
              new = Wire.blamed(entry, fault, Wire.time(now, milliseconds: @milliseconds))
              put_into(:dead, rewritten(number, entry, new), new, now)
              [new, fault.message]
            end

            # Takes a job out of a queue or of a set.
            #
            # @return [String, nil] its entry; nil: it was not there
            def take_out(place, token)
              number = number_of(token) or return
              return (entry_of(number) if leave_set(place, number)) if place.is_a?(Symbol)

              queue = known_queue(place) or return
              entry = entry_of(number) or return
              return unless take_from_queue(queue, number, entry)

              give_place_back(Wire.jid(entry)) if place == QUARANTINE
              entry
            end

            # Most are where they were put first. The others are looked for.
            def take_from_queue(queue, number, entry)
              taken = run("DELETE FROM ready WHERE queue = ? AND priority = ? AND place = ? AND job = ?",
                          queue, priority_of(entry), number, number).positive? ||
                      run("DELETE FROM ready WHERE queue = ? AND job = ?", queue, number).positive?
              @grown[queue] -= 1 if taken
              taken
            end
          end
          private_constant :Jobs
        end
      end
    end
  end
end
