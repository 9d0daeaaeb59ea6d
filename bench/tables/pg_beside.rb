# frozen_string_literal: true

require "bench/slow_neighbours"

Bench.table "pg_beside" do
  title "Postgres, quick beside slow"
  about "100 strands ask `select $1::int`, one after the other, while 9 other statements take long, and all share a pool of 10 " \
        "connections. The slow ones are of a text that was never asked before, or known to take long, or updates by key that " \
        "usually are quick and now wait for a lock. `p99` is the time within which 99 of 100 of the quick ones have their " \
        "answer. Of `threads`, `async` and `ringspun fs` the last connection serves all of the quick ones."
  size statements: 4_000, strands: 100, seconds: 2.0
  quick statements: 1_000, seconds: 1.0
  warm_up statements: 200, strands: 20, seconds: 0.1
  row "unknown", kind: "unknown"
  row "known", kind: "known", quick: false
  row "a lock", kind: "locked"
  beforehand { |**| Bench::PostgresServer.start }
  proof { |statements:, strands:, **| { answered: statements / strands * strands, neighbours: 9 } }
  columns :p99, :real_ns, :cpu_ns, :backend_ns
  against_peer :p99, :cpu_ns

  contender Bench::SUBJECT, requires: Bench::SUBJECT, backends: [Bench::MAIN_BACKEND] do |meter, **size|
    Bench::SlowNeighbours.by_us(meter, **size)
  end

  contender("threads", requires: "pg") { |meter, **size| Bench::SlowNeighbours.in_threads(meter, **size) }

  contender("async", requires: "async") { |meter, **size| Bench::SlowNeighbours.in_async(meter, **size) }

  contender(Bench::SCHEDULED, requires: Bench::SUBJECT) { |meter, **size| Bench::SlowNeighbours.in_strands(meter, **size) }

  targets "p99 <= 0.05 at unknown and known", "p99 <= 0.15 at a lock"
end
