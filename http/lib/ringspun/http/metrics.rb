# frozen_string_literal: true

module Ringspun
  module HTTP
    # What monitoring reads, in the text format of Prometheus: requests by the class of their status and by what has become of
    # them, how long they took, bytes, connections, and requests that are being served. The numbers are those of all workers
    # together, and go on when a worker is replaced, where it was made before they were forked.
    #
    #   metrics = Ringspun::HTTP::Metrics.new
    #   Ringspun::HTTP.run(app, listen: ["0.0.0.0", 9292], metrics:) # and `run metrics` under some path of a config.ru
    #
    # It is a program for Rack, which answers with {#text}. `metrics: "/metrics"` puts it in front of the program.
    #
    # See https://prometheus.io/docs/instrumenting/exposition_formats/
    #
    # @since 0.1.0
    class Metrics
      CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
      # The upper limits of the histogram's buckets, in seconds: those that Prometheus' clients have, and some below them.
      LIMITS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10].freeze
      STATUSES = %w[none 1xx 2xx 3xx 4xx 5xx].freeze
      ENDS = %i[answered refused failed timed_out gone cancelled hijacked upgraded].freeze
      private_constant :CONTENT_TYPE, :LIMITS, :STATUSES, :ENDS

      # The places of the totals among the counters, in order.
      OF_ENDS = STATUSES.size
      OF_BUCKETS = OF_ENDS + ENDS.size
      MICROSECONDS = OF_BUCKETS + LIMITS.size + 1
      SENT = MICROSECONDS + 1
      RECEIVED = SENT + 1
      CONNECTIONS = RECEIVED + 1
      # The gauges.
      OPEN = 0
      IN_FLIGHT = 1
      private_constant :OF_ENDS, :OF_BUCKETS, :MICROSECONDS, :SENT, :RECEIVED, :CONNECTIONS, :OPEN, :IN_FLIGHT

      # @since 0.1.0
      def initialize
        @counters = Counters.new(CONNECTIONS + 1)
        here
      end

      # Called in each process that serves.
      #
      # @return [self]
      # @api private
      def here
        @counters.claim
        self
      end

      # Counts a connection that begins.
      #
      # @api private
      def connected
        @counters.add(CONNECTIONS, 1)
        @counters.move(OPEN, 1)
      end

      # It has ended.
      #
      # @api private
      def disconnected = @counters.move(OPEN, -1)

      # @param _exchange [Exchange]
      # @api private
      def began(_exchange) = @counters.move(IN_FLIGHT, 1)

      # @param exchange [Exchange]
      # @api private
      def ended(exchange)
        @counters.move(IN_FLIGHT, -1)
        seconds = exchange.seconds
        @counters.add(class_of(exchange.status), 1)
        @counters.add(OF_ENDS + ENDS.index(exchange.happened), 1)
        @counters.add(OF_BUCKETS + (LIMITS.index { |limit| seconds <= limit } || LIMITS.size), 1)
        @counters.add(MICROSECONDS, (seconds * 1_000_000).round)
        @counters.add(SENT, exchange.bytes)
        @counters.add(RECEIVED, exchange.bytes_received)
      end

      # For Rack.
      #
      # @param env [Hash{String => Object}]
      # @return [Array(Integer, Hash{String => String}, Array<String>)]
      # @since 0.1.0
      def call(env)
        unless %w[GET HEAD].include?(env["REQUEST_METHOD"])
          return [405, { "content-type" => "text/plain", "allow" => "GET, HEAD" }, ["GET it\n"]]
        end

        [200, { "content-type" => CONTENT_TYPE }, env["REQUEST_METHOD"] == "HEAD" ? [] : [text]]
      end

      # @param app [#call]
      # @param path [String]
      # @return [#call] a program that gives the metrics at that path, and is the other one elsewhere
      # @api private
      def in_front_of(app, path) = ->(env) { env["PATH_INFO"] == path ? call(env) : app.call(env) }

      # @return [String] in the text format of Prometheus
      # @since 0.1.0
      def text
        [family("requests_total", "counter", "Requests, by the class of the answer's status.", by("status", STATUSES, 0)),
         family("requests_ended_total", "counter", "Requests, by what has become of them.", by("happened", ENDS, OF_ENDS)),
         histogram,
         single("response_body_bytes_total", "counter", "Bytes of the bodies of answers.", total(SENT)),
         single("request_body_bytes_total", "counter", "Bytes of the bodies of requests.", total(RECEIVED)),
         single("connections_total", "counter", "Connections that have begun.", total(CONNECTIONS)),
         single("connections", "gauge", "Connections that are open.", gauge(OPEN)),
         single("requests_in_flight", "gauge", "Requests that are being served.", gauge(IN_FLIGHT))].join
      end

      private

      def class_of(status)
        number = status.to_i / 100
        number < STATUSES.size ? number : 0
      end

      def total(number) = @counters.total(number)

      # Another process may have counted between the two that are subtracted.
      def gauge(number) = [@counters.gauge(number), 0].max

      def by(label, values, first) = values.each_with_index.map { |value, at| ["{#{label}=\"#{value}\"}", total(first + at)] }

      # Each bucket has what is in those before it as well.
      def histogram
        count = 0
        samples = [*LIMITS, "+Inf"].each_with_index.map do |limit, at|
          ["_bucket{le=\"#{limit}\"}", count += total(OF_BUCKETS + at)]
        end
        samples.push(["_sum", total(MICROSECONDS) / 1_000_000.0], ["_count", count])
        family("request_duration_seconds", "histogram", "From the head of a request to the end of its answer.", samples)
      end

      def single(name, type, help, value) = family(name, type, help, [["", value]])

      def family(name, type, help, samples)
        name = "ringspun_http_#{name}"
        "# HELP #{name} #{help}\n# TYPE #{name} #{type}\n#{samples.map { |more, value| "#{name}#{more} #{value}\n" }.join}"
      end
    end
  end
end
