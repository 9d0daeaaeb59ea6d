# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The limits of queues, see {Storage#fetch}.
        #
        # @api private
        module Limits
          # What a job in the quarantine holds of its queue's limit: until when while it waits, and as long as it runs.
          Place = Struct.new(:queue, :waits_until, :running)
          # A run that may go on, until when it counts.
          OldRun = Struct.new(:queue, :ends)
          private_constant :Place, :OldRun

          # (see Storage#losses)
          def losses(node, connection: nil) = synchronize { @losses[node] }

          private

          # @return [Integer] how many more may be in flight now
          def room_of(node, queue, limit)
            @limits[queue] = limit
            return 0 unless alive?(node)

            waiting = @places.each_value.count { |one| one.queue == queue && !one.running && one.waits_until > lasting }
            room(queue, limit, running_of(queue) + waiting)
          end

          def room(queue, limit, taken) = [limit - taken, (2 * limit) - taken - old_runs_of(queue)].min

          def running_of(queue) = in_flight_of(queue) + @places.each_value.count { |one| one.queue == queue && one.running }

          def old_runs_of(queue)
            @old_runs.delete_if { |_, run| run.ends <= lasting }
            @old_runs.each_value.count { |run| run.queue == queue }
          end

          # @param entry [String] of a job in the quarantine
          # @return [Boolean] false: it must not begin yet; then it holds a place, so that it is the next
          def begin_in_place(entry, jid)
            queue = Wire.queue_of(entry)
            place = @places[jid]
            limit = @limits[queue]
            return true if limit.nil? || place&.running

            place = @places[jid] ||= Place.new(queue, 0, false)
            place.running = room(queue, limit, running_of(queue)).positive?
            place.waits_until = lasting + @hold unless place.running
            place.running
          end

          # A job of a dead node goes to the quarantine.
          def keep_place(node, from, entry, jid)
            queue = Wire.queue_of(entry)
            return unless @limits[queue]

            began = from != QUARANTINE || @places[jid]&.running
            @old_runs[[node, from, jid]] = OldRun.new(queue, lasting + @hold) if began
            return @places[jid] ||= Place.new(queue, lasting + @hold, false) if from != QUARANTINE

            stop_in_place(jid)
          end

          # Its first time of waiting goes on.
          def stop_in_place(jid) = @places[jid]&.running = false

          def give_place_back(jid) = @places.delete(jid)&.then { |place| ring(place.queue) }

          # A job has left what is in flight of the quarantine.
          def leave_place(jid, to) = to == QUARANTINE ? stop_in_place(jid) : give_place_back(jid)

          def old_run_ended(node, from, jid) = @old_runs.delete([node, from, jid])&.then { |run| ring(run.queue) }
        end
        private_constant :Limits
      end
    end
  end
end
