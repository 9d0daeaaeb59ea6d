# frozen_string_literal: true

require "bench/postgres_server"
require "bench/tls_clients"
require File.join(Bench::ROOT, "runtime/test/support/free_port")

module Bench
  # One more private PostgreSQL cluster, reached over TCP with TLS, for PostgreSQL has no TLS on Unix sockets.
  class TlsPostgresServer < PostgresServer
    # Yields the options of a connection.
    def self.during = yield(start.options)

    def self.variable = "BENCH_TLS_POSTGRES"

    # Key and certificate are in one file. A relative path would be meant from the server's data on.
    def self.run_anew
      tls = { listen_addresses: "127.0.0.1", port: FreePort.find, ssl: "on", ssl_cert_file: "../tls.pem",
              ssl_key_file: "../tls.pem" }
      Servers.postgres(:"bench-tls-postgres", **SETTINGS, **tls) do |server, _|
        server.write("tls.pem", File.read(TlsClients.pem))
      end
    end
    private_class_method :variable, :run_anew

    # The line of postmaster.pid that has the port: https://github.com/postgres/postgres/blob/REL_17_STABLE/src/include/utils/pidfile.h
    PORT_LINE = 3
    private_constant :PORT_LINE

    def options
      port = Integer(File.readlines(File.join(@folder, "data/postmaster.pid"))[PORT_LINE], 10)
      { **super, host: "127.0.0.1", port:, sslmode: "require" }
    end
  end
end
