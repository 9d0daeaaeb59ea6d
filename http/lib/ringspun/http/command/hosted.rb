# frozen_string_literal: true

module Ringspun
  module HTTP
    class Command
      # A server that rackup or Rails has started with more words than a host and a port: this process, or workers, as {HTTP.run}
      # has them. The program is loaded already, so that HUP replaces workers with the same one.
      #
      # @api private
      class Hosted
        # @param app [#call]
        # @param rackup [Rackup]
        # @param restart [String, nil] the command that starts it anew; nil: it is never
        # @param out [IO, nil] is told where it listens
        def initialize(app, rackup, restart: nil, out: nil)
          @app = app
          @rackup = rackup
          @restart = restart
          @out = out
          @pid = Process.pid
        end

        # @yieldparam server [Server] the first one of this process, once it listens
        # @return [nil] when all connections have ended
        # @raise [SystemCallError, SocketError, UsageError]
        # @raise [SystemExit] with status 1: something had to be cut or killed
        def run(&)
          options = @rackup.options
          places = Places.of(@rackup.places, tls: options[:tls])
          with_signals(options[:access_log]) { serve(places, options, &) }
          exec(@restart) if @starts_anew
        rescue UsageError => error
          raise UsageError, @rackup.located(error.message)
        rescue ClusterError => error
          $stderr.puts("ringspun-http: #{error.message}")
          @starts_anew ? exec(@restart) : exit(1)
        end

        # May be called by a handler of a signal.
        #
        # @return [nil]
        def stop
          Process.kill(:TERM, Process.pid)
          nil
        end

        private

        def serve(places, options)
          of_cluster = options.slice(*Words.of_cluster - [:listen])
          rest = options.except(:tls, :max_connections, *of_cluster.keys)
          serving = Serving.new(errors: $stderr, limits: {}, **rest)
          most = options.fetch(:max_connections, Limits::CONNECTIONS)
          HTTP.__send__(:serve_in_workers, @app, places, serving, most, of_cluster) do |worker, servers|
            begun(worker, places)
            yield servers.first if block_given? && worker.pid == @pid
          end
        end

        # One of them says it for all.
        def begun(worker, places)
          return unless worker.index.zero?

          RestartFile.watch(Machine.current, $stderr) { start_anew } if @restart
          return unless worker.restarts.zero? && @out

          telling = Telling.new(@out)
          places.each { |name, place| telling.say("* Listening on #{url(worker.address(name), place.tls)}") }
        end

        def url(address, tls) = address.unix? ? "unix://#{address.unix_path}" : "http#{"s" if tls}://#{address.inspect_sockaddr}"

        def with_signals(log)
          before = { "USR1" => trap("USR1") { log.reopen if log.respond_to?(:reopen) } }
          before["USR2"] = trap("USR2") { start_anew } if @restart
          yield
        ensure
          before&.each { |name, handler| trap(name, handler || "SYSTEM_DEFAULT") }
        end

        # Workers inherit the handler, and ask this process.
        def start_anew
          return Process.kill(:USR2, @pid) unless Process.pid == @pid

          @starts_anew = true
          stop
        rescue Errno::ESRCH # that process is gone, and this one drains
          nil
        end
      end
      private_constant :Hosted
    end
  end
end
