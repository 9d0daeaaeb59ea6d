# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # What nodes have in flight.
          #
          # @api private
          module Flight
            # @return [Array<Fetched>] see {Storage#fetch}
            def fetch(name, queues, max, limits)
              node = register(name)
              paused = paused_queues
              queues.each_with_object([]) do |queue, fetched|
                id = known_queue(queue)
                next if id.nil? ? !limits[queue] : paused.include?(id)

                id ||= queue_id(queue)
                room = max - fetched.size
                limit(id, limits[queue])
                room = [room, room_of(node, id, limits[queue])].min if limits[queue]
                take_some(node, id, queue, room, fetched) if room.positive?
              end
            end

            # Whether a fetch may find something. Needs no turn to write.
            #
            # @return [Boolean]
            def anything?(name, queues)
              return true unless value("SELECT 1 FROM nodes WHERE name = ? AND listed", text(name))

              queues.any? do |queue|
                value("SELECT 1 FROM queues WHERE name = ? AND NOT paused AND " \
                      "EXISTS (SELECT 1 FROM ready WHERE ready.queue = queues.id)", text(queue))
              end
            end

            # @return [Array<Fetched>]
            def in_flight(name)
              rows("SELECT queues.name, entry, job FROM flight JOIN jobs ON jobs.id = job JOIN queues ON queues.id = queue " \
                   "WHERE node = (SELECT id FROM nodes WHERE name = ?) ORDER BY queue, number", text(name))
                .map { |queue, entry, job| Fetched.new(queue, entry, job.to_s) }
            end

            private

            def paused_queues = rows("SELECT id FROM queues WHERE paused").flatten

            def take_some(node, queue, name, room, fetched)
              jobs = rows("SELECT job, entry, priority, place FROM ready JOIN jobs ON jobs.id = job WHERE queue = ? " \
                          "ORDER BY priority, place LIMIT ?", queue, room)
              return if jobs.empty?

              number = next_number(jobs.size)
              run_all("INSERT INTO flight (job, node, queue, number) VALUES (?, ?, ?, ?)",
                      jobs.each_with_index.map { |(job, _), index| [job, node, queue, number + index] })
              jobs.each { |job, entry| fetched << Fetched.new(name, entry, job.to_s) }
              run("DELETE FROM ready WHERE queue = ? AND (priority, place) <= (?, ?)", queue, *jobs.last.last(2))
              @grown[queue] -= jobs.size
            end

            def flies?(name, queue, token)
              number = number_of(token)
              !value("SELECT 1 FROM flight WHERE job = ? AND node = ? AND queue = ?", number, known_node(name),
                     known_queue(queue)).nil?
            end
          end
          private_constant :Flight
        end
      end
    end
  end
end
