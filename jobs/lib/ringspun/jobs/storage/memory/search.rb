# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The steps of a search: through the jobs of a place in the order of their tokens, which are numbers.
        #
        # @api private
        module Search
          include Searching

          private

          def places_of(kinds, queues, _connection)
            queues.map { |queue| Place.new(:queue, queue) } + synchronize do
              kinds.flat_map do |kind|
                case kind
                when :queue then @queues.keys.map { |queue| Place.new(:queue, queue) }
                when :in_flight
                  @lists.flat_map { |node, lists| lists.keys.map { |queue| Place.new(:in_flight, queue, node) } }
                else [Place.new(kind)]
                end
              end
            end
          end

          def examine(place, position, count, needle, _connection)
            left = synchronize { jobs_at(place).select { |job| number(job) > (position || 0) } }
            jobs = left.min_by(count) { |job| number(job) }
            found = jobs.select { |job| job.entry.b.include?(needle.b) }.map do |job|
              Found.new(place.kind, place.queue, place.part, job.token, job.entry, job.at)
            end
            [found, jobs.size, (number(jobs.last) if jobs.size == count)]
          end

          def number(job) = Integer(job.token)

          def jobs_at(place)
            case place.kind
            when :queue then @queues[place.queue] || []
            when :in_flight then @lists.dig(place.part, place.queue) || []
            else @sets[place.kind].values
            end
          end
        end
        private_constant :Search
      end
    end
  end
end
