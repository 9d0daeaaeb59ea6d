# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The verbs that look and mend.
        #
        # @api private
        module Mending
          # (see Storage#list)
          def list(queue, from, count, connection: nil)
            return [] unless count.positive?

            call(connection, ["LRANGE", key("queue:#{queue}"), -(from + count), -(from + 1)], again: true).reverse
          end

          # (see Storage#scan)
          def scan(set, from, count, connection: nil)
            return [] unless count.positive?

            call(connection, ["ZRANGE", key(set.name), from, from + count - 1, "WITHSCORES"], again: true)
          end

          # (see Storage#time)
          def time(connection: nil)
            seconds, microseconds = call(connection, ["TIME"], again: true)
            seconds.to_i + (microseconds.to_i / 1_000_000.0)
          end
        end
      end
    end
  end
end
