# frozen_string_literal: true

require "bench/writing_statements"

Bench.table "pg_writes" do
  title "Postgres, writes that stand alone"
  about "Each strand inserts a row by its key and then updates it, one statement after the other, prepared, over a Unix " \
        "socket; each is a transaction of its own. `ringspun` has two shared connections, `pg` is one and no strand, the " \
        "others share 8 connections."
  size statements: 16_000
  quick statements: 2_000
  warm_up statements: 512, strands: 8
  row "64 strands", strands: 64
  row "256 strands", strands: 256, quick: false
  row "1,000 strands", strands: 1_000, quick: false
  beforehand { |**| Bench::PostgresServer.start }
  proof { |statements:, strands:, **| { written: statements / strands / 2 * strands * 2 } }
  columns :real_ns, :cpu_ns, :backend_ns, :rate
  against_peer :real_ns, :cpu_ns

  contender Bench::SUBJECT, requires: Bench::SUBJECT, backends: [Bench::MAIN_BACKEND] do |meter, **size|
    Bench::WritingStatements.by_us(meter, **size)
  end

  contender("pg", requires: "pg") { |meter, **size| Bench::WritingStatements.alone(meter, **size) }

  contender("async", requires: "async") { |meter, **size| Bench::WritingStatements.in_async(meter, 8, **size) }

  contender(Bench::SCHEDULED, requires: Bench::SUBJECT) { |meter, **size| Bench::WritingStatements.in_strands(meter, 8, **size) }

  targets "rate >= 1.5 x pg at 64 strands", "rate >= 1 x async at 256 strands"
end
