# frozen_string_literal: true

module Ringspun
  module HTTP
    # Spans of OpenTelemetry, where its SDK is loaded: a server's for each request, below the one that the client names in
    # `traceparent`. What the program does belongs to it.
    #
    # Names and attributes: https://opentelemetry.io/docs/specs/semconv/http/http-spans/
    #
    # @api private
    class Tracing
      # Methods that a span may be named by; whatever else clients send would be a name without end.
      METHODS = %w[CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE].freeze
      private_constant :METHODS

      # Reads headers where Rack has them.
      module Env
        class << self
          def get(env, name) = env["HTTP_#{name.tr("-", "_").upcase}"]
          def keys(env) = env.keys
        end
      end
      private_constant :Env

      class << self
        # @param wanted [Boolean, nil] nil: where the SDK is loaded
        # @return [Tracing, nil]
        # @raise [UsageError] it is wanted and not there
        def of(wanted)
          loaded = defined?(::OpenTelemetry::SDK)
          return if wanted == false || (wanted.nil? && !loaded)
          raise UsageError, "tracing: true needs the gem opentelemetry-sdk, loaded before the server starts" unless loaded

          require "ringspun/opentelemetry"
          new
        end
      end

      def initialize
        @tracer = ::OpenTelemetry.tracer_provider.tracer("ringspun-http", VERSION)
      end

      # @param exchange [Exchange]
      def began(exchange)
        return if (env = exchange.env).empty?

        above = ::OpenTelemetry.propagation.extract(env, getter: Env)
        span = @tracer.start_span(name_of(env), with_parent: above, kind: :server, attributes: of_request(env))
        context = ::OpenTelemetry::Trace.context_with_span(span, parent_context: above)
        exchange.span = [span, ::OpenTelemetry::Context.attach(context)]
      end

      # @param exchange [Exchange]
      def ended(exchange)
        span, token = exchange.span
        return unless span

        ::OpenTelemetry::Context.detach(token)
        of_answer(span, exchange)
        span.finish
      end

      private

      # @return [String, nil] nil: another one
      def method_of(env) = METHODS.find { |name| name == env["REQUEST_METHOD"] }

      def name_of(env) = method_of(env) || "HTTP"

      def of_request(env)
        query = env["QUERY_STRING"]
        method = method_of(env)
        { "http.request.method" => method || "_OTHER",
          "http.request.method_original" => (env["REQUEST_METHOD"] unless method),
          "url.path" => utf8(env["PATH_INFO"]), "url.query" => (utf8(query) unless query.empty?),
          "url.scheme" => env["rack.url_scheme"], "server.address" => utf8(env["SERVER_NAME"]),
          "server.port" => env["SERVER_PORT"].to_i, "client.address" => env["REMOTE_ADDR"],
          "network.protocol.version" => env["SERVER_PROTOCOL"].delete_prefix("HTTP/"),
          "user_agent.original" => (utf8(env["HTTP_USER_AGENT"]) if env["HTTP_USER_AGENT"]) }.compact
      end

      def of_answer(span, exchange)
        span.set_attribute("http.response.status_code", exchange.status) if exchange.status
        if (route = exchange.route)
          span.set_attribute("http.route", utf8(route))
          span.name = "#{name_of(exchange.env)} #{utf8(route)}"
        end
        happened = exchange.happened
        return if %i[answered hijacked upgraded refused].include?(happened) && exchange.status.to_i < 500

        failed(span, exchange, happened)
      end

      def failed(span, exchange, happened)
        error = exchange.error
        span.record_exception(error) if error && happened == :failed
        span.set_attribute("error.type", error ? error.class.name : exchange.status.to_s)
        span.status = ::OpenTelemetry::Trace::Status.error(happened == :answered ? "" : happened.name)
      end

      # What a client sends may be in any encoding, and attributes are UTF-8.
      def utf8(text) = text.dup.force_encoding(Encoding::UTF_8).scrub
    end
    private_constant :Tracing
  end
end
