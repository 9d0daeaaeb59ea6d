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

          # So many entries in a step.
          STEP = 1000
          # And no more once they have so many bytes.
          STEP_BYTES = 4 * 1024 * 1024

          private

          def places_of(kinds, connection)
            kinds.flat_map do |kind|
              case kind
              when :queue
                call(connection, ["SMEMBERS", key("queues")], again: true).map { |queue| Place.new(:queue, queue) }
              when :in_flight then places_in_flight(connection)
              else [Place.new(kind)]
              end
            end
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
                         when :queue then ["queue", key("queue:#{place.queue}")]
                         when :in_flight then ["list", backup(place.node, place.queue)]
                         else ["set", key(place.kind.name)]
                         end
            command = Script[:examine].command(@prefix, how, where, position || 0, [count, STEP].min, STEP_BYTES, needle)
            looked, position, found = call(connection, command, again: true)
            [found.each_slice(2).map { |entry, at| found_at(place, entry, at) }, looked, position]
          end

          def found_at(place, entry, at)
            Found.new(place.kind, place.queue, place.node, entry, entry, (at.to_f unless at.empty?))
          end
        end
        private_constant :Search
      end
    end
  end
end
