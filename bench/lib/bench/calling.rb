# frozen_string_literal: true

require "net/http"
require "bench/http_server"

module Bench
  # What the tables of jobs that call have in common.
  module Calling
    module_function

    def moments(calls) = ["begun 1", "done #{calls}"]

    # The region: from the one moment to the other.
    def take(meter, worker, moments, latency)
      from, to = moments.map { worker.news }
      meter.take(user: to[:user] - from[:user], system: to[:system] - from[:system], real: to[:clock] - from[:clock])
      meter.note(:beyond, to[:clock] - from[:clock] - latency)
    end

    # The floor. Every twentieth of them, for they take long, and a process that has slept for long is slower.
    def one_by_one(meter, calls, latency)
      return if calls.zero?

      HttpServer.during(latency) do |port|
        asked = (calls / 20.0).ceil
        cpu = Process.times
        began = meter.now
        answered = asked.times.count { Net::HTTP.get("127.0.0.1", "/", port) == "hello" }
        real = meter.now - began
        spent = Process.times
        user, system, real = [spent.utime - cpu.utime, spent.stime - cpu.stime, real].map { |seconds| seconds * calls / asked }
        meter.take(user:, system:, real:)
        meter.note(:beyond, user + system)
        { left: asked - answered, failed: 0 }
      end
    end
  end
end
