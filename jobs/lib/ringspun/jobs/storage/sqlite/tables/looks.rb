# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # The steps of a search, see {Searching}: through the jobs of a place in their order there. What cannot fit is left out
          # before it becomes a String of Ruby.
          #
          # @api private
          module Looks
            # By kinds of places: the narrow rows behind a position, the columns of a position, and the first one.
            PARTS = {
              queue: ["SELECT job, NULL AS at, priority, place FROM ready WHERE queue = (SELECT id FROM queues WHERE name = ?) " \
                      "AND (priority, place) > (?, ?) ORDER BY priority, place", "priority, place", [-1 << 62, 0]],
              in_flight: ["SELECT job, NULL AS at FROM flight WHERE queue = (SELECT id FROM queues WHERE name = ?) " \
                          "AND node = (SELECT id FROM nodes WHERE name = ?) AND job > ? ORDER BY job", "job", [0]],
              set: ["SELECT job, at FROM sets WHERE kind = ? AND (at, job) > (?, ?) ORDER BY at, job", "at, job",
                    [-Float::INFINITY, 0]]
            }.freeze
            # How many rows there are up to a limit, the position of the last, and those that have a text in their entries.
            LOOKS = PARTS.transform_values do |rows, columns, _|
              ["SELECT count(*) FROM (#{rows} LIMIT ?)".freeze,
               "SELECT #{columns} FROM (#{rows} LIMIT 1 OFFSET ?)".freeze,
               "SELECT job, entry, at FROM (#{rows} LIMIT ?) AS part CROSS JOIN jobs ON jobs.id = job " \
               "WHERE instr(entry, ?)".freeze]
            end.freeze
            private_constant :PARTS, :LOOKS

            # @return [Array<Array(String, String)>] queues and nodes
            def flights
              rows("SELECT DISTINCT queues.name, nodes.name FROM flight JOIN queues ON queues.id = queue " \
                   "JOIN nodes ON nodes.id = node")
            end

            # @param names [Array<String, Symbol>] of the place: a queue; a queue and a node; or a set
            # @param position [Array, nil] behind which to look; nil: from the beginning
            # @param count [Integer] how many to look at
            # @param needle [String]
            # @return [Array(Integer, Array, Array<Array>)] how many it has looked at; the position of the last one, nil: there
            #   are no more; and number, entry and time of each that has the needle
            def look(names, position, count, needle)
              kind, names = if names.first.is_a?(Symbol) then [:set, [kind_of(names.first)]]
                            else [names.one? ? :queue : :in_flight, names.map { |name| text(name) }]
                            end
              how_many, last, found = LOOKS.fetch(kind)
              behind = [*names, *(position || PARTS.fetch(kind).last)]
              looked = value(how_many, *behind, count)
              [looked, (row(last, *behind, count - 1) if looked == count), rows(found, *behind, count, text(needle))]
            end
          end
          private_constant :Looks
        end
      end
    end
  end
end
