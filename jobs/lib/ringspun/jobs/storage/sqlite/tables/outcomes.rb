# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # What becomes of jobs that were in flight.
          #
          # @api private
          module Outcomes
            LAND = "DELETE FROM flight WHERE node = ? AND queue = ? AND job IN (SELECT value FROM json_each(?)) RETURNING job"
            private_constant :LAND

            # @return [Array<Boolean>]
            def ack(node, acks)
              forgotten = []
              settled = settle(node, acks) do |ack, job, _|
                ack.ran ? keep_done(node, ack, job) : forgotten << job
                @counts[:processed] += 1
                keep_result(ack) if ack.keep_seconds
              end
              forget_all(forgotten) if forgotten.any?
              settled
            end

            # @return [Array<Boolean>]
            def fail(node, failures)
              settle(node, failures) do |failure, job, entry|
                put(failure, job, entry)
                next unless %i[retry dead].include?(failure.to)

                @counts[:processed] += 1
                @counts[:failed] += 1
              end
            end

            private

            def settle(node, all)
              id = known_node(node)
              tried = !value("SELECT 1 FROM trials LIMIT 1").nil?
              landed = land(id, all)
              all.map do |one|
                job = number_of(one.token)
                unless landed.delete([known_queue(one.queue), job])
                  old_run_ended(node, one.queue, one.jid)
                  next false
                end

                entry = entry_of(job) if one.is_a?(Failure) || one.jid.nil?
                jid = one.jid || Wire.jid(entry)
                leave_place(jid, queue_after(one)) if one.queue == QUARANTINE
                yield one, job, entry
                release(one.lock, one.jid) if one.lock
                @woken << one.queue if most.key?(known_queue(one.queue)) # its limit may allow another one now
                push(one.pushes) if one.is_a?(Ack) && one.pushes
                note_outcome(node, one, jid)
                note_end(one, jid) if tried
                true
              end
            end

            # @return [Hash{Array(Integer, Integer) => true}] queues and jobs that were in flight, and are not any more
            def land(node, all)
              return {} unless node

              all.group_by { |one| known_queue(one.queue) }.each_with_object({}) do |(queue, some), landed|
                next unless queue

                rows(LAND, node, queue, "[#{some.filter_map { |one| number_of(one.token) }.join(",")}]")
                  .each { |job,| landed[[queue, job]] = true }
              end
            end

            def queue_after(one) = one.is_a?(Failure) && one.to == :queue ? one.new_queue || one.queue : nil

            def put(failure, job, entry)
              new = failure.new_entry || entry
              job = rewritten(job, entry, text(new))
              case failure.to
              when :queue then line_up(failure.new_queue || failure.queue, job, new, place: next_in_front)
              when :dead then put_into(:dead, job, new, now)
              else put_into(failure.to, job, new, now + (failure.delay || 0))
              end
            end

            def note_outcome(node, one, jid)
              event = one.event || (Event.new(kind: :done) if one.is_a?(Ack) && jid && history?(jid))
              note(jid, event, node) if event
            end

            def note_end(one, jid)
              queued = one.is_a?(Failure) && one.to == :queue
              if queued && one.died
                run("UPDATE trials SET deaths = deaths + 1 WHERE jid = ?", text(one.jid))
              elsif one.jid || !queued
                run("DELETE FROM trials WHERE jid = ?", text(jid))
              end
            end
          end
          private_constant :Outcomes
        end
      end
    end
  end
end
