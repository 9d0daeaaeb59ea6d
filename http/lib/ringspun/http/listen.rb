# frozen_string_literal: true

module Ringspun
  module HTTP
    class << self
      # Listens on an address, and serves a program for Rack there, until the server is stopped or the surrounding run is
      # cancelled. Returns at once.
      #
      # A server that stops says `connection: close` with its answers. A connection without a request has some seconds for one
      # more, which may be on its way. Answers that go on are cut when {Server#stop} says so, but for those of {SSE}, which end.
      #
      # May switch strands.
      #
      # @param app [#call] a program for Rack; it runs in a strand for each connection
      # @param host [String] an address or a name
      # @param port [Integer, String] 0: a free one, see {Server#port}
      # @param errors [#puts] gets what goes wrong in the program: `rack.errors`
      # @param limits [Hash{Symbol => Numeric, nil}] bytes: `line_max:` of a request line, `head_max:`, `body_max:`; `fields_max:`
      #   of a head, `name_max:` bytes of a name; seconds, nil for no limit: `first_byte:` until the first request of a connection
      #   comes, `keep_alive:` until the next one, `head:` for all of its head, `body:` between two pieces of its body, `write:`
      #   until a client takes some of what waits for it, `leaving:` for one more request of a connection that has none when the
      #   server stops; `body_rate:` bytes a second that a body has on the average after its first ten seconds, 0 for any
      # @param request_timeout [Numeric, #call, nil] seconds for all of an answer, or what has them for an env; then the strand of
      #   the program is cancelled, with those that it has spun in the scope of the request, `env["ringspun.scope"]`, and the
      #   client gets a 503, or sees the answer cut. nil: no limit, and no such scope
      # @param max_requests [Integer, nil] requests that are answered at the same time, long answers included; those above are
      #   refused with a 503 and `retry-after`. The body of each has come before, in a file in `TMPDIR` where it has more than
      #   64 KB. nil: no limit but that of connections
      # @param early_hints [Boolean] whether programs have `rack.early_hints`. Some clients and proxies of HTTP/1.1 take a 103 for
      #   the answer
      # @param tls [Hash, OpenSSL::SSL::SSLContext, nil] see {TLS.server_context}; files that have changed are read anew
      # @param access_log [AccessLog, Symbol, #call, nil] a line for each request: one of {AccessLog#initialize}'s formats, to the
      #   standard output; nil: none
      # @param metrics [Metrics, String, nil] what counts, or a path at which {Metrics} are to be had; nil: nothing is counted
      # @param tracing [Boolean, nil] a span of OpenTelemetry for each request; nil: where its SDK is loaded
      # @param proxy_protocol [Array<String>, String, nil] addresses and networks of proxies that send a PROXY header before the
      #   first byte of their client, versions 1 and 2, and must; "unix": those that come by a Unix socket
      # @param options those of {Ringspun.listen_tcp}
      # @return [Server]
      # @raise [UsageError, SystemCallError, SocketError]
      # @since 0.1.0
      def listen(app, host, port, errors: $stderr, limits: {}, request_timeout: nil, max_requests: nil, early_hints: false,
                 tls: nil, access_log: nil, metrics: nil, tracing: nil, proxy_protocol: nil, **options)
        serving = Serving.new(errors:, limits:, request_timeout:, max_requests:, early_hints:, access_log:, metrics:, tracing:,
                              proxy_protocol:)
        raise UsageError, "metrics: takes a path here, got #{metrics.inspect}" unless serving.metrics_places.empty?

        reception = serving.begin(app).reception(tls, options)
        Ringspun.listen_tcp(host, port, **reception.options) { |stream| reception.call(stream) }
      end

      # Serves a program for Rack from workers, each a process with a machine of its own, until a signal ends them. See
      # {Cluster.run}: TERM and INT drain, HUP replaces the workers without a request that fails. A worker that drains does as
      # {listen} says of a server that stops. It waits for the sockets that programs have taken by `rack.hijack`, up to `drain:`.
      #
      # @param app [#call, nil] a program for Rack; nil: the block makes one in each worker, so that a reload loads its code anew
      # @param listen [Array(String, Integer), String, Socket, Array, Hash] a host and a port, the path of a Unix socket,
      #   "tcp://HOST:PORT", "ssl://HOST:PORT?cert=FILE&key=FILE", "unix://PATH", "systemd://" or "systemd://NAME" for sockets
      #   that were handed in, several of these, or a Hash of names and these
      # @param errors [#puts] see {listen}
      # @param limits [Hash{Symbol => Numeric, nil}] see {listen}
      # @param request_timeout [Numeric, #call, nil] see {listen}
      # @param max_requests [Integer, nil] see {listen}; in each worker
      # @param early_hints [Boolean] see {listen}
      # @param tls [Hash, OpenSSL::SSL::SSLContext, nil] see {listen}; places that are tcp:// or unix:// do without it
      # @param access_log [AccessLog, Symbol, #call, nil] see {listen}
      # @param metrics [Metrics, String, nil] see {listen}; or a place as in `listen`, where there is nothing else
      # @param tracing [Boolean, nil] see {listen}
      # @param proxy_protocol [Array<String>, String, nil] see {listen}
      # @param max_connections [Integer] in each worker; the next ones are left to others, or wait in the kernel
      # @param options those of {Cluster.run}, as `workers: 0` for this process alone
      # @yieldreturn [#call]
      # @return [nil] when all workers have drained
      # @raise [ClusterError, UsageError, SystemCallError, SocketError]
      # @since 0.1.0
      def run(app = nil, listen:, errors: $stderr, limits: {}, request_timeout: nil, max_requests: nil, early_hints: false,
              tls: nil, access_log: nil, metrics: nil, tracing: nil, proxy_protocol: nil,
              max_connections: Limits::CONNECTIONS, **options, &make)
        raise UsageError, "HTTP.run needs a program, or a block that makes one" unless app || make

        places = Places.of(listen, tls:)
        places.each_value { |place| FreshContext.of(place.tls, nil) } # what is wrong with a certificate is said here
        serving = Serving.new(errors:, limits:, request_timeout:, max_requests:, early_hints:, access_log:, metrics:, tracing:,
                              proxy_protocol:)
        serve_in_workers(app || make, places, serving, max_connections, options, make: app.nil?)
      end

      private

      # @param app [#call] the program, or what makes one
      # @yieldparam worker [Cluster::Worker]
      # @yieldparam servers [Array<Server>] its own, which listen
      def serve_in_workers(app, places, serving, max_connections, options, make: false)
        max_connections = Limits.connections(max_connections)
        all = places.merge(serving.metrics_places).transform_values(&:at)
        Cluster.run(listen: all, **options) do |worker|
          serving.begin(make ? app.call : app)
          servers = serving.receptions(places, { max_connections: }).map do |name, reception|
            worker.serve(name, **reception.options) { |stream| reception.call(stream) }
          end
          yield worker, servers if block_given?
          servers.each(&:wait) # until all connections have ended
          serving.service.drain.wait_for_lent # and programs have closed the sockets that they have taken
        ensure
          Ringspun.shield { serving.flush }
        end
      end
    end
  end
end
