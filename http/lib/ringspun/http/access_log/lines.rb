# frozen_string_literal: true

require "json"

module Ringspun
  module HTTP
    class AccessLog
      # The forms of a line. What a client sends can end no line, and no field of one: all but printable ASCII is escaped.
      #
      # @api private
      module Lines
        # What could be taken for the end of a field or a line, or for something that a terminal obeys.
        UNSAFE = /[^\x20\x21\x23-\x5b\x5d-\x7e]/n
        NOTHING = {}.freeze
        private_constant :UNSAFE, :NOTHING

        module_function

        # @param text [#to_s] programs put a number into REMOTE_USER as well
        # @return [String] "-" for none
        def safe(text)
          text = text.to_s
          return "-" if text.empty?
          return text if text.ascii_only? && !text.match?(UNSAFE)

          text.b.gsub(UNSAFE) { |byte| format("\\x%02x", byte.ord) }.force_encoding(Encoding::US_ASCII)
        end

        # @param exchange [Exchange]
        # @return [String] the request line; "-" for what was none
        def request(exchange)
          env = exchange.env or return "-"
          safe("#{env["REQUEST_METHOD"]} #{env["REQUEST_URI"]} #{env["SERVER_PROTOCOL"]}")
        end

        # 203.0.113.7 - ada [29/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 6 0.000412
        #
        # The form of the Common Log Format, with the seconds that the request has taken, and what has become of it unless it was
        # answered. See https://httpd.apache.org/docs/current/logs.html#common
        class Common
          def call(exchange)
            happened = exchange.happened
            env = exchange.env || NOTHING
            "#{exchange.client} - #{Lines.safe(env["REMOTE_USER"])} [#{time}] \"#{Lines.request(exchange)}\" " \
              "#{exchange.status || "-"} #{bytes(exchange.bytes)}#{more(env)} #{seconds(exchange.seconds)}" \
              "#{" #{happened.name}" unless happened == :answered}\n"
          end

          private

          def more(_env) = nil

          # As %.6f, which takes twice as long.
          def seconds(seconds)
            whole, micros = (seconds * 1_000_000).round.divmod(1_000_000)
            "#{whole}.#{micros.to_s.rjust(6, "0")}"
          end

          def bytes(count) = count.zero? ? "-" : count

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

          def more(env)
            " \"#{Lines.safe(env["HTTP_REFERER"])}\" \"#{Lines.safe(env["HTTP_USER_AGENT"])}\""
          end
        end

        # {"time":"2026-11-29T09:00:00.000Z","client":"203.0.113.7","method":"GET","path":"/",...}
        class JSON
          FIELDS = { method: "REQUEST_METHOD", path: "REQUEST_URI", protocol: "SERVER_PROTOCOL", host: "HTTP_HOST",
                     referer: "HTTP_REFERER", agent: "HTTP_USER_AGENT", user: "REMOTE_USER" }.freeze
          private_constant :FIELDS

          def call(exchange)
            env = exchange.env || {}
            line = { time:, pid: Process.pid, client: exchange.client }
            FIELDS.each { |name, key| line[name] = clean(env[key]) if env[key] }
            line.update(route: exchange.route && clean(exchange.route), status: exchange.status, bytes: exchange.bytes,
                        received: exchange.bytes_received, seconds: exchange.seconds.round(6), happened: exchange.happened,
                        error: exchange.error && exchange.error.class.name)
            "#{::JSON.generate(line.compact)}\n"
          end

          private

          # All lines of a second share it, up to the milliseconds.
          def time
            second, millisecond = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond).divmod(1000)
            unless second == @second
              @second = second
              @prefix = Time.at(second).utc.strftime("%Y-%m-%dT%H:%M:%S.")
            end
            "#{@prefix}#{millisecond.to_s.rjust(3, "0")}Z"
          end

          # JSON is Unicode. What is not, is shown as it is escaped in the other forms.
          def clean(text)
            text = text.to_s.dup.force_encoding(Encoding::UTF_8)
            text.valid_encoding? ? text : Lines.safe(text)
          end
        end
      end
      private_constant :Lines
    end
  end
end
