# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # Serves the pages by Puma, or by another server through the gem rackup, until this process is told to end.
      #
      # @api private
      class Server
        # Few people look at pages, and each request takes some milliseconds.
        THREADS = 5
        SIGNALS = %w[INT TERM].freeze

        # @param app [#call]
        # @param host [String] an address or a name
        # @param port [Integer] 0: one that is free
        # @raise [ConfigError] there is no server
        def initialize(app, host, port)
          @app = app
          @host = host
          @port = port
          @kind = kind
        end

        # @yieldparam url [String] where the pages are, once they are
        # @return [nil]
        # @raise [SystemCallError] it cannot listen there
        def run(&)
          ended = Thread::Queue.new
          before = SIGNALS.to_h { |name| [name, Signal.trap(name) { ended << name }] }
          @kind == :puma ? with_puma(ended, &) : with_rackup(ended, &)
          nil
        ensure
          before&.each { |name, handler| Signal.trap(name, handler || "DEFAULT") }
        end

        private

        def kind
          return :puma if found?("puma")
          return :rackup if found?("rackup")

          raise ConfigError, "there is no web server here: add gem \"puma\" to the Gemfile, or run Ringspun::Jobs::Web in one " \
                             "of yours"
        end

        def found?(name)
          require name
          true
        rescue LoadError
          false
        end

        def url(port) = "http://#{@host.include?(":") ? "[#{@host}]" : @host}:#{port}/"

        def with_puma(ended)
          server = ::Puma::Server.new(@app, nil, min_threads: 0, max_threads: THREADS, log_writer: ::Puma::LogWriter.stdio)
          server.add_tcp_listener(@host, @port)
          server.run
          yield url(server.connected_ports.first)
          ended.pop
        ensure
          server&.stop(true)
        end

        def with_rackup(ended)
          handler = handler_of_rackup
          serving = Thread.new { handler.run(@app, Host: @host, Port: @port) }
          serving.report_on_exception = false
          waiting = Thread.new do
            serving.join
          ensure
            ended << nil # also where it fails, as on a port that is taken
          end
          waiting.report_on_exception = false
          yield url(@port)
          handler.shutdown if ended.pop && handler.respond_to?(:shutdown)
          serving.join
        end

        def handler_of_rackup
          ::Rackup::Handler.default
        rescue LoadError => error
          raise ConfigError, "rackup has found no web server: #{error.message}; add gem \"puma\" to the Gemfile"
        end
      end
      private_constant :Server
    end
  end
end
