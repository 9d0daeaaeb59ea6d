# frozen_string_literal: true

require "bench/enqueuing"

# Connects, and enqueues by callers that `start` begins and `finish` awaits.
enqueue = lambda do |meter, start, finish, library, fsync:, callers:, seconds:, bulk:, timed:, strategy: :group_commit, **|
  server = Bench::RedisServer.start(fsync:)
  Bench::Jobs.const_get(library).connect(server, size: callers, strategy:)
  Bench::Enqueuing.new(server, start, finish).measure(meter, callers:, seconds:, bulk:, timed:)
end
in_threads = [Thread.method(:new), :value]
one_way = "the bulk of all strategies is one"

Bench.table "jobs_enqueue" do
  title "Enqueuing jobs"
  about "So many callers enqueue jobs of 217 bytes for a second, each with one call after the other, into a private Redis over " \
        "TCP; what that needs is not counted. `named pool` and `pool` have as many connections as there are cores. " \
        "redis-benchmark sends a ready LPUSH for each, and the floor a ready SADD and LPUSH for as many as wait at once."
  size seconds: 1.0, jobs: 30_000, fsync: "no", bulk: 1, timed: false
  quick seconds: 0.2, jobs: 5_000
  warm_up seconds: 0.05, jobs: 100
  row "1 caller", callers: 1, quick: false
  row "6 callers", callers: 6, quick: false
  row "12 callers", callers: 12, quick: false
  row "24 callers", callers: 24, quick: false
  row "48 callers", callers: 48
  row "48 callers timed", callers: 48, timed: true, quick: false
  row "48 callers always", callers: 48, fsync: "always", quick: false
  row "bulk of 1,000", callers: 1, bulk: 1_000, quick: false,
                       skipped: { "redis-benchmark": "it has none", single: one_way, "named pool": one_way, pool: one_way }
  scale "callers", :callers, 1, 4, 16, 64, 256, seconds: 0.5
  proof { |**| { lost: 0 } }
  columns :rate, :real_ns, :cpu_ns, :p99
  against_floor :real_ns
  against_peer :real_ns, :cpu_ns

  # Threads, and a pool of as many connections.
  contender "sidekiq", requires: "bench/jobs/sidekiq" do |meter, **size|
    enqueue.call(meter, *in_threads, :Sidekiq, **size)
  end

  # A strand for each caller.
  contender "ringspun", requires: "bench/jobs/ringspun", backends: %w[uring epoll] do |meter, **size|
    Ringspun.run { |machine| enqueue.call(meter, machine.method(:spin), :await, :Ringspun, **size) }
  end

  { "single" => :single, "named pool" => :named_pool, "pool" => :pool }.each do |name, strategy|
    beside name, requires: "bench/jobs/ringspun" do |meter, **size|
      Ringspun.run { |machine| enqueue.call(meter, machine.method(:spin), :await, :Ringspun, **size, strategy:) }
    end
  end

  # Group commit for threads, none of which has a machine.
  beside "plain threads", requires: "bench/jobs/ringspun" do |meter, **size|
    enqueue.call(meter, *in_threads, :Ringspun, **size)
  end

  reference "redis-benchmark", requires: "bench/jobs/redis_benchmark" do |meter, fsync:, callers:, jobs:, **|
    Bench::Jobs::RedisBenchmark.measure(meter, fsync:, callers:, jobs:)
  end

  # For about a second, whatever a round trip takes.
  floor("redis_push.c") do |jobs:, callers:, bulk:, fsync:, **|
    batch = callers * bulk
    count = fsync == "no" ? [jobs * 20, jobs * batch].min : jobs
    [Bench::RedisServer.start(fsync:).port, count, batch, Bench::Enqueuing::BYTES]
  end

  targets "rate >= 1.3 x sidekiq at 1 caller", "rate >= 3.5 x sidekiq at 6 callers", "rate >= 5 x sidekiq at 12 callers",
          "rate >= 6.5 x sidekiq at 24 callers", "rate >= 8 x sidekiq at 48 callers", "p99 <= 0.002 at 48 callers timed",
          "plain threads: rate >= 2 x sidekiq at 48 callers", "rate >= 3 x sidekiq at 48 callers always",
          "rate >= 1.0 x sidekiq at bulk of 1,000", "cpu_ns <= 1.1 x ringspun epoll"
end
