# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The steps of a search: through the jobs of a place in their order there.
        #
        # @api private
        module Search
          include Searching

          private

          def places_of(kinds, queues, connection)
            all, flights = read(connection) { |tables| [tables.queues, tables.flights] }
            queues.map { |queue| Place.new(:queue, queue) } + kinds.flat_map do |kind|
              case kind
              when :queue then all.map { |queue| Place.new(:queue, queue) }
              when :in_flight then flights.map { |queue, node| Place.new(:in_flight, queue, node) }
              else [Place.new(kind)]
              end
            end
          end

          def examine(place, position, count, needle, connection)
            names = place.kind == :queue || place.kind == :in_flight ? [place.queue, *place.part] : [place.kind]
            looked, last, jobs = read(connection) { |tables| tables.look(names, position, count, needle) }
            found = jobs.map do |job, entry, at|
              Found.new(place.kind, place.queue, place.part, job.to_s, entry, at)
            end
            [found, looked, last]
          rescue ::Extralite::ParameterError, TypeError
            raise ArgumentError, "that is no cursor of a page"
          end
        end
        private_constant :Search
      end
    end
  end
end
