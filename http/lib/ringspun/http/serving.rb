# frozen_string_literal: true

module Ringspun
  module HTTP
    # What serves a program, apart from the places where it does: the service, those who look on, and how connections begin. It is
    # made before workers are forked, and begun in each.
    #
    # @api private
    class Serving
      # @return [Hash{Object => Places::Place}] where the metrics alone are served
      attr_reader :metrics_places

      # @return [Service] once it has begun
      attr_reader :service

      # @param errors [#puts] see {HTTP.listen}, as all of these
      # @param options [Hash] those of {Service#initialize}
      # @raise [UsageError]
      def initialize(errors:, limits:, access_log: nil, metrics: nil, tracing: nil, proxy_protocol: nil, **options)
        @errors = errors
        @telling = Telling.new(errors)
        @limits = limits
        @options = options
        check(**options)
        @log = AccessLog.of(access_log)
        take_metrics(metrics)
        @tracing = truth(:tracing, tracing)
        @proxy = ProxyProtocol.of(proxy_protocol, @telling, seconds: Limits.of(limits)[:head] || Limits::USUAL[:head])
      end

      # Called in the process that serves.
      #
      # @param app [#call]
      # @return [self]
      # @raise [UsageError]
      def begin(app)
        @metrics&.here
        framed = Frameworks.around(app, @telling)
        has_turns = !framed.equal?(app)
        framed = @metrics.in_front_of(framed, @path) if @path
        watchers = [Tracing.of(@tracing), @metrics, @log].compact
        @service = Service.new(framed, errors: @errors, limits: @limits, watchers:, has_turns:, **@options)
        self
      end

      # @param tls [Hash, OpenSSL::SSL::SSLContext, nil]
      # @param options [Hash] those of {Server#initialize}
      # @return [Reception]
      def reception(tls, options)
        Reception.new(@service, tls: FreshContext.of(tls, @telling), proxy: @proxy, metrics: @metrics, options:)
      end

      # @param places [Hash{Object => Places::Place}]
      # @param options [Hash] those of {Server#initialize}
      # @return [Hash{Object => Reception}] for these, and for those of the metrics
      def receptions(places, options)
        alone = Reception.new(Service.new(@metrics, errors: @errors, limits: @limits), options:) if @metrics_places.any?
        places.transform_values { |place| reception(place.tls, options) }
              .merge(@metrics_places.transform_values { alone })
      end

      # May switch strands.
      def flush = @log&.flush

      private

      # Said here, and not by each worker again.
      def check(request_timeout: nil, max_requests: nil, early_hints: false)
        Deadlines.new(request_timeout)
        Limits.requests(max_requests)
        truth(:early_hints, early_hints)
      end

      def truth(name, value)
        return value if [true, false, nil].include?(value)

        raise UsageError, "#{name}: is true or false, got #{value.inspect}"
      end

      # A path in front of the program, places of their own, or what a program has made itself.
      def take_metrics(what)
        @metrics_places = {}
        return @metrics = what if what.nil? || what.is_a?(Metrics)

        @metrics = Metrics.new
        return @path = what if what.is_a?(String) && what.match?(%r{\A/[^:]*\z})

        @metrics_places = Places.of({ ringspun_metrics: what }, word: "metrics")
      end
    end
    private_constant :Serving
  end
end
