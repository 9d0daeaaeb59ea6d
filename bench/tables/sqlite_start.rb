# frozen_string_literal: true

require "bench/jobs_file"
require "bench/starting"

fsync = { "full" => "always", "normal" => "no" }.freeze

Bench.table "sqlite_start" do
  title "From a push to the start of the job"
  about "60 jobs, each enqueued 10 ms after the end of the one before, and run by an idle worker, another process: the time " \
        "from the call to the job's first line. Then nothing is enqueued for 2 s: `CPU s/idle s` is what the worker takes for " \
        "each of them. The floor writes as much as a commit of one job to a file, and in the row `full` waits until it is on " \
        "the disk. `redis` is our storage in a private Redis, which does that as well there."
  size jobs: 60, idle: 2.0
  quick jobs: 20, idle: 1.0
  warm_up jobs: 0, idle: 0.0
  row "full", durable: "full"
  row "normal", durable: "normal"
  proof { |**| { left: 0, failed: 0 } }
  columns :p50, :p99, :idle_cpu
  against_floor :p50
  against_peer :p50

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "bench/jobs/ringspun", backends: [backend] do |meter, jobs:, idle:, durable:|
      Bench::Starting.measure(meter, jobs, idle, Bench::JobsFile.new(meter.scratch, durable), backend)
    end
  end

  beside "redis", requires: "bench/jobs/ringspun" do |meter, jobs:, idle:, durable:|
    server = Bench::RedisServer.start(fsync: fsync.fetch(durable))
    Bench::Starting.measure(meter, jobs, idle, server, Bench::MAIN_BACKEND)
  end

  bare "a write" do |meter, jobs:, durable:, **|
    Bench::Starting.write(meter, jobs, durable == "full")
    { left: 0, failed: 0 }
  end

  targets "p50 <= floor + 0.001", "idle_cpu <= 0.005", "total <= 1.1 x ringspun epoll"
end
