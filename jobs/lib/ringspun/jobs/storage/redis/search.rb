# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The steps of a search. Each is a script that looks at some entries and returns those which may match: so few bytes come
        # here, and other clients of the server wait only for a step.
        #
        # A set is looked through by ZSCAN, which gives all that was there from the first step to the last:
        # https://redis.io/docs/latest/commands/scan/#scan-guarantees
        # A queue is looked through from its newest job on. New ones shift the others, which are then seen twice. Those that are
        # fetched meanwhile shift none. Of what a node has in flight each list is looked at in one step, for its jobs are taken
        # out from anywhere.
        #
        # @api private
        module Search
          include Searching

          # The most entries in a step.
          STEP = 1000
          # The bytes at which a step ends before that.
          STEP_BYTES = 4 * 1024 * 1024

          private

          def places_of(kinds, queues, connection)
            queues |= self.queues(connection:) if kinds.include?(:queue)
            places = (kinds & SETS).map { |set| Place.new(set) } + places_in_queues(queues, connection)
            kinds.include?(:in_flight) ? places + places_in_flight(connection) : places
          end

          # The lists of a queue, one for each priority.
          def places_in_queues(queues, connection)
            return [] if queues.empty?

            commands = queues.map { |queue| ["ZRANGE", key("ringspun:levels:#{queue}"), 0, -1] }
            levels = use(connection) { |one| repeat(one, commands) }
            queues.zip(levels).flat_map { |queue, some| [nil, *some].map { |level| Place.new(:queue, queue, level) } }
          end

          def places_in_flight(connection)
            use(connection) do |one|
              nodes = repeat(one, [["SMEMBERS", key("ringspun:nodes")]]).first
              queues = nodes.empty? ? [] : repeat(one, nodes.map { |node| ["SMEMBERS", key("ringspun:lists:#{node}")] })
              nodes.zip(queues).flat_map { |node, some| some.map { |queue| Place.new(:in_flight, queue, node) } }
            end
          end

          def examine(place, position, count, needle, connection)
            how, where = case place.kind
                         when :queue then ["queue", key_of_part(place.queue, place.part)]
                         when :in_flight then ["list", backup(place.part, place.queue)]
                         else ["set", key(place.kind.name)]
                         end
            command = Script[:examine].command(@prefix, how, where, position || 0, [count, STEP].min, STEP_BYTES, needle)
            looked, position, found = call(connection, command, again: true)
            [found.each_slice(2).map { |entry, at| found_at(place, entry, at) }, looked, position]
          end

          def key_of_part(queue, level) = key(level ? "ringspun:priority:#{level}:#{queue}" : "queue:#{queue}")

          def found_at(place, entry, at)
            node = place.part if place.kind == :in_flight
            Found.new(place.kind, place.queue, node, entry, entry, (at.to_f unless at.empty?))
          end
        end
        private_constant :Search
      end
    end
  end
end
