# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The verbs for administration: they look into the storage, and change what is there.
        #
        # @api private
        module Admin
          # (see Storage#queues)
          def queues(connection: nil) = synchronize { @queues.keys }

          # (see Storage#stats)
          def stats(connection: nil)
            synchronize do
              queues = @queues.sort.to_h.transform_values(&:size)
              numbers = [@counts[:processed], @counts[:failed], queues.each_value.sum,
                         *@sets.values_at(:schedule, :retry, :dead).map(&:size),
                         @lists.each_value.sum { |lists| lists.each_value.sum(&:size) }, @lists.size, @counts[:twice]]
              { **STATS.zip(numbers).to_h, queues: queues, unreadable: [] }
            end
          end

          # (see Storage#list)
          def list(queue, from, count, from_end: false, connection: nil)
            synchronize do
              jobs = @queues[queue_named(queue)] || []
              copies((from_end ? jobs : jobs.reverse)[from, count])
            end
          end

          # (see Storage#scan)
          def scan(set, from, count, from_end: false, connection: nil)
            synchronize do
              jobs = set(set).each_value.sort_by { |job| [job.at, job.entry.b] }
              copies((from_end ? jobs.reverse : jobs)[from, count])
            end
          end

          # (see Storage#history)
          def history(jid, connection: nil)
            synchronize do
              events, ends = @histories[jid]
              ends && ends > lasting ? events.dup : []
            end
          end

          # (see Storage#results)
          def results(jids, connection: nil)
            synchronize { @results.values_at(*jids).map { |text, ends| text if ends && ends > lasting } }
          end

          # (see Storage#remove)
          def remove(place, tokens, connection: nil)
            synchronize { tokens.map { |token| !discard(place, token).nil? } }
          end

          # (see Storage#clear)
          def clear(place, connection: nil)
            synchronize do
              jobs = place.is_a?(Symbol) ? set(place).values : @queues.fetch(place, []).reverse
              jobs.each { |job| discard(place, job.token) }.size
            end
          end

          # (see Storage#kill)
          def kill(place, tokens, connection: nil)
            raise ArgumentError, "what is dead cannot be killed" if place == :dead

            synchronize do
              set(place) if place.is_a?(Symbol)
              tokens.map do |token|
                job = discard(place, token)
                next false unless job

                put_into(:dead, job, now)
                note(Wire.jid(job.entry), Event.new(kind: :killed))
                true
              end
            end
          end

          # (see Storage#retry_now)
          def retry_now(set, tokens, connection: nil)
            synchronize do
              all = set(set)
              tokens.map { |token| all.key?(token) && enqueue(all[token]) && moved_by_hand(all.delete(token)) }
            end
          end

          # (see Storage#move)
          def move(place, moves, to, connection: nil)
            synchronize do
              set(place) if place.is_a?(Symbol)
              moves.map do |move|
                job = take_out(place, move.token) if place != to
                next false unless job

                moved = job_with(move.entry || job.entry, job)
                line_up(to, moved)
                moved_by_hand(moved)
              end
            end
          end

          # (see Storage#restore)
          def restore(place, jobs, connection: nil)
            synchronize do
              there = place.is_a?(Symbol) ? set(place).each_value.to_h { |job| [job.entry, true] } : {}
              jobs.map do |job|
                next false if there.key?(job.entry)

                there[job.entry] = true if place.is_a?(Symbol)
                place.is_a?(Symbol) ? put_into(place, job_with(job.entry), job.at) : line_up(place, job_with(job.entry))
                true
              end
            end
          end

          # (see Storage#counters)
          def counters(processed: 0, failed: 0, twice: 0, connection: nil)
            synchronize do
              @counts[:processed] += processed
              @counts[:failed] += failed
              @counts[:twice] += twice
            end
            nil
          end

          # (see Storage#trim_dead)
          def trim_dead(count, seconds, connection: nil)
            synchronize do
              dead = @sets[:dead]
              dead.delete_if { |_, job| job.at <= now - seconds }
              dead.each_value.sort_by { |job| -job.at }.drop(count).each { |job| dead.delete(job.token) }
            end
            nil
          end

          # (see Storage#pause)
          def pause(queue, connection: nil)
            synchronize { @paused[queue_named(queue)] = true }
            nil
          end

          # (see Storage#resume)
          def resume(queue, connection: nil)
            queue = queue_named(queue)
            synchronize do
              @paused.delete(queue)
              ring(queue)
            end
            nil
          end

          # (see Storage#paused)
          def paused(connection: nil) = synchronize { @paused.keys.sort }

          # (see Storage#risks)
          def risks(connection: nil) = []

          # (see Storage#version)
          def version(connection: nil) = nil

          # (see Storage#migrate)
          def migrate(connection: nil) = 0

          # (see Storage#check)
          def check(connection: nil) = []

          # (see Storage#time)
          def time(connection: nil) = now

          private

          def moved_by_hand(job)
            note(Wire.jid(job.entry), Event.new(kind: :by_hand))
            true
          end

          def take_out(place, token)
            return set(place).delete(token) if place.is_a?(Symbol)

            index = place_of(token, @queues[place])
            @priorities.delete(token)
            return unless index

            @queues[place].delete_at(index).tap { |job| give_place_back(Wire.jid(job.entry)) if place == QUARANTINE }
          end

          # The job will not run.
          def discard(place, token) = take_out(place, token)&.tap { |job| release_lock_of(job) }

          # What a caller gets must stay as it is when the job moves.
          def copies(jobs) = (jobs || []).map(&:dup)

          def set(name) = @sets[name] || raise(ArgumentError, "#{name.inspect} is none of #{SETS.map(&:inspect).join(", ")}")
        end
        private_constant :Admin
      end
    end
  end
end
