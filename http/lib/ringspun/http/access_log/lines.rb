# frozen_string_literal: true

module Ringspun
  module HTTP
    class AccessLog
      # The forms of a line. What a client sends can end no line, and no field of one: all but printable ASCII is escaped.
      #
      # @api private
      module Lines
        # 203.0.113.7 - ada [29/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 6 0.000412
        #
        # The form of the Common Log Format, with the seconds that the request has taken, and what has become of it unless it was
        # answered. See https://httpd.apache.org/docs/current/logs.html#common
        class Common
          def call(exchange)
            LogLine.common(more?, exchange.env, time, exchange.client, exchange.status, exchange.bytes, exchange.seconds,
                           exchange.happened)
          end

          private

          def more? = false

          # All lines of a second share it.
          def time
            second = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
            return @time if second == @second

            @second = second
            @time = Time.at(second).strftime("%d/%b/%Y:%H:%M:%S %z")
          end
        end

        # The same, with where the client comes from and what it is, as it says itself.
        class Combined < Common
          private

          def more? = true
        end

        # {"time":"2026-11-29T09:00:00.000Z","client":"203.0.113.7","method":"GET","path":"/",...}
        class JSON
          def call(exchange)
            LogLine.json(exchange.env, Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond), Process.pid, exchange.client,
                         exchange.route, exchange.status, exchange.bytes, exchange.bytes_received, exchange.seconds,
                         exchange.happened, exchange.error&.class&.name)
          end
        end
      end
      private_constant :Lines
    end
  end
end
