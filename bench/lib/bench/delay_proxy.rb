# frozen_string_literal: true

require "bench/workspace"
require "bench/floor_program"
require "bench/postgres_server"

module Bench
  # The private Postgres as if it were elsewhere: behind bench/floor/delay_proxy.c, in a process of its own.
  module DelayProxy
    ROUND_TRIP = 0.00065

    # Yields the options of a connection through it.
    def self.during
      server = PostgresServer.start
      program = [FloorProgram.new("delay_proxy.c").path, (ROUND_TRIP * 1_000_000).round.to_s, server.socket]
      IO.popen(program, "r+") do |proxy|
        port = Integer(proxy.gets || raise("the proxy did not start"))
        yield({ **server.options, host: "127.0.0.1", port:, sslmode: "disable" })
      end
    end
  end
end
