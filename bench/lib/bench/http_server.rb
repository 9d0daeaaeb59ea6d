# frozen_string_literal: true

require "bench/workspace"
require "bench/floor_program"

module Bench
  # A server that answers after a latency, as a remote service does: bench/floor/http_server.c in a process of its own, so that it
  # is faster than any contender and its cost is not counted.
  class HttpServer
    # Yields the port.
    #
    # @param latency [Float] seconds
    def self.during(latency)
      IO.popen([FloorProgram.new("http_server.c").path, (latency * 1_000_000).round.to_s], "r+") do |server|
        yield Integer(server.gets || raise("the server did not start"))
      end
    end
  end
end
