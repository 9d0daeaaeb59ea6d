# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The verbs for administration: they look into the storage, and change what is there.
        #
        # @api private
        module Admin
          # (see Storage#stats)
          def stats(connection: nil)
            synchronize do
              queues = @queues.sort.to_h.transform_values(&:size)
              numbers = [@counts[:processed], @counts[:failed], queues.each_value.sum,
                         *@sets.values_at(:schedule, :retry, :dead).map(&:size),
                         @lists.each_value.sum { |lists| lists.each_value.sum(&:size) }, @lists.size]
              { **STATS.zip(numbers).to_h, queues: queues }
            end
          end

          # (see Storage#list)
          def list(queue, from, count, connection: nil) = synchronize { (@queues[queue] || []).reverse[from, count] || [] }

          # (see Storage#scan)
          def scan(set, from, count, connection: nil)
            synchronize { set(set).sort_by { |entry, at| [at, entry.b] }[from, count] || [] }
          end

          # (see Storage#remove)
          def remove(place, entries, connection: nil)
            synchronize do
              entries.map do |entry|
                next !set(place).delete(entry).nil? if place.is_a?(Symbol)

                index = @queues[place]&.rindex(entry)
                @queues[place].delete_at(index) if index
                !index.nil?
              end
            end
          end

          # (see Storage#retry_now)
          def retry_now(set, entries, connection: nil)
            synchronize do
              all = set(set)
              entries.map { |entry| all.key?(entry) && enqueue(entry) && !all.delete(entry).nil? }
            end
          end

          # (see Storage#counters)
          def counters(processed: 0, failed: 0, connection: nil)
            synchronize do
              @counts[:processed] += processed
              @counts[:failed] += failed
            end
            nil
          end

          # (see Storage#trim_dead)
          def trim_dead(count, seconds, connection: nil)
            synchronize do
              dead = @sets[:dead]
              dead.delete_if { |_, at| at <= now - seconds }
              dead.sort_by { |_, at| -at }.drop(count).each { |entry, _| dead.delete(entry) }
            end
            nil
          end

          # (see Storage#pause)
          def pause(queue, connection: nil)
            synchronize { @paused[queue] = true }
            nil
          end

          # (see Storage#resume)
          def resume(queue, connection: nil)
            synchronize { @paused.delete(queue) }
            nil
          end

          # (see Storage#paused)
          def paused(connection: nil) = synchronize { @paused.keys.sort }

          # (see Storage#risks)
          def risks(connection: nil) = []

          # (see Storage#time)
          def time(connection: nil) = now

          private

          def set(name) = @sets[name] || raise(ArgumentError, "#{name.inspect} is none of #{SETS.map(&:inspect).join(", ")}")
        end
        private_constant :Admin
      end
    end
  end
end
