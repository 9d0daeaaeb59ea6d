# frozen_string_literal: true

require "bench/enqueuing"
require "bench/jobs_file"
require "bench/sqlite_library"

enqueue = lambda do |meter, machine, store, callers:, seconds:, **|
  Bench::Enqueuing.new(store, machine.method(:spin), :await).measure(meter, callers:, seconds:)
end

# What a Redis must do to be as durable.
fsync = { "full" => "always", "normal" => "no" }.freeze

Bench.table "sqlite_enqueue" do
  title "Enqueuing jobs into a file"
  about "48 callers enqueue jobs of 217 bytes for a second, each with one call after the other, into a file of SQLite: `full` " \
        "waits for the disk at each commit, `normal` does not. The floor is a program in C that inserts the same rows by " \
        "prepared statements, 48 jobs in each transaction. `redis` is our storage in a private Redis, which " \
        "writes each job to the disk as well in the row `full`, and whose own time is not counted."
  size seconds: 1.0, callers: 48, jobs: 10_000
  quick seconds: 0.2, jobs: 2_000
  warm_up seconds: 0.05, jobs: 100
  row "full", durable: "full"
  row "normal", durable: "normal", jobs: 100_000
  proof { |**| { lost: 0 } }
  columns :rate, :real_ns, :cpu_ns
  against_floor :real_ns
  against_peer :real_ns

  # A strand for each caller.
  contender "ringspun", requires: "bench/jobs/ringspun", backends: %w[uring epoll] do |meter, durable:, **size|
    Ringspun.run do |machine|
      store = Bench::JobsFile.new(meter.scratch, durable)
      Bench::Jobs::Ringspun.connect_to(store)
      enqueue.call(meter, machine, store, **size)
    end
  end

  beside "redis", requires: "bench/jobs/ringspun" do |meter, durable:, **size|
    Ringspun.run do |machine|
      server = Bench::RedisServer.start(fsync: fsync.fetch(durable))
      Bench::Jobs::Ringspun.connect(server)
      enqueue.call(meter, machine, server, **size)
    end
  end

  floor("sqlite_push.c") do |durable:, jobs:, callers:, **|
    [*Bench::SqliteLibrary.files, durable, jobs, callers, Bench::Enqueuing::BYTES]
  end

  targets "rate >= 0.7 x floor at full", "rate >= 0.5 x floor at normal", "cpu_ns <= 1.1 x ringspun epoll"
end
