# frozen_string_literal: true

module Bench
  module Jobs
    # Redis's own benchmark: an event loop in C that sends the same bytes again and again, one LPUSH a call.
    # https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/benchmarks/
    class RedisBenchmark
      COLUMNS = %w[rps p99_latency_ms].freeze

      def self.measure(meter, fsync:, callers:, jobs:)
        server = RedisServer.start(fsync:)
        server.empty
        cpu = Process.times
        rate, p99 = run(server, callers, jobs)
        spent = Process.times
        meter.take(user: spent.cutime - cpu.cutime, system: spent.cstime - cpu.cstime, real: jobs / rate)
        meter.operations = jobs
        meter.note(:p99, p99 / 1000)
        { lost: jobs - server.ask("LLEN", "queue:default") }.tap { server.empty }
      end

      def self.run(server, callers, jobs)
        command = [Servers.program("redis-benchmark"), "-p", server.port, "-c", callers, "-n", jobs, "--csv",
                   "LPUSH", "queue:default", "x" * Enqueuing::BYTES].map(&:to_s)
        out = IO.popen(command, err: File::NULL, &:read)
        header, values = out.lines.grep(/\A"/).map { |line| line.chomp.delete('"').split(",") }
        header.zip(values).to_h.values_at(*COLUMNS).map { |value| Float(value) }
      rescue RuntimeError, ArgumentError, Errno::ENOENT => error # "inf", where its clock was set while it measured
        raise Unavailable, error.message
      end
      private_class_method :run
    end
  end
end
